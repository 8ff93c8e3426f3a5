//! A batch that cannot be put together ends the run with an error, and no consumer waits for it.

use crate::dataset;
use crate::samples::photographs;
use shardtool_decode::Pipeline;
use shardtool_load::{BatchAlloc, BatchBuffer, BatchTransform, Config, Error, HostAlloc, Image, Loader};
use shardtool_order::Order;
use shardtool_read::Dataset;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ROWS: usize = 4;

/// Memory that panics the first time that all rows of the third batch are asked for, which mixing does.
struct Watched {
    memory: Box<dyn BatchBuffer>,
    asked: Arc<AtomicUsize>,
}

// SAFETY: as the memory that it wraps, unless it panics.
unsafe impl BatchBuffer for Watched {
    fn as_ptr(&self) -> NonNull<u8> {
        // Mixing asks once, and so does each row.
        let asked = self.asked.fetch_add(1, Ordering::SeqCst);
        assert!(asked != 2 * (ROWS + 1) + ROWS, "no such memory");
        self.memory.as_ptr()
    }

    fn len(&self) -> usize {
        self.memory.len()
    }
}

struct Watching(Arc<AtomicUsize>);

impl BatchAlloc for Watching {
    fn alloc(&self, bytes: usize) -> Result<Box<dyn BatchBuffer>, Box<dyn std::error::Error + Send + Sync>> {
        let memory = HostAlloc.alloc(bytes)?;
        Ok(Box::new(Watched { memory, asked: self.0.clone() }))
    }
}

#[test]
fn panic_while_rows_are_mixed_ends_the_run_and_names_the_batch() {
    let folder = tempfile::tempdir().unwrap();
    dataset::write(folder.path(), "train", &photographs(20), 8);
    let split = Dataset::open(folder.path()).unwrap().split("train").unwrap().clone();
    let mut config = Config::new(split, [Image::new(Pipeline::train(16).unwrap())], ROWS as u32);
    config.batch_transform = vec![BatchTransform::cut_mix(1.0)];
    if let BatchTransform::CutMix(pairs) = &mut config.batch_transform[0] {
        pairs.num_classes = Some(5);
    }
    // One worker makes one batch after the other, each row once.
    (config.order, config.workers, config.prefetch.batches) = (Order::Sequential, Some(1), Some(1));
    config.alloc = Arc::new(Watching(Arc::default()));
    let mut loader = Loader::new(&config).unwrap();
    for first in [0, 4] {
        assert_eq!(loader.next_batch().unwrap().unwrap().ids(), [first, first + 1, first + 2, first + 3]);
    }
    let error = loader.next_batch().unwrap_err();
    let Error::BatchPanic { epoch: 0, position: 8, message } = &error else { panic!("{error}") };
    assert_eq!(message, "no such memory");
    assert!(matches!(loader.next_batch().unwrap_err(), Error::Stopped));
    // The worker lives, and so does the memory of the batch.
    loader.start_epoch(0);
    assert_eq!(loader.next_batch().unwrap().unwrap().ids(), [0, 1, 2, 3]);
}
