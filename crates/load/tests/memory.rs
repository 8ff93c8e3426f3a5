//! A budget bounds live memory. Compares it with an allocator that counts every byte of the process, for several
//! configurations.

mod arrays_dataset;
mod counting;
mod dataset;

use counting::{LIVE, PEAK};
use dataset::Sample;
use shardtool_decode::{Filter, LabelDtype, Pipeline, Transform};
use shardtool_load::{
    Arrays, AspectRatioBuckets, BatchTransform, Clip, Column, Config, DecodedCache, Field, Image, Loader, Mask,
    Objects, Pairs, RaggedArrays, Tokens, View,
};
use shardtool_order::Replica;
use shardtool_read::{Access, Dataset, Options, Split};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

/// The allocator counts the whole process: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn mask(dtype: LabelDtype) -> Mask {
    let mut mask = Mask::new(dataset::MASK);
    mask.dtype = dtype;
    mask
}

/// A cache in memory of images whose shorter side is at most `resize` pixels.
fn cache(resize: u32, size: u64) -> DecodedCache {
    let mut cache = DecodedCache::new(size);
    cache.resize = resize;
    cache
}

/// Returns MixUp or CutMix for labels of `classes` classes.
fn of_classes(mix: fn(Pairs) -> BatchTransform, alpha: f64, classes: u32) -> BatchTransform {
    let mut pairs = Pairs::default();
    (pairs.alpha, pairs.num_classes) = (alpha, Some(classes));
    mix(pairs)
}

/// A label map.
fn grey(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = vec![];
    let encoder = image::codecs::png::PngEncoder::new(&mut bytes);
    image::GrayImage::new(width, height).write_with_encoder(encoder).unwrap();
    bytes
}

/// Photographs of several megapixels in two shards, so that most of the memory is scratch.
fn large(folder: &Path, access: Access) -> Split {
    let samples: Vec<_> = (0..24)
        .map(|i| {
            let size = if i % 5 == 0 { (2400, 1800) } else { (320 + i as u32 * 10, 240) };
            let boxes = vec![i as f32; 2000];
            Sample {
                key: format!("{i}"),
                image: Some((dataset::jpeg(i, size.0, size.1), size)),
                label: 0,
                boxes,
                mask: grey(size.0, size.1),
            }
        })
        .collect();
    dataset::write(folder, "train", &samples, 12);
    let options = Options::default().with_access(access);
    Dataset::open_with(folder, options).unwrap().split("train").unwrap().clone()
}

#[test]
fn live_memory_stays_below_the_budget() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    // Mapped and read records take turns; `scripts/campaign memory` tries both with every configuration.
    let full = std::env::var_os("SHARDTOOL_FULL").is_some();
    for (turn, access) in [Access::Mmap, Access::Pread].into_iter().enumerate() {
        let split = large(folder.path(), access);
        for (number, (side, batch, workers, depth, ranks, times_floor, masks)) in [
            (64, 8, 2, None, &[0][..], 1.0, None),
            (224, 16, 4, None, &[0], 1.0, None),
            (224, 16, 4, Some(6), &[0], 2.0, None),
            (224, 64, 2, None, &[0], 1.5, None),
            (448, 8, 8, None, &[0], 1.2, None),
            (224, 4, 3, None, &[0, 1, 2], 1.3, None),
            (64, 4, 8, None, &[0], 3.0, None),
            (64, 8, 2, None, &[0], 1.0, Some(LabelDtype::U8)),
            (64, 8, 2, None, &[0], 1.0, Some(LabelDtype::U16)),
            (224, 16, 4, Some(6), &[0], 2.0, Some(LabelDtype::U8)),
        ]
        .into_iter()
        .enumerate()
        {
            if number % 2 != turn && !full {
                continue;
            }
            let mut config = Config::new(split.clone(), [Image::new(Pipeline::train(side).unwrap())], batch);
            config.fields.extend(masks.map(|dtype| mask(dtype).into()));
            config.replica = Replica::new(0, ranks.len() as u32).unwrap();
            (config.workers, config.prefetch.batches) = (Some(workers), depth);
            config.remainder = Some(shardtool_order::Remainder::Pad);
            config.fields.extend(["image/class/label", "boxes", "image/key"].map(|name| Column::new(name).into()));
            let what = format!("{side} px x {batch}, {workers} workers, {} replicas, {access:?}", ranks.len());
            stays_below(config, ranks, times_floor, &what);
        }
    }
}

