use shardtool_load::{Batch, BatchMix, Loader, Values};
use shardtool_order::ResumeState;

/// A source of batches on the host: a [`Loader`], or anything else that makes `[N, H, W, 3]` pixels.
pub trait Feed: Send + 'static {
    /// Type of its batches.
    type Batch: HostBatch;

    /// Returns the next batch, or `None` at the end of an epoch, after which the next epoch begins.
    ///
    /// # Errors
    /// Those of the loader. The next call continues if that is possible.
    fn next_batch(&mut self) -> Result<Option<Self::Batch>, shardtool_load::Error>;
}

/// A batch in host memory. It is kept until its pixels are on the device, then dropped.
pub trait HostBatch: Send + 'static {
    /// Returns the pixels, `[N, H, W, 3]` u8, or `None` if the batch has no images. Pinned memory is copied
    /// asynchronously.
    fn images(&self) -> Option<&[u8]>;

    /// Returns `[N, H, W, 3]`.
    fn shape(&self) -> Option<[usize; 4]>;

    /// Returns how the device mixes the rows while it normalises them; `None` leaves them as they are. A feed whose first
    /// batch returns `None` must do so for all.
    fn mix(&self) -> Option<&BatchMix> {
        None
    }

    /// Returns everything except the pixels.
    fn rows(&self) -> Rows;
}

/// Everything that a batch has except pixels, on the host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// Id of each row's sample, `[N]`; −1 in rows without a sample.
    pub ids: Vec<i64>,
    /// Whether the row has a sample, `[N]`.
    pub valid: Vec<bool>,
    /// Name, values, and, for columns of numbers, how many each row has. Columns of numbers are uploaded; ragged
    /// columns and byte strings stay on the host.
    pub columns: Vec<(String, Values, Option<usize>)>,
    /// The epoch, from 0.
    pub epoch: u64,
    /// Positions of the epoch delivered before this batch.
    pub position: u64,
    /// The state to resume from after this batch.
    pub state_after: Option<ResumeState>,
}

impl Feed for Loader {
    type Batch = Batch;

    fn next_batch(&mut self) -> Result<Option<Batch>, shardtool_load::Error> {
        Loader::next_batch(self)
    }
}

impl HostBatch for Batch {
    fn images(&self) -> Option<&[u8]> {
        Batch::images(self)
    }

    fn shape(&self) -> Option<[usize; 4]> {
        self.image_shape()
    }

    fn mix(&self) -> Option<&BatchMix> {
        Batch::mix(self)
    }

    fn rows(&self) -> Rows {
        let column = |name: &str| {
            let values = self.column(name).expect("`columns` returns names of columns").clone();
            (name.to_owned(), values, self.column_width(name))
        };
        Rows {
            ids: self.ids().to_vec(),
            valid: self.valid().to_vec(),
            columns: self.columns().map(column).collect(),
            epoch: self.epoch(),
            position: self.position(),
            state_after: Some(self.state_after()),
        }
    }
}
