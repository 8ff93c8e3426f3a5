//! Mixes the rows of a complete batch: MixUp, CutMix and mosaics, with soft labels; and copy-paste.
//!
//! What a batch gets is a pure function of seed, epoch and the position of its first row. A row is mixed with the next row that
//! has a sample, the last one with the first. Rows without a sample stay as they are, and their soft labels are zero.
//!
//! | module | responsibility |
//! |---|---|
//! | this one | options, and what is drawn for a batch |
//! | `batch_mix` | the rows that each row of a batch shows, and its soft label |
//! | `copy_paste` | objects of one row that are pasted on another |
//! | `pairs` | which rows are mixed with which, and their shares |
//! | `pixels` | mixes the pixels of a batch in place |
//! | `planes` | how the pixels of a row lie in memory |
//! | `row_mix` | the same for one row, as numbers for a device that mixes while it normalises |

mod batch_mix;
mod copy_paste;
mod pairs;
mod pixels;
mod row_mix;

pub use batch_mix::BatchMix;
pub(crate) use copy_paste::Pastes;
pub(crate) use pixels::Pixels;
pub use row_mix::RowMix;

use crate::error::{Error, Result};
use crate::mosaic::Mosaics;
use crate::options::{BatchTransform, CopyPaste, Mosaic, Objects, Pairs as PairsOptions};
use batch_mix::Drawn;
use pairs::Pairs;
use shardtool_decode::{Random, beta};
use shardtool_order::{Domain, Rng, key};

/// How the rows of a batch are mixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixing {
    /// One of these is drawn for each batch, with equal probability. At least one.
    pub transforms: Vec<BatchTransform>,
    /// The number of classes: labels are 0 to `classes` − 1, and soft labels `[N, classes]`. 0 leaves labels as they are, for
    /// images whose objects or pixels have labels.
    pub classes: u32,
}

/// What is done to a batch.
pub(crate) enum BatchChange {
    /// Its rows are mixed.
    Mix(BatchMix),
    /// Objects are pasted.
    Paste(Pastes),
}

impl Mixing {
    /// Returns how rows are mixed; `None` if they are not. `classes` is the number of classes that batches name. Unless the number of
    /// classes is given, images with objects keep their labels, and so do those without `labels`, whose classes need not be known.
    ///
    /// # Errors
    /// [`Error::Mixing`] if a parameter is out of range, or the number of classes is not known.
    pub(crate) fn resolve(
        transforms: &[BatchTransform],
        objects: Option<&Objects>,
        classes: usize,
        labels: bool,
    ) -> Result<Option<Self>> {
        if transforms.is_empty() {
            return Ok(None);
        }
        let refused = |reason| Err(Error::Mixing { reason });
        let pastes = Mixing { transforms: transforms.to_vec(), classes: 0 }.pastes();
        match objects {
            None if pastes => return refused("`CopyPaste` pastes objects by their masks: add `Objects` with `masks`"),
            Some(objects) if pastes && !objects.masks => {
                return refused("`CopyPaste` pastes objects by their masks: give `masks` to `Objects`, which is false");
            }
            _ => {}
        }
        let soft = labels && objects.is_none();
        let mut given = transforms.iter().filter_map(|transform| transform.num_classes());
        let first = given.next();
        if given.any(|other| Some(other) != first) {
            return refused("`num_classes` differs between the transforms: give one");
        }
        let classes = first.unwrap_or(if soft { u32::try_from(classes).unwrap_or(u32::MAX) } else { 0 });
        if classes == 0 && soft {
            return refused("the dataset names no classes: give `num_classes`");
        }
        let mixing = Mixing { transforms: transforms.to_vec(), classes };
        mixing.check().map_err(|reason| Error::Mixing { reason })?;
        Ok(Some(mixing))
    }

