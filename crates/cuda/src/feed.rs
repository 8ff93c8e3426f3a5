use shardtool_load::{Batch, Loader, Values};
use shardtool_order::ResumeState;

/// Where batches come from, on the host: a [`Loader`], or anything else that makes `[N, H, W, 3]` pixels.
pub trait Feed: Send + 'static {
    /// What it makes.
    type Batch: HostBatch;

    /// The next batch; `None` at an epoch's end, after which the next epoch begins.
    ///
    /// # Errors
    /// Those of the loader. The call after an error goes on where that can be done.
    fn next_batch(&mut self) -> Result<Option<Self::Batch>, shardtool_load::Error>;
}

/// A batch in host memory. It is kept until its pixels are on the device, then dropped.
pub trait HostBatch: Send + 'static {
    /// Pixels, `[N, H, W, 3]` u8; copied while the host goes on where they are pinned. `None` where there are no images.
    fn images(&self) -> Option<&[u8]>;

    /// `[N, H, W, 3]`.
    fn shape(&self) -> Option<[usize; 4]>;

    /// Everything beside the pixels.
    fn rows(&self) -> Rows;
}

/// What a batch says about its rows, beside their pixels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// Id of each row's sample, `[N]`; −1 where a row shows none.
    pub ids: Vec<i64>,
    /// Whether each row shows a sample, `[N]`.
    pub valid: Vec<bool>,
    /// Name, values, and for columns of numbers how many a row has. Numbers travel to the device; ragged values and bytes
    /// stay on the host.
    pub columns: Vec<(String, Values, Option<usize>)>,
    /// The epoch, from 0.
    pub epoch: u64,
    /// Positions delivered before this batch.
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

    fn rows(&self) -> Rows {
        let column = |name: &str| {
            let values = self.column(name).expect("a batch has the columns that it names").clone();
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
