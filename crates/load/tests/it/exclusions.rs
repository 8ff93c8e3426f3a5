//! Every pair of parts of a configuration: refused if the table of exclusions has it, else loaded.

use crate::arrays_dataset::{Stored, open};
use crate::dataset::jpeg;
use shardtool_decode::{Pipeline, Transform};
use shardtool_format::manifest::DType;
use shardtool_load::{
    Arrays, AspectRatioBuckets, BatchTransform, Clip, Config, EXCLUSIONS, Error, Exclusion, Field, FurtherImage, Image,
    InvalidOptions, LengthBuckets, Loader, Mask, Mosaic, Objects, Pairs, Part, PixelMask, RaggedArrays, Tokens, View,
};
use shardtool_order::{Order, Policy, Remainder};
use shardtool_pack::{Label, Sample, Value, Writer, WriterOptions};
use shardtool_read::{Access, Split};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;

const SAMPLES: i64 = 11;
/// Width and height of images, frames, masks and of the array in the image.
const SIZE: (u32, u32) = (40, 30);
/// Side of images in a batch.
const SIDE: u32 = 16;
const CLASSES: u32 = 3;

/// Writes samples that have everything a field can deliver.
fn everything(folder: &Path) -> Split {
    let mut options = WriterOptions::new(folder, "train");
    let features = [
        ("mask", DType::Bytes),
        ("image/object/bbox", DType::Float),
        ("image/object/class/label", DType::Int64),
        ("second", DType::Bytes),
        ("frames", DType::Bytes),
        ("length", DType::Int64),
        ("tokens", DType::Int64),
    ];
    options.features = features.map(|(name, dtype)| (name.to_owned(), dtype)).to_vec();
    for array in ["depth", "ct", "cloud"] {
        let members =
            [("", DType::Bytes), ("/shape", DType::Int64), ("/chunk", DType::Int64), ("/dtype", DType::Bytes)];
        let members = members.into_iter().chain([("/codec", DType::Bytes)]);
        options.features.extend(members.map(|(suffix, dtype)| (format!("{array}{suffix}"), dtype)));
    }
    (options.labels, options.shard_size) = (Some(true), 60_000);
    let writer = Writer::open(&options).unwrap();
    let mut mask = std::io::Cursor::new(vec![]);
    image::GrayImage::new(SIZE.0, SIZE.1).write_to(&mut mask, image::ImageFormat::Png).unwrap();
    let (width, height) = (i64::from(SIZE.0), i64::from(SIZE.1));
    for number in 0..SAMPLES {
        let file = |of: i64| jpeg((10 * number + of) as u64, SIZE.0, SIZE.1);
        let elements = |count: i64| -> Vec<u16> { (0..count).map(|at| (at + number) as u16).collect() };
        let arrays = [
            Stored::u16("depth", &[height, width], &[16, 16], "raw", &elements(height * width)),
            Stored::u16("ct", &[6, 6, 6], &[3, 3, 3], "zstd", &elements(216)),
            Stored::u16("cloud", &[number % 5, 3], &[2, 3], "raw", &elements(number % 5 * 3)),
        ];
        let arrays: Vec<_> = arrays.iter().flat_map(Stored::values).collect();
        let length = 1 + number % 4;
        let mut values = vec![
            ("mask", Value::Bytes(vec![mask.get_ref().clone()])),
            ("image/object/bbox", Value::Float(vec![0.1, 0.2, 0.7, 0.9, 0.3, 0.1, 0.6, 0.5])),
            ("image/object/class/label", Value::Int64(vec![0, 2])),
            ("second", Value::Bytes(vec![file(1)])),
            ("frames", Value::Bytes((2..5).map(file).collect())),
            ("length", Value::Int64(vec![length])),
            ("tokens", Value::Int64((0..length).collect())),
        ];
        values.extend(arrays.iter().map(|(name, value)| (name.as_str(), value.clone())));
        let (key, image) = (format!("{number:02}"), file(0));
        let label = Some(Label::Id(number % i64::from(CLASSES)));
        writer.write(&Sample { key: &key, image: Some(shardtool_pack::Image::File(&image)), label, values }).unwrap();
    }
    writer.finish().unwrap();
    open(folder, Access::Mmap)
}