    /// Checks that there is a transform, and the parameters of each.
    pub(crate) fn check(&self) -> std::result::Result<(), &'static str> {
        if self.transforms.is_empty() {
            return Err("no transform is given");
        }
        self.transforms.iter().try_for_each(|transform| transform.check())
    }

    /// Returns how many rows of an array of a batch are copied while it is mixed, at most: by one of the transforms, if it is not left
    /// to a device.
    pub(crate) fn copies(&self, on_device: bool) -> u64 {
        let of = |transform: &BatchTransform| match transform {
            BatchTransform::CopyPaste(_) => 1,
            _ if on_device => 0,
            BatchTransform::Mosaic(_) => 3,
            BatchTransform::MixUp(_) | BatchTransform::CutMix(_) => 1,
        };
        self.transforms.iter().map(of).max().unwrap_or(0)
    }

    /// Returns whether objects may be pasted, which takes a byte for each pixel of a batch.
    pub(crate) fn pastes(&self) -> bool {
        self.transforms.iter().any(|transform| matches!(transform, BatchTransform::CopyPaste(_)))
    }

    /// Draws for the batch whose first row has position `first` in its replica's epoch, and images of `size` (width, height).
    /// `valid` says which rows have a sample, `[N]`.
    ///
    /// # Errors
    /// [`Error::Mixing`] if a transform is missing, a parameter is out of range, the images have no pixels, or objects are pasted,
    /// which takes their masks.
    pub fn draw(&self, seed: u64, epoch: u64, first: u64, size: (u32, u32), valid: &[bool]) -> Result<BatchMix> {
        match self.draw_change(seed, epoch, first, size, valid)? {
            BatchChange::Mix(mix) => Ok(mix),
            BatchChange::Paste(_) => {
                Err(Error::Mixing { reason: "`CopyPaste` takes the masks of objects, which only a loader has" })
            }
        }
    }

    /// Draws for a batch, as [`draw`](Mixing::draw) does.
    ///
    /// # Errors
    /// [`Error::Mixing`] if a transform is missing, a parameter is out of range, or the images have no pixels.
    pub(crate) fn draw_change(
        &self,
        seed: u64,
        epoch: u64,
        first: u64,
        size: (u32, u32),
        valid: &[bool],
    ) -> Result<BatchChange> {
        let (width, height) = size;
        self.check().map_err(|reason| Error::Mixing { reason })?;
        if width == 0 || height == 0 {
            return Err(Error::Mixing { reason: "the images have no pixels" });
        }
        let mut random = Stream(Rng::new(key(Domain::Mix, seed, epoch, first)));
        let which = random.below(self.transforms.len() as u64) as usize;
        let mut share = |alpha| beta(alpha, &mut random);
        let drawn = match self.transforms[which] {
            BatchTransform::Mosaic(Mosaic { p, center, .. }) => {
                Drawn::Mosaics(Mosaics::draw(p, center, size, valid, &mut random))
            }
            BatchTransform::CopyPaste(CopyPaste { p }) => {
                return Ok(BatchChange::Paste(Pastes::draw(p, size, valid, &mut random.0)));
            }
            BatchTransform::MixUp(PairsOptions { alpha, .. }) => Drawn::Pairs(Pairs::new(share(alpha), None, valid)),
            BatchTransform::CutMix(PairsOptions { alpha, .. }) => {
                let share = share(alpha);
                // torchvision's `CutMix.make_params`.
                let half = 0.5 * (1.0 - share).sqrt();
                let mut span = |side: u32| {
                    let centre = random.below(side.into());
                    let half = (half * f64::from(side)) as u64;
                    centre.saturating_sub(half) as usize..(centre + half).min(side.into()) as usize
                };
                let (columns, rows) = (span(width), span(height));
                let area = columns.len() as f64 * rows.len() as f64;
                let share = 1.0 - area / (f64::from(width) * f64::from(height));
                Drawn::Pairs(Pairs::new(share, Some((columns, rows)), valid))
            }
        };
        Ok(BatchChange::Mix(BatchMix::new(size, drawn)))
    }
}

/// The stream of a batch.
struct Stream(Rng);

impl Random for Stream {
    fn unit(&mut self) -> f64 {
        self.0.next_f64()
    }

    fn below(&mut self, n: u64) -> u64 {
        u64::from(self.0.below(n as u32))
    }
}