/// Loads epochs with a budget of `times` the smallest one, and compares the peak of live memory with it.
fn stays_below(mut config: Config, ranks: &[u32], times: f64, what: &str) {
    let floor = Loader::plan(&config).unwrap().memory.minimum();
    let budget = (floor as f64 * times) as usize;
    config.memory = Some(budget as u64);
    let before = LIVE.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let mut group = Loader::group(&config, ranks).unwrap();
    // The second epoch finds the memory of the first; `scripts/campaign memory` adds a third.
    for _ in 0..2 + u64::from(std::env::var_os("SHARDTOOL_FULL").is_some()) {
        let mut open = true;
        while open {
            for loader in &mut group {
                open &= loader.next_batch().unwrap().is_some();
            }
        }
    }
    let peak = PEAK.load(Ordering::Relaxed) - before;
    println!("{what}: budget {budget}, peak {peak}");
    assert!(peak <= budget, "{what}: {peak} of {budget} bytes");
    drop(group);
    let left = LIVE.load(Ordering::Relaxed).saturating_sub(before);
    assert!(left < 1 << 20, "{left} bytes leaked");
}

/// Views, padding, steps after the geometry, and mixing.
#[test]
fn live_memory_of_recipes_stays_below_the_budget() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let split = large(folder.path(), Access::Mmap);
    let steps = |json: &str| serde_json::from_str::<Pipeline>(json).unwrap();
    let view = |name: String, json: &str| View::new(name, steps(json));
    let large = r#"[{"random_resized_crop":{"size":[224,224]}},{"horizontal_flip":{}},{"color_jitter":{"hue":[-0.1,0.1]}},
        {"gaussian_blur":{"kernel_size":[23,23]}}]"#;
    let small =
        r#"[{"random_resized_crop":{"size":[96,96],"scale":[0.05,0.4]}},{"random_solarize":{"threshold":128}}]"#;
    let globals = (0..2).map(|n| view(format!("global.{n}"), large));
    let dino = globals.chain((0..6).map(|n| view(format!("local.{n}"), small))).collect();
    let ssd = r#"[{"random_photometric_distort":{}},{"random_zoom_out":{}},{"random_iou_crop":{}},{"resize_to":{"size":[300,300]}}]"#;
    let jitter = r#"[{"random_zoom_out":{}},{"scale_jitter":{"target_size":[256,256]}},{"fixed_size_crop":{"size":[256,256]}},
        {"random_affine":{"degrees":[-9,9],"interpolation":"bilinear"}},{"aug_mix":{}}]"#;
    let mut objects = Objects::default();
    (objects.boxes, objects.properties) = ("boxes".to_owned(), vec![]);
    objects.unit = shardtool_format::BoxUnit::Pixel;
    let config = |steps: Pipeline| Config::new(split.clone(), [Image::new(steps)], 6);
    let cached = |steps: Pipeline, resize| {
        let mut image = Image::new(steps);
        image.pixels.decoded_cache = Some(cache(resize, 3 << 20));
        Config::new(split.clone(), [image], 6)
    };
    let mut mixed = config(steps(r#"[{"random_resized_crop":{"size":[224,224]}},{"rand_augment":{}}]"#));
    mixed.batch_transform =
        vec![of_classes(BatchTransform::MixUp, 0.8, 1000), of_classes(BatchTransform::CutMix, 1.0, 1000)];
    for (what, config) in [
        ("dino", Config::new(split.clone(), [Image::with_views(dino)], 6)),
        ("ssd", config(steps(ssd)).with(objects)),
        ("segmentation", config(steps(jitter)).with(mask(LabelDtype::U8))),
        ("mixed", mixed),
        ("cached", cached(steps(large), 256)),
        ("cached segmentation", cached(steps(jitter), 1200).with(mask(LabelDtype::U16))),
    ] {
        for (workers, times) in [(1, 1.0), (4, 1.5)] {
            let mut config = config.clone();
            (config.workers, config.remainder) = (Some(workers), Some(shardtool_order::Remainder::Pad));
            stays_below(config, &[0], times, &format!("{what}, {workers} workers"));
        }
    }
}

/// Batches of several sizes in the same memory, also if their rows are mixed or have label maps.
#[test]
fn live_memory_of_buckets_stays_below_the_budget() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let split = large(folder.path(), Access::Mmap);
    let side = |n| NonZeroU32::new(n).unwrap();
    let bucket = |[height, width]: [u32; 2]| {
        let crop = Transform::RandomResizedCrop {
            size: [height, width],
            scale: [0.3, 1.0],
            ratio: [0.9, 1.1],
            interpolation: Filter::Bicubic,
        };
        ((side(height), side(width)), Pipeline::new(vec![crop]).unwrap())
    };
    let buckets = AspectRatioBuckets::new([[160, 300], [160, 400], [224, 224], [192, 256]].map(bucket));
    let mut limited = buckets.clone();
    limited.max_pixels = Some(300_000);
    let config = |buckets: AspectRatioBuckets| {
        let mut config = Config::new(split.clone(), [Image::with_views(vec![])], 5);
        config.buckets = Some(buckets.into());
        config
    };
    let mut mixed = config(buckets.clone());
    mixed.batch_transform = vec![of_classes(BatchTransform::CutMix, 1.0, 10)];
    let masked = config(buckets).with(mask(LabelDtype::U8));
    for (what, config) in [("plain", config(limited)), ("mixed", mixed), ("masked", masked)] {
        for (workers, times) in [(1, 1.0), (4, 1.5)] {
            let mut config = config.clone();
            (config.workers, config.remainder) = (Some(workers), Some(shardtool_order::Remainder::Pad));
            stays_below(config, &[0], times, &format!("buckets, {what}, {workers} workers"));
        }
    }
}