fn steps(side: u32) -> Pipeline {
    let flip = Transform::HorizontalFlip { p: 0.5 };
    Pipeline::new(vec![Transform::CenterCrop { size: [side; 2] }, flip]).unwrap()
}

/// Adds the parts without which a part cannot be, unless one of them is there.
fn add(part: Part, parts: &mut Vec<Part>) {
    let implied = match part {
        Part::SeveralViews => &[Part::Image],
        Part::MixUp => &[Part::MixUpOrCutMix],
        Part::MixUpOrCutMix => &[Part::BatchTransform],
        part => part.needs(),
    };
    parts.push(part);
    if let Some(first) = implied.first().filter(|_| !implied.iter().any(|other| parts.contains(other))) {
        add(*first, parts);
    }
}

/// Returns a configuration that has these parts, and no other.
fn config(split: &Split, parts: &[Part]) -> Config {
    let has = |part: Part| parts.contains(&part);
    let side = NonZeroU32::new(SIDE).unwrap();
    let mut config = Config::new(split.clone(), Vec::<Field>::new(), 4);
    let mut field = |part: Part, field: Field| config.fields.extend(has(part).then_some(field));
    let view = |name: &str| View::new(name, steps(SIDE));
    let several = Image::with_views(vec![view("a"), view("b")]);
    let mut in_image = Arrays::new(vec!["depth".to_owned()]);
    in_image.image_axes = Some((0, 1));
    field(Part::Record, Field::Record);
    field(Part::Image, if has(Part::SeveralViews) { several } else { Image::new(steps(SIDE)) }.into());
    field(Part::FurtherImage, FurtherImage::new("second").into());
    field(Part::Mask, Mask::new("mask").into());
    field(Part::PixelMask, PixelMask::default().into());
    field(Part::Objects, Objects::default().into());
    field(Part::Clip, Clip::new("frames", steps(SIDE), 2).into());
    field(Part::Arrays, Arrays::new(vec!["ct".to_owned()]).into());
    field(Part::ArraysInImage, in_image.into());
    let (row, length) = (NonZeroU32::new(8).unwrap(), NonZeroU64::new(3).unwrap());
    field(Part::RaggedArrays, RaggedArrays::new(vec!["cloud".to_owned()], length).into());
    field(Part::Tokens, Tokens::new("length", row, [("tokens".to_owned(), -1.0)]).into());
    // Of images with objects, mosaics need no classes.
    let num_classes = (!has(Part::Objects) || has(Part::MixUpOrCutMix)).then_some(CLASSES);
    let (mut pairs, mut mosaic) = (Pairs::default(), Mosaic::default());
    (pairs.num_classes, mosaic.num_classes) = (num_classes, num_classes);
    config.batch_transform = match [Part::BatchTransform, Part::MixUpOrCutMix, Part::MixUp].map(has) {
        [false, ..] => vec![],
        [true, false, _] => vec![BatchTransform::Mosaic(mosaic)],
        [true, true, false] => vec![BatchTransform::CutMix(pairs)],
        [true, true, true] => vec![BatchTransform::MixUp(pairs), BatchTransform::CutMix(pairs)],
    };
    // A configuration has one kind of buckets.
    config.buckets = match (has(Part::AspectRatioBuckets), has(Part::LengthBuckets)) {
        (true, _) => Some(AspectRatioBuckets::new([((side, side), steps(SIDE))]).into()),
        (false, true) => Some(LengthBuckets::new("length", vec![2, 4]).into()),
        (false, false) => None,
    };
    config.policy = if has(Part::ShardPolicy) { Policy::Shard } else { Policy::Sample };
    let run = NonZeroU32::new(2).unwrap();
    config.order = if has(Part::Interleaved) { Order::Interleaved { run, window: run } } else { Order::Shuffled };
    (config.remainder, config.workers, config.epochs) = (Some(Remainder::Mask), Some(2), Some(1));
    config
}

