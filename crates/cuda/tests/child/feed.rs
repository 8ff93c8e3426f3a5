//! A feed of synthetic batches in pinned memory, whose pixels depend on the batch's number, and which the device may mix.

use shardtool_cuda::{Column, Feed, HostArray, HostBatch, PinnedAlloc, Rows};
use shardtool_load::{BatchAlloc, BatchBuffer, BatchMix, Mixing, Values};
use std::sync::mpsc::{Receiver, Sender, channel};

type Pinned = Box<dyn BatchBuffer>;

pub(crate) struct Made {
    shape: [usize; 4],
    per_epoch: u64,
    epochs: u64,
    step: u64,
    at: u64,
    free: (Sender<Pinned>, Receiver<Pinned>),
    /// How batches are mixed, and which rows then have a sample.
    pub(crate) mixing: Option<(Mixing, Vec<bool>)>,
}

pub(crate) struct MadeBatch {
    buffer: Option<Pinned>,
    back: Sender<Pinned>,
    shape: [usize; 4],
    rows: Rows,
    mix: Option<BatchMix>,
}

/// The byte at `i` of batch `batch`.
pub(crate) fn pixel(batch: u64, i: usize) -> u8 {
    (i as u64 ^ (i as u64 >> 7)).wrapping_mul(37).wrapping_add(batch * 59) as u8
}

impl Made {
    /// A feed of `per_epoch` batches per epoch, from three pinned buffers that are reused.
    pub(crate) fn new(
        pinned: &PinnedAlloc,
        shape: [usize; 4],
        per_epoch: u64,
        epochs: u64,
    ) -> shardtool_cuda::Result<Self> {
        let free = channel();
        for _ in 0..3 {
            let buffer =
                pinned.alloc(shape.iter().product()).map_err(|e| *e.downcast::<shardtool_cuda::Error>().unwrap())?;
            free.0.send(buffer).unwrap();
        }
        Ok(Made { shape, per_epoch, epochs, step: 0, at: 0, free, mixing: None })
    }

    /// How batch number `batch` of a feed is mixed.
    pub(crate) fn mix(mixing: &Mixing, [_, h, w, _]: [usize; 4], batch: u64, valid: &[bool]) -> BatchMix {
        mixing.draw(7, 0, batch, (w as u32, h as u32), valid).unwrap()
    }
}

impl Feed for Made {
    type Batch = MadeBatch;

    fn next_batch(&mut self) -> Result<Option<MadeBatch>, shardtool_load::Error> {
        if self.at == self.per_epoch || self.step == self.per_epoch * self.epochs {
            self.at = 0;
            return Ok(None);
        }
        let (batch, n) = (self.step, self.shape[0]);
        self.step += 1;
        self.at += 1;
        let buffer = self.free.1.recv().expect("the feed holds a sender");
        // SAFETY: no batch has this buffer, and it has the length that was allocated.
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.as_ptr().as_ptr(), buffer.len()) };
        bytes.iter_mut().enumerate().for_each(|(i, b)| *b = pixel(batch, i));
        let rows = Rows {
            ids: (0..n as i64).map(|i| batch as i64 * n as i64 + i).collect(),
            valid: (0..n).map(|i| i % 3 != 1).collect(),
            columns: vec![
                Column::new("label", Values::Int64((0..n as i64).map(|i| i + 1000 * batch as i64).collect()), Some(1)),
                Column::new("box", Values::Float((0..2 * n).map(|i| i as f32 / 4.0 + batch as f32).collect()), Some(2)),
            ],
            ..Rows::default()
        };
        let mix = self.mixing.as_ref().map(|(mixing, valid)| Self::mix(mixing, self.shape, batch, valid));
        Ok(Some(MadeBatch { buffer: Some(buffer), back: self.free.0.clone(), shape: self.shape, rows, mix }))
    }
}

impl HostBatch for MadeBatch {
    fn arrays(&self) -> Vec<HostArray<'_>> {
        let buffer = self.buffer.as_ref().expect("taken only by `drop`");
        // SAFETY: written before the batch was created, and not again before the batch is dropped.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.as_ptr().as_ptr(), self.shape.iter().product()) };
        vec![HostArray::images(self.shape, bytes)]
    }

    fn mix(&self) -> Option<&BatchMix> {
        self.mix.as_ref()
    }

    fn rows(&self) -> Rows {
        self.rows.clone()
    }
}

impl Drop for MadeBatch {
    fn drop(&mut self) {
        let _ = self.back.send(self.buffer.take().expect("taken only by `drop`"));
    }
}
