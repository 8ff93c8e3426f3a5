//! Crops of large arrays in an object store: the batches of files, from requests for the chunks that they meet.

use crate::arrays::{config, group, rows};
use crate::arrays_dataset::{Stored, open, write};
use shardtool_load::{Config, Loader, OnBad, RaggedArrays, Select};
use shardtool_order::Order;
use shardtool_read::{Access, Dataset, Split};
use shardtool_store_server::{Fault, Faults, Options as Serve, Server};
use std::num::NonZeroU64;
use std::path::Path;

const EPOCHS: u64 = 6;

/// Five records with a volume and its label map, of 27 and 12 chunks, whose shapes differ from record to record.
fn volumes(root: &Path) -> Split {
    let folder = root.join("bucket/set");
    let mut state = 5u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as u16
    };
    let mut record = |n: i64| {
        let (shape, codec) = ([90 + n, 96, 96 - n], if n % 2 == 0 { "zstd" } else { "raw" });
        let elements: Vec<u16> = (0..shape.iter().product()).map(|_| noise()).collect();
        let labels: Vec<u16> = elements.iter().map(|element| element % 3).collect();
        vec![
            Stored::u16("ct", &shape, &[32; 3], codec, &elements),
            Stored::u16("seg", &shape, &[32, 64, 64], codec, &labels),
        ]
    };
    write(&folder, &["ct", "seg"], &(0..5).map(&mut record).collect::<Vec<_>>(), None);
    open(&folder, Access::Mmap)
}

fn serve(root: &Path, faults: Faults) -> (Server, Split) {
    let server = Server::start(root, Serve { anonymous: true, faults, ..Serve::default() }).unwrap();
    let dataset = Dataset::open(Path::new(&format!("{}/bucket/set", server.endpoint()))).unwrap();
    (server, dataset.split("train").unwrap().clone())
}

fn crops(split: &Split, order: Order) -> Config {
    let mut config = config(split, vec![group(&["ct", "seg"], &[Some(20); 3])]);
    (config.order, config.bad_samples.on_bad, config.batch_size) = (order, Some(OnBad::Mask), 2);
    (config.epochs, config.workers) = (Some(EPOCHS), Some(2));
    config
}

/// A batch: which rows are valid, and the elements of both arrays by row.
#[derive(PartialEq)]
struct Delivered {
    valid: Vec<bool>,
    ct: Vec<Vec<u16>>,
    seg: Vec<Vec<u16>>,
}

fn epoch(loader: &mut Loader) -> Vec<Delivered> {
    let mut batches = vec![];
    while let Some(batch) = loader.next_batch().unwrap() {
        let (ct, seg) = (rows(&batch, "ct").1, rows(&batch, "seg").1);
        batches.push(Delivered { valid: batch.valid().to_vec(), ct, seg });
    }
    batches
}

#[test]
fn only_the_chunks_that_crops_meet_are_requested() {
    let temp = tempfile::tempdir().unwrap();
    let local = volumes(temp.path());
    let (server, remote) = serve(temp.path(), Faults::default());
    let stored = local.entry().bytes();
    for order in [Order::Sequential, Order::Shuffled] {
        let mut expected = Loader::new(&crops(&local, order)).unwrap();
        let before = server.bytes();
        let mut loader = Loader::new(&crops(&remote, order)).unwrap();
        for number in 0..EPOCHS {
            assert!(epoch(&mut loader) == epoch(&mut expected), "{order}, epoch {number}");
        }
        let sent = server.bytes() - before;
        // One request of sampled records is made first.
        assert!(sent < stored + stored * EPOCHS / 2, "{order}: {sent} bytes for {EPOCHS} epochs of {stored} bytes");
        assert!(loader.bad_samples().is_empty() && expected.bad_samples().is_empty());
    }
}

#[test]
fn only_the_chunks_of_a_window_are_requested() {
    let temp = tempfile::tempdir().unwrap();
    let record = |n: i64| {
        let elements: Vec<u16> = (0..96 * (9_000 + n)).map(|at| (at * 31 + n) as u16).collect();
        vec![Stored::u16("ct", &[9_000 + n, 96], &[512, 96], "raw", &elements)]
    };
    let folder = temp.path().join("bucket/set");
    write(&folder, &["ct"], &(0..5).map(record).collect::<Vec<_>>(), None);
    let local = open(&folder, Access::Mmap);
    let (server, remote) = serve(temp.path(), Faults::default());
    let windows = |split: &Split, select: Select| {
        let mut arrays = RaggedArrays::new(vec!["ct".to_owned()], NonZeroU64::new(8).unwrap());
        arrays.select = select;
        let mut config = crops(split, Order::Shuffled);
        config.fields = vec![arrays.into()];
        config
    };
    let mut sent = vec![];
    for select in [Select::Window, Select::Subset] {
        let mut expected = Loader::new(&windows(&local, select)).unwrap();
        let before = server.bytes();
        let mut loader = Loader::new(&windows(&remote, select)).unwrap();
        while let Some(batch) = loader.next_batch().unwrap() {
            assert!(batch.valid()[0]);
            assert_eq!(rows(&batch, "ct"), rows(&expected.next_batch().unwrap().unwrap(), "ct"));
        }
        sent.push(server.bytes() - before);
    }
    assert!(sent[0] < sent[1] / 4, "{sent:?} bytes");
}

#[test]
fn wrong_bytes_of_a_chunk_are_requested_again() {
    let temp = tempfile::tempdir().unwrap();
    let local = volumes(temp.path());
    let mut injected = 0;
    for fault in [Fault::WrongByte, Fault::Cut] {
        let (server, remote) =
            serve(temp.path(), Faults { seed: 9, one_in: 4, only: Some(fault), ..Faults::default() });
        let mut loader = Loader::new(&crops(&remote, Order::Shuffled)).unwrap();
        let mut expected = Loader::new(&crops(&local, Order::Shuffled)).unwrap();
        for number in 0..EPOCHS {
            assert!(epoch(&mut loader) == epoch(&mut expected), "{fault:?}, epoch {number}");
        }
        assert!(loader.bad_samples().is_empty(), "{fault:?}");
        injected += server.injected();
    }
    assert!(injected > 20, "{injected} answers were changed");
}

#[test]
fn damage_in_the_store_costs_the_crops_that_meet_it() {
    let temp = tempfile::tempdir().unwrap();
    let local = volumes(temp.path());
    let (number, row) = local.locate(3).unwrap();
    let shard = local.shard(number).unwrap();
    let chunks = shard.value_ranges(row, "ct").unwrap().unwrap();
    let path = shard.path().to_owned();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[shard.value_in_shard(row, chunks[13]).unwrap().start as usize + 50] ^= 1;
    // Another file, since the first one is mapped.
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let local = open(&temp.path().join("bucket/set"), Access::Mmap);
    let (_server, remote) = serve(temp.path(), Faults::default());
    let mut loader = Loader::new(&crops(&remote, Order::Sequential)).unwrap();
    let mut expected = Loader::new(&crops(&local, Order::Sequential)).unwrap();
    let mut valid = vec![];
    for number in 0..EPOCHS {
        let found = epoch(&mut loader);
        assert!(found == epoch(&mut expected), "epoch {number}");
        valid.extend(found.into_iter().flat_map(|batch| batch.valid));
    }
    // The last batch of each epoch has a row without a sample.
    let bad = valid.iter().filter(|valid| !**valid).count() - EPOCHS as usize;
    assert!(bad > 0 && bad < EPOCHS as usize, "{valid:?}");
}