/// Returns whether the table has these two, in either order.
fn table_has(a: Part, b: Part) -> bool {
    let row =
        |row: &Exclusion| (row.part == a && row.others.contains(&b)) || (row.part == b && row.others.contains(&a));
    EXCLUSIONS.iter().any(row)
}

/// Returns every pair of different parts.
fn pairs_of(parts: &[Part]) -> impl Iterator<Item = (Part, Part)> {
    parts.iter().enumerate().flat_map(move |(at, a)| parts[..at].iter().map(move |b| (*b, *a)))
}

/// Loads an epoch, and checks that every sample is delivered once, with its image and its record if they are fields.
fn load(config: &Config) -> Result<(), String> {
    let mut loader = Loader::new(config).map_err(|error| error.to_string())?;
    let has = |of: fn(&Field) -> bool| config.fields.iter().any(of);
    let mut ids = vec![];
    while let Some(batch) = loader.next_batch().map_err(|error| shardtool_format::Chain(&error).to_string())? {
        let delivered = ids.len();
        ids.extend(batch.ids().iter().copied().filter(|id| *id >= 0));
        let records = batch.records().iter().flatten().count();
        if has(|field| matches!(field, Field::Record)) != (records == ids.len() - delivered) {
            return Err(format!("{records} records"));
        }
        if has(|field| matches!(field, Field::Image(_) | Field::Clip(_))) != batch.images().is_some() {
            return Err("another number of images".to_owned());
        }
    }
    if let Some(bad) = loader.bad_samples().first() {
        return Err(shardtool_format::Chain(&bad.error).to_string());
    }
    ids.sort_unstable();
    if ids == (0..SAMPLES).collect::<Vec<_>>() { Ok(()) } else { Err(format!("an epoch of {ids:?}")) }
}

#[test]
fn every_pair_of_parts_is_in_the_table_or_loads() {
    let folder = tempfile::tempdir().unwrap();
    let split = everything(folder.path());
    assert!(split.entry().shards.len() > 1);
    let alone = Part::ALL.iter().map(|part| (*part, *part));
    let (mut refused, mut wrong) = (0, vec![]);
    for (a, b) in alone.chain(pairs_of(&Part::ALL)) {
        if (a, b) == (Part::AspectRatioBuckets, Part::LengthBuckets) {
            continue;
        }
        let mut parts = vec![];
        add(a, &mut parts);
        if a != b {
            add(b, &mut parts);
        }
        let config = config(&split, &parts);
        let found = Part::of(&config);
        assert!(parts.iter().all(|part| found.contains(part)), "{a:?} and {b:?}: {found:?}");
        assert!(found.iter().all(|part| parts.contains(part)), "{a:?} and {b:?}: {found:?}");
        let excluded = pairs_of(&parts).any(|(a, b)| table_has(a, b));
        assert!(excluded || !table_has(a, b));
        match Loader::check(&config, &[0]) {
            Err(Error::Options(InvalidOptions::Excluded { part, other, .. })) => {
                refused += 1;
                if !excluded || !table_has(part, other) || !parts.contains(&part) || !parts.contains(&other) {
                    wrong.push(format!("{a:?} and {b:?}: refused because of {part:?} and {other:?}"));
                }
            }
            _ if excluded => wrong.push(format!("{a:?} and {b:?}: accepted, though the table excludes them")),
            Err(error) => wrong.push(format!("{a:?} and {b:?}: refused: {error}")),
            Ok(_) => wrong.extend(load(&config).err().map(|error| format!("{a:?} and {b:?}: {error}"))),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(refused > 20, "{refused} pairs were refused");
}

#[test]
fn the_table_has_at_most_ten_rows() {
    assert!(EXCLUSIONS.len() <= 10);
    // No pair has two reasons.
    for (at, row) in EXCLUSIONS.iter().enumerate() {
        for other in row.others {
            let again = |later: &Exclusion| {
                (later.part == row.part && later.others.contains(other))
                    || (later.part == *other && later.others.contains(&row.part))
            };
            assert!(!EXCLUSIONS[at + 1..].iter().any(again), "{:?} and {other:?}", row.part);
        }
    }
}