/// Rows of several samples, packed in small and large windows.
#[test]
fn live_memory_of_packed_rows_stays_below_the_budget() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let sample = |number: u64| {
        let boxes: Vec<f32> = (0..number * 37 % 900).map(|token| token as f32).collect();
        Sample { key: format!("{number}"), image: None, label: boxes.len() as i64, boxes, mask: vec![] }
    };
    dataset::write(folder.path(), "train", &(0..3000).map(sample).collect::<Vec<_>>(), 500);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    for (window, workers, times) in [(64, 1, 1.0), (4096, 1, 1.0), (4096, 4, 1.3)] {
        let padded = [("boxes".to_owned(), 0.0)];
        let mut tokens = Tokens::new("image/class/label", NonZeroU32::new(1024).unwrap(), padded);
        tokens.window = NonZeroU32::new(window).unwrap();
        let mut config = Config::new(split.clone(), [tokens], 8);
        (config.workers, config.remainder) = (Some(workers), Some(shardtool_order::Remainder::Pad));
        stays_below(config, &[0], times, &format!("packed rows, windows of {window}, {workers} workers"));
    }
}

/// Arrays: crops of volumes, whole chunks decompressed, records read into memory, with images.
#[test]
fn live_memory_of_arrays_stays_below_the_budget() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let volume = |number: u16, feature| {
        let side = 40 + i64::from(number % 4) * 8;
        let elements: Vec<u16> = (0..side * side * side).map(|at| (at % 4001) as u16 ^ number).collect();
        arrays_dataset::Stored::u16(feature, &[side; 3], &[32; 3], if number < 6 { "zstd" } else { "raw" }, &elements)
    };
    let samples: Vec<_> = (0..12).map(|number| vec![volume(number, "ct"), volume(number, "seg")]).collect();
    let image = dataset::jpeg(1, 640, 480);
    arrays_dataset::write(folder.path(), &["ct", "seg"], &samples, Some(&image));
    let mut group = Arrays::new(vec!["ct".to_owned(), "seg".to_owned()]);
    group.crop = Some(vec![Some(36); 3]);
    group.flip = vec![0.5; 3];
    let image = || Some(Image::new(Pipeline::train(64).unwrap()));
    for access in [Access::Mmap, Access::Pread] {
        let split = arrays_dataset::open(folder.path(), access);
        for (image, workers, times) in [(None, 1, 1.0), (None, 4, 1.3), (image(), 3, 1.0), (image(), 1, 2.0)] {
            let what = format!("arrays, image {}, {workers} workers, {access:?}", image.is_some());
            let mut config = Config::new(split.clone(), [group.clone()], 5);
            config.fields.extend(image.map(Field::from));
            (config.workers, config.remainder) = (Some(workers), Some(shardtool_order::Remainder::Pad));
            let batch = Loader::plan(&config).unwrap().memory.batch;
            assert!(batch > 5 * 2 * 2 * 36 * 36 * 36, "a batch of {batch} bytes includes its arrays");
            stays_below(config, &[0], times, &what);
        }
    }
}

