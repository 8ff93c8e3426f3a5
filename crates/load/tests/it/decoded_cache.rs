//! Decoded images that are kept from one epoch to the next.

use crate::dataset;
use crate::samples::photographs;
use shardtool_decode::Pipeline;
use shardtool_load::{AspectRatioBuckets, Config, DecodedCache, Error, Image, Loader, View};
use shardtool_order::{Remainder, Replica};
use shardtool_read::{Dataset, Split};
use std::num::NonZeroU32;
use std::path::Path;

/// A cache in memory of images whose shorter side is at most `resize` pixels.
pub(crate) fn cache(resize: u32, size: u64) -> DecodedCache {
    let mut cache = DecodedCache::new(size);
    cache.resize = resize;
    cache
}

/// Images of 24 to 40 x 20 to 42 pixels.
fn split(folder: &Path) -> Split {
    dataset::write(folder, "train", &photographs(40), 9);
    Dataset::open(folder).unwrap().split("train").unwrap().clone()
}

fn config(split: &Split, cache: Option<DecodedCache>) -> Config {
    let mut image = Image::new(Pipeline::train(16).unwrap());
    image.pixels.decoded_cache = cache;
    let mut config = Config::new(split.clone(), [image], 6);
    (config.seed, config.remainder, config.workers) = (3, Some(Remainder::Mask), Some(2));
    // No more is built ahead, so that hits can be counted.
    config.epochs = Some(3);
    config
}

/// Returns the pixels of three epochs.
fn pixels(loaders: &mut [Loader]) -> Vec<Vec<u8>> {
    let mut batches = vec![];
    for _ in 0..3 {
        while let Some(batch) = loaders[0].next_batch().unwrap() {
            batches.push(batch.images().unwrap().to_vec());
            for loader in &mut loaders[1..] {
                batches.push(loader.next_batch().unwrap().unwrap().images().unwrap().to_vec());
            }
        }
        loaders[1..].iter_mut().for_each(|loader| assert!(loader.next_batch().unwrap().is_none()));
    }
    batches
}

#[test]
fn pixels_do_not_depend_on_what_is_cached() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    let load = |cache| {
        let mut loader = [Loader::new(&config(&split, Some(cache))).unwrap()];
        (pixels(&mut loader), loader[0].stats().decoded_cache.unwrap())
    };
    let (expected, nothing) = load(cache(20, 0));
    assert_eq!((nothing.hits, nothing.misses, nothing.images), (0, 3 * 40, 0));
    for folder in [None, Some(folder.path().to_owned())] {
        // One worker may begin the next epoch while the other still decodes an image of the last one, which then is a miss again.
        for (size, hits) in [(1 << 20, 2 * 39..=2 * 40), (20_000, 2..=2 * 39)] {
            let mut limited = cache(20, size);
            limited.path = folder.clone();
            let (found, stats) = load(limited);
            assert!(found == expected, "{folder:?}, {size} bytes");
            assert!(hits.contains(&stats.hits) && stats.hits + stats.misses == 3 * 40, "{stats:?}");
            assert!(stats.bytes <= size && stats.bad == 0 && stats.images > 0, "{stats:?}");
        }
    }
    assert!(
        std::fs::read_dir(folder.path()).unwrap().all(|entry| entry
            .unwrap()
            .file_name()
            .into_string()
            .unwrap()
            .find("decoded")
            .is_none())
    );
    // Images that are not larger than the bound are not changed.
    let whole = pixels(&mut [Loader::new(&config(&split, None)).unwrap()]);
    assert!(load(cache(1000, 1 << 20)).0 == whole && expected != whole);
}

#[test]
fn replicas_of_one_loader_share_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    let mut config = config(&split, Some(cache(20, 1 << 20)));
    config.replica = Replica::new(0, 2).unwrap();
    let mut group = Loader::group(&config, &[0, 1]).unwrap();
    pixels(&mut group);
    let stats = group[0].stats().decoded_cache.unwrap();
    // One replica may begin its next epoch with two batches of images that the other one is still decoding. Without sharing,
    // both would decode about 70 images.
    assert!((40..=40 + 2 * 6).contains(&stats.misses) && stats.hits + stats.misses == 3 * 40, "{stats:?}");
}

#[test]
fn views_and_buckets_are_made_from_cached_images() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    let view = |name: &str, side| View::new(name, Pipeline::train(side).unwrap());
    let side = NonZeroU32::new(12).unwrap();
    let buckets = AspectRatioBuckets::new([((side, side), Pipeline::train(12).unwrap())]);
    let load = |size, views: bool| {
        let mut config = config(&split, None);
        let mut image = Image::with_views(if views { vec![view("a", 16), view("b", 9)] } else { vec![] });
        image.pixels.decoded_cache = Some(cache(20, size));
        // Of two workers, one may begin the second epoch while the other still decodes an image of the first one.
        (config.fields, config.epochs, config.workers) = (vec![image.into()], Some(2), Some(1));
        config.buckets = (!views).then(|| buckets.clone().into());
        let mut loader = Loader::new(&config).unwrap();
        let mut all = vec![];
        for _ in 0..2 {
            while let Some(batch) = loader.next_batch().unwrap() {
                all.extend(batch.pictures().map(|picture| picture.bytes.to_vec()));
            }
        }
        (all, loader.stats().decoded_cache.unwrap().hits)
    };
    for views in [true, false] {
        let (cold, warm) = (load(0, views), load(1 << 20, views));
        assert!(cold.0 == warm.0 && (cold.1, warm.1) == (0, 40));
    }
}

#[test]
fn caches_that_cannot_be_made_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let split = split(folder.path());
    let error = Loader::new(&config(&split, Some(cache(0, 1000)))).err().unwrap();
    assert!(matches!(error, Error::Zero { option: "decoded_cache" }), "{error}");
    let mut absent = cache(20, 1000);
    absent.path = Some(folder.path().join("absent"));
    let error = Loader::new(&config(&split, Some(absent))).err().unwrap();
    assert!(error.to_string().contains("absent"), "{error}");
    let mut small = config(&split, Some(cache(20, 1 << 30)));
    small.memory = Some(1 << 20);
    let error = Loader::new(&small).err().unwrap().to_string();
    assert!(error.contains("1.1 GB decoded images"), "{error}");
}
