use crate::part::{Element, Part};
use shardtool_decode::PixelFormat;
use shardtool_load::{Batch, BatchMix, Loader, ObjectRole, Pictures, Values};
use shardtool_order::ResumeState;

/// A source of batches on the host: a [`Loader`], or anything else that makes arrays.
pub trait Feed: Send + 'static {
    /// Type of its batches.
    type Batch: HostBatch;

    /// Returns the next batch, or `None` at the end of an epoch, after which the next epoch begins.
    ///
    /// # Errors
    /// Those of the loader. The next call continues if that is possible.
    fn next_batch(&mut self) -> Result<Option<Self::Batch>, shardtool_load::Error>;
}

/// A batch in host memory. It is kept until its arrays are on the device, then dropped.
pub trait HostBatch: Send + 'static {
    /// Returns the large arrays, which are copied from where they are: images, masks, arrays. Pinned memory is copied asynchronously.
    /// Every call returns the same arrays.
    fn arrays(&self) -> Vec<HostArray<'_>>;

    /// Returns how the device mixes the rows of the first array, which it normalises; `None` leaves them as they are. A feed
    /// whose first batch returns `None` must do so for all.
    fn mix(&self) -> Option<&BatchMix> {
        None
    }

    /// Returns everything except the large arrays.
    fn rows(&self) -> Rows;

    /// Returns the length of the arrays that ragged columns become ([`Config::padded`](crate::Config::padded)); `None` leaves
    /// them ragged.
    fn row_length(&self) -> Option<usize> {
        None
    }
}

/// A large array of a [`HostBatch`].
#[derive(Debug, Clone)]
pub struct HostArray<'b> {
    /// Its name.
    pub part: Part<'b>,
    /// Type of the values.
    pub element: Element,
    /// `[N, …]`.
    pub shape: Vec<usize>,
    /// The values, little-endian, in C order.
    pub bytes: &'b [u8],
    /// Bytes of the largest such array that the feed may deliver: device memory is allocated for that many at once.
    pub largest: usize,
    /// Whether the device normalises it, as [`Config::output`](crate::Config::output) says: u8 RGB, `[…, H, W, 3]`. Other arrays are
    /// delivered as they are.
    pub normalize: bool,
}

impl<'b> HostArray<'b> {
    /// Returns an array that is delivered as it is.
    pub fn new(part: Part<'b>, element: Element, shape: Vec<usize>, bytes: &'b [u8]) -> Self {
        HostArray { part, element, shape, bytes, largest: bytes.len(), normalize: false }
    }

    /// Returns u8 images `[N, H, W, 3]`, which the device normalises.
    pub fn images(shape: [usize; 4], bytes: &'b [u8]) -> Self {
        let part = Part::Picture { feature: None, view: "" };
        HostArray { normalize: true, ..Self::new(part, Element::U8, shape.to_vec(), bytes) }
    }
}

/// Everything that a batch has except its large arrays, on the host. Numbers are uploaded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rows {
    /// Id of each row's sample, `[N]`; −1 in rows without a sample. Of packed rows, the id of each sample.
    pub ids: Vec<i64>,
    /// Whether the row has a sample, `[N]`.
    pub valid: Vec<bool>,
    /// The columns. Byte strings stay on the host.
    pub columns: Vec<Column>,
    /// Which samples are in which row; `None` without packing.
    pub packed: Option<PackedRows>,
    /// The epoch, from 0.
    pub epoch: u64,
    /// Positions of the epoch delivered before this batch.
    pub position: u64,
    /// The state to resume from after this batch.
    pub state_after: Option<ResumeState>,
}

/// A column of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The feature.
    pub feature: String,
    /// The values.
    pub values: Values,
    /// Numbers of each row; `None` for ragged columns and byte strings.
    pub width: Option<usize>,
    /// What it holds of the objects in the image; `None` for other columns.
    pub role: Option<ObjectRole>,
    /// The shape of those values of a ragged column that belong together; `[]` if each is one of its own.
    pub item: Vec<usize>,
}

impl Column {
    /// Returns a column that does not describe objects.
    pub fn new(feature: impl Into<String>, values: Values, width: Option<usize>) -> Self {
        Column { feature: feature.into(), values, width, role: None, item: vec![] }
    }
}

/// The samples of packed rows.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedRows {
    /// `[N + 1]`: the samples of row i are `offsets[i]..offsets[i + 1]`, in the order of [`Rows::ids`].
    pub offsets: Vec<i64>,
    /// The tokens of each sample.
    pub tokens: Vec<i64>,
    /// V, the tokens of a row.
    pub capacity: usize,
}

impl Feed for Loader {
    type Batch = Batch;

    fn next_batch(&mut self) -> Result<Option<Batch>, shardtool_load::Error> {
        Loader::next_batch(self)
    }
}

/// Returns an array of images.
fn picture(array: Pictures<'_>) -> HostArray<'_> {
    let Pictures { feature, view, pixel_format, output, values, buffer, bytes, .. } = array;
    let element = output.map_or(pixel_format.depth.into(), |output| output.dtype().into());
    let normalize = output.is_none() && !values && pixel_format == PixelFormat::RGB8;
    let array = HostArray::new(Part::Picture { feature, view }, element, array.dimensions(), bytes);
    HostArray { largest: buffer.len(), normalize, ..array }
}

/// u8 RGB images are normalised on the device; what the workers normalised, and all other arrays, are delivered as they are.
impl HostBatch for Batch {
    fn arrays(&self) -> Vec<HostArray<'_>> {
        let mut arrays: Vec<_> = self.pictures().map(picture).collect();
        let masks = self.masks().map(|mask| (Part::Mask(mask.feature), mask));
        arrays.extend(masks.chain(self.pixel_mask().map(|mask| (Part::PixelMask, mask))).map(|(part, mask)| {
            let array = HostArray::new(part, mask.dtype.into(), mask.shape.to_vec(), mask.bytes);
            HostArray { largest: mask.buffer.len(), ..array }
        }));
        arrays.extend(self.arrays().map(|array| {
            let part = Part::Array(array.feature);
            let largest = array.buffer.len();
            HostArray { largest, ..HostArray::new(part, array.dtype.into(), array.shape, array.bytes) }
        }));
        arrays
    }

    fn mix(&self) -> Option<&BatchMix> {
        Batch::mix(self)
    }

    fn rows(&self) -> Rows {
        let column = |name: &str| {
            let values = self.column(name).expect("`columns` returns names of columns").clone();
            Column {
                role: self.column_role(name),
                item: self.column_item(name),
                ..Column::new(name, values, self.column_width(name))
            }
        };
        Rows {
            ids: self.ids().to_vec(),
            valid: self.valid().to_vec(),
            columns: self.columns().map(column).collect(),
            packed: self.packed().map(|packed| PackedRows {
                offsets: packed.offsets.to_vec(),
                tokens: packed.tokens.to_vec(),
                capacity: packed.capacity,
            }),
            epoch: self.epoch(),
            position: self.position(),
            state_after: Some(self.state_after()),
        }
    }

    fn row_length(&self) -> Option<usize> {
        Batch::row_length(self)
    }
}