/// Arrays of which a row has a random subset: the whole array, a decompressed chunk and the selection are scratch at the same time.
#[test]
fn live_memory_of_ragged_arrays_stays_below_the_budget() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let array = |number: u16, feature, chunk: i64, codec| {
        let elements: Vec<u16> = (0..(30 + number as i64) * 4_000).map(|at| (at % 4001) as u16 ^ number).collect();
        let rows = elements.len() as i64 / 4;
        arrays_dataset::Stored::u16(feature, &[rows, 4], &[chunk.min(rows), 4], codec, &elements)
    };
    let samples: Vec<_> =
        (0..9).map(|number| vec![array(number, "raw", 500, "raw"), array(number, "zstd", 1 << 20, "zstd")]).collect();
    arrays_dataset::write(folder.path(), &["raw", "zstd"], &samples, None);
    let length = std::num::NonZeroU64::new(20_000).unwrap();
    let group = RaggedArrays::new(vec!["raw".to_owned(), "zstd".to_owned()], length);
    for access in [Access::Mmap, Access::Pread] {
        let split = arrays_dataset::open(folder.path(), access);
        for (workers, times) in [(1, 1.0), (3, 1.0), (2, 1.5)] {
            let mut config = Config::new(split.clone(), [group.clone()], 3);
            (config.workers, config.remainder) = (Some(workers), Some(shardtool_order::Remainder::Pad));
            stays_below(config, &[0], times, &format!("ragged arrays, {workers} workers, {access:?}"));
        }
    }
}

/// A default budget grows with the batches that the consumer keeps, and shrinks back.
#[test]
fn growth_is_as_large_as_what_the_consumer_keeps() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let split = large(folder.path(), Access::Mmap);
    let mut config = Config::new(split, [Image::new(Pipeline::train(224).unwrap())], 8);
    (config.workers, config.remainder) = (Some(2), Some(shardtool_order::Remainder::Pad));
    let memory = Loader::plan(&config).unwrap().memory;
    for window in [1, 4, 16, 64] {
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let mut loader = Loader::new(&config).unwrap();
        for _ in 0..2 {
            let mut held = vec![];
            while held.len() < window {
                held.extend(loader.next_batch().unwrap());
            }
        }
        let (peak, kept) = (PEAK.load(Ordering::Relaxed) - before, (window - 1) * memory.batch as usize);
        let budget = memory.budget as usize + kept;
        println!("window of {window}: planned {}, kept {kept}, peak {peak}", memory.budget);
        assert!(peak <= budget, "window of {window}: {peak} of {budget} bytes");
        assert!(peak >= kept, "window of {window}: kept batches are counted");
        drop(loader);
        let left = LIVE.load(Ordering::Relaxed).saturating_sub(before);
        assert!(left < 1 << 20, "{left} bytes leaked");
    }
}

/// Clips: the bytes of the frames that are read, or of whole records, are scratch too.
#[test]
fn live_memory_of_clips_stays_below_the_budget() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let mut list = String::new();
    for video in 0..8 {
        let (frames, size) = (folder.path().join(format!("{video}")), (640 + 40 * video as u32, 480));
        std::fs::create_dir_all(&frames).unwrap();
        let frame = dataset::jpeg(video, size.0, size.1);
        (0..20).for_each(|number| std::fs::write(frames.join(format!("{number}.jpg")), &frame).unwrap());
        list += &format!("{{\"key\":\"{video}\",\"frames\":\"{video}\",\"pair\":[1,2]}}\n");
    }
    std::fs::write(folder.path().join("list.jsonl"), list).unwrap();
    let dataset = folder.path().join("dataset");
    let mut options = shardtool_pack::Options::new(folder.path().join("list.jsonl"), &dataset);
    options.frames = vec!["frames".to_owned()];
    shardtool_pack::pack(&options, &()).unwrap();
    for access in [Access::Mmap, Access::Pread] {
        let split = Dataset::open_with(&dataset, Options::default().with_access(access)).unwrap();
        let split = split.split("train").unwrap().clone();
        // A ragged column needs the whole record.
        for columns in [&[][..], &["pair"]] {
            for (frames, clips, workers, times, cached) in
                [(4, 1, 2, 1.0, false), (8, 2, 4, 1.5, false), (4, 1, 2, 1.0, true)]
            {
                let mut clip = Clip::new("frames", Pipeline::train(112).unwrap(), frames);
                clip.pixels.decoded_cache = cached.then(|| cache(400, 3 << 20));
                (clip.clips, clip.stride) = (clips, 2);
                let mut config = Config::new(split.clone(), [clip], 3);
                (config.workers, config.remainder) = (Some(workers), Some(shardtool_order::Remainder::Pad));
                config.fields.extend(columns.iter().map(|feature| Column::new(*feature).into()));
                let row = u64::from(clips * frames) * 3 * 112 * 112;
                let planned = Loader::plan(&config).unwrap().memory.batch;
                assert!((3 * row..3 * row + 2000).contains(&planned), "{planned} bytes of a batch");
                let what =
                    format!("{clips} clips of {frames} frames, {workers} workers, columns {columns:?}, {access:?}");
                stays_below(config, &[0], times, &what);
            }
        }
    }
}
