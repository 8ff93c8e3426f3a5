//! Clips in an object store: the batches of files, from requests for the frames alone.

use image::RgbImage;
use shardtool_decode::{Pipeline, Transform};
use shardtool_load::{Clip, Config, Loader, OnBad, SampleError};
use shardtool_order::Order;
use shardtool_pack::{Options, SourceKind, pack};
use shardtool_read::{Dataset, Split};
use shardtool_store_server::{Fault, Faults, Options as Serve, Server};
use std::num::NonZeroU32;
use std::path::Path;

const VIDEOS: u32 = 10;
const FRAMES: u32 = 60;
const EPOCHS: u64 = 4;

/// Packs videos of noise, whose frames are therefore several kilobytes each.
fn videos(root: &Path) {
    let mut state = 7u32;
    for (video, number) in (0..VIDEOS).flat_map(|video| (0..FRAMES).map(move |number| (video, number))) {
        let folder = root.join(format!("videos/{video}"));
        std::fs::create_dir_all(&folder).unwrap();
        let frame = RgbImage::from_fn(48, 36, |_, _| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            image::Rgb([(state >> 24) as u8, number as u8, video as u8])
        });
        frame.save(folder.join(format!("{number}.png"))).unwrap();
    }
    let mut options = Options::new(root.join("videos"), root.join("bucket/dataset"));
    options.from = Some(SourceKind::Clips);
    pack(&options, &()).unwrap();
}

fn serve(root: &Path, faults: Faults) -> (Server, Split) {
    let server = Server::start(root, Serve { anonymous: true, faults, ..Serve::default() }).unwrap();
    let split = open(Path::new(&format!("{}/bucket/dataset", server.endpoint())));
    (server, split)
}

fn open(path: &Path) -> Split {
    Dataset::open(path).unwrap().split("train").unwrap().clone()
}

fn config(split: Split, order: Order) -> Config {
    let middle = Pipeline::new(vec![Transform::CenterCrop { size: [20, 24] }]).unwrap();
    let mut clip = Clip::new("frames", middle, 2);
    clip.stride = 5;
    let mut config = Config::new(split, [clip], 3);
    (config.order, config.workers, config.epochs, config.seed) = (order, Some(2), Some(EPOCHS), 11);
    config.bad_samples.on_bad = Some(OnBad::Mask);
    config
}

/// Ids and pixels of all rows of an epoch.
fn epoch(loader: &mut Loader) -> Vec<(Vec<i64>, Vec<u8>)> {
    let mut rows = vec![];
    while let Some(batch) = loader.next_batch().unwrap() {
        rows.push((batch.ids().to_vec(), batch.pictures().next().unwrap().bytes.to_vec()));
    }
    rows
}

fn orders() -> [Order; 3] {
    let size = |n| NonZeroU32::new(n).unwrap();
    [Order::Sequential, Order::Shuffled, Order::Interleaved { run: size(2), window: size(3) }]
}

#[test]
fn only_the_frames_that_are_needed_are_requested() {
    let temp = tempfile::tempdir().unwrap();
    videos(temp.path());
    let local = open(&temp.path().join("bucket/dataset"));
    let stored = local.entry().bytes();
    let (server, remote) = serve(temp.path(), Faults::default());
    for order in orders() {
        let expected = epoch(&mut Loader::new(&config(local.clone(), order)).unwrap());
        let config = config(remote.clone(), order);
        let planned = Loader::epoch_requests(&config).unwrap();
        assert!(!planned.estimated && planned.bytes < stored / 15, "{planned:?} of {stored} bytes");
        let before = server.bytes();
        let mut loader = Loader::new(&config).unwrap();
        assert!(epoch(&mut loader) == expected, "{order}");
        (1..EPOCHS).for_each(|_| drop(epoch(&mut loader)));
        let sent = server.bytes() - before;
        // One request of sampled records is made first.
        assert!(sent < stored + stored * EPOCHS / 10, "{order}: {sent} bytes for {EPOCHS} epochs of {stored} bytes");
    }
}

#[test]
fn wrong_bytes_of_a_frame_are_requested_again() {
    let temp = tempfile::tempdir().unwrap();
    videos(temp.path());
    let local = open(&temp.path().join("bucket/dataset"));
    let (mut injected, order) = (0, Order::Shuffled);
    for fault in [Fault::WrongByte, Fault::Cut, Fault::Unavailable] {
        let (server, remote) =
            serve(temp.path(), Faults { seed: 3, one_in: 4, only: Some(fault), ..Faults::default() });
        let mut loader = Loader::new(&config(remote, order)).unwrap();
        let mut expected = Loader::new(&config(local.clone(), order)).unwrap();
        for number in 0..EPOCHS {
            assert!(epoch(&mut loader) == epoch(&mut expected), "{fault:?}, epoch {number}");
        }
        assert!(loader.bad_samples().is_empty(), "{fault:?}");
        injected += server.injected();
    }
    assert!(injected > 20, "{injected} answers were changed");
}

#[test]
fn damage_of_a_frame_in_the_store_is_a_bad_sample_by_its_number() {
    let temp = tempfile::tempdir().unwrap();
    videos(temp.path());
    let dataset = temp.path().join("bucket/dataset");
    let split = open(&dataset);
    let (number, row) = split.locate(4).unwrap();
    let shard = split.shard(number).unwrap();
    let frames = shard.value_ranges(row, "frames").unwrap().unwrap();
    let path = shard.path().to_owned();
    let mut bytes = std::fs::read(&path).unwrap();
    for frame in &frames {
        bytes[shard.value_in_shard(row, *frame).unwrap().start as usize + 100] ^= 1;
    }
    std::fs::write(&path, bytes).unwrap();
    let (_server, remote) = serve(temp.path(), Faults::default());
    let mut config = config(remote, Order::Sequential);
    config.epochs = Some(1);
    let mut loader = Loader::new(&config).unwrap();
    epoch(&mut loader);
    let bad = loader.bad_samples();
    assert_eq!(bad.len(), 1, "{bad:?}");
    assert!(matches!(bad[0].error, SampleError::FrameBytes { ref feature, .. } if feature == "frames"), "{bad:?}");
    assert_eq!(bad[0].id, 4);
}
