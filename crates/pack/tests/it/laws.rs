//! Properties tested with random sources and options: packing an export gives the same records, and a pack that was
//! stopped any number of times produces the same bytes.

use crate::support::{check, jpeg, put, snapshot};
use shardtool_pack::{
    Error, ExportKind, ExportOptions, Options, Progress, ReshardOptions, Shards, Step, export, pack, reshard,
};
use shardtool_read::Dataset;
use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

/// Makes class folders with 1 to 30 images, at any depth, and returns options for them.
fn random_source(random: &mut Random, root: &Path) -> Options {
    for i in 0..=random.below(30) {
        let class = ["cat", "dog", "emu"][random.below(3) as usize];
        let folder = ["", "deep/", "v1.0/"][random.below(3) as usize];
        let (width, height) = (8 + random.below(90) as u32, 8 + random.below(90) as u32);
        put(&root.join(format!("photos/{class}/{folder}{i:03}.jpg")), &jpeg(i as u32, width, height));
    }
    with!(
        Options::new(root.join("photos"), root.join("set")),
        shards = if random.below(2) == 0 {
            Shards::Count(1 + random.below(6))
        } else {
            Shards::Size(1000 + random.below(9000))
        },
        seed = (random.below(3) > 0).then(|| random.below(100)),
        jobs = NonZeroUsize::new(1 + random.below(4) as usize).unwrap(),
        entry_points = random.below(2) == 0,
    )
}

#[test]
fn packing_an_export_gives_the_same_records() {
    for seed in 0..12 {
        let temp = tempfile::tempdir().unwrap();
        let mut random = Random(seed);
        let options = random_source(&mut random, temp.path());
        pack(&options, &()).unwrap();
        let expected = check(&options.destination, "train");
        let dataset = Dataset::open(&options.destination).unwrap();
        let kinds = [
            ExportKind::Webdataset,
            ExportKind::Folder,
            #[cfg(feature = "parquet")]
            ExportKind::Parquet,
        ];
        for (number, kind) in kinds.into_iter().enumerate() {
            let (out, again) = (temp.path().join(format!("out-{number}")), temp.path().join(format!("again-{number}")));
            let exported = export(dataset.splits(), &out, &ExportOptions::new(kind), &()).unwrap();
            assert_eq!((exported.records, exported.refused.len()), (expected.len() as u64, 0));
            pack(&Options::new(&out, &again), &()).unwrap();
            assert!(check(&again, "train") == expected, "seed {seed}, {kind:?}");
        }
        let out = temp.path().join("resharded");
        let other = with!(ReshardOptions::default(), shards = Shards::Count(1 + random.below(5)), seed = Some(seed));
        reshard(dataset.splits(), &out, &other, &()).unwrap();
        assert!(check(&out, "train") == expected, "seed {seed}, resharded");
    }
}

/// Stops a run after a number of steps.
struct StopAfter(AtomicU64);

impl Progress for StopAfter {
    fn after(&self, _: Step) -> ControlFlow<()> {
        if self.0.fetch_sub(1, SeqCst) == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn stops_at_any_steps_leave_the_bytes_unchanged() {
    for seed in 100..116 {
        let temp = tempfile::tempdir().unwrap();
        let mut random = Random(seed);
        let options = random_source(&mut random, temp.path());
        put(&options.source.join("cat/text.jpg"), b"not an image");
        pack(&options, &()).unwrap();
        let expected = snapshot(&options.destination);
        fs::remove_dir_all(&options.destination).unwrap();
        let mut stops = 0;
        loop {
            let jobs = NonZeroUsize::new(1 + random.below(4) as usize).unwrap();
            match pack(&with!(options.clone(), jobs = jobs), &StopAfter(AtomicU64::new(random.below(5)))) {
                Ok(_) => break,
                Err(error) => assert!(matches!(error, Error::Stopped), "{error}"),
            }
            stops += 1;
            assert!(stops < 1000, "a pack that never ends");
        }
        assert!(stops > 0);
        assert!(snapshot(&options.destination) == expected, "seed {seed}, stopped {stops} times");
    }
}
