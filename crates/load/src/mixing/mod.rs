//! Mixes the rows of a complete batch: MixUp, CutMix and mosaics, with soft labels.
//!
//! What a batch gets is a pure function of seed, epoch and the position of its first row. A row is mixed with the next row that
//! has a sample, the last one with the first. Rows without a sample stay as they are, and their soft labels are zero.
//!
//! | module | responsibility |
//! |---|---|
//! | this one | options, and what is drawn for a batch |
//! | `batch_mix` | the rows that each row of a batch shows, and its soft label |
//! | `pixels` | mixes the pixels of a batch in place |
//! | `row_mix` | the same for one row, as numbers for a device that mixes while it normalises |

mod batch_mix;
mod pixels;
mod row_mix;

pub use batch_mix::BatchMix;
pub(crate) use pixels::Pixels;
pub use row_mix::RowMix;

use crate::error::{Error, Result};
use crate::mosaic::Mosaics;
use batch_mix::{Drawn, Pairs};
use shardtool_decode::{Random, beta};
use shardtool_order::{Domain, Rng, key};

/// How the rows of a batch are mixed.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixing {
    /// One of these is drawn for each batch, with equal probability. At least one.
    pub transforms: Vec<BatchTransform>,
    /// The number of classes: labels are 0 to `classes` − 1, and soft labels `[N, classes]`. 0 leaves labels as they are, for
    /// mosaics of images whose objects have labels.
    pub classes: u32,
}

/// One way of mixing images. MixUp and CutMix mix two, and draw the share of the first from the beta distribution with both
/// parameters `alpha`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BatchTransform {
    /// Each value is the weighted mean of both images (Zhang et al., "mixup: beyond empirical risk minimization", 2018).
    MixUp {
        /// Above 0.
        alpha: f64,
    },
    /// A rectangle is replaced by that of the other image (Yun et al., "CutMix", 2019).
    CutMix {
        /// Above 0.
        alpha: f64,
    },
    /// The image shows parts of itself and of the next three around a point (Bochkovskiy et al., "YOLOv4", 2020). Boxes and
    /// points move along.
    Mosaic {
        /// Probability that a row becomes a mosaic, 0 to 1.
        p: f64,
        /// Where the point may lie, as fractions of width and height: smallest and largest, 0 to 1.
        centre: [f64; 2],
    },
}

impl BatchTransform {
    /// Checks the parameters.
    fn check(self) -> std::result::Result<(), &'static str> {
        match self {
            BatchTransform::MixUp { alpha } | BatchTransform::CutMix { alpha } => {
                match alpha > 0.0 && alpha.is_finite() {
                    true => Ok(()),
                    false => Err("`alpha` must be above 0"),
                }
            }
            BatchTransform::Mosaic { p, centre: [low, high] } => {
                // Comparisons with NaN are false.
                match (0.0..=1.0).contains(&p) && 0.0 <= low && low <= high && high <= 1.0 {
                    true => Ok(()),
                    false => Err("`p` and `centre` of a mosaic must be from 0 to 1"),
                }
            }
        }
    }

    /// Returns whether boxes and points move with the pixels.
    pub(crate) fn moves_objects(self) -> bool {
        matches!(self, BatchTransform::Mosaic { .. })
    }
}

impl Mixing {
    /// Checks that there is a transform, and the parameters of each.
    pub(crate) fn check(&self) -> std::result::Result<(), &'static str> {
        if self.transforms.is_empty() {
            return Err("no transform is given");
        }
        self.transforms.iter().try_for_each(|transform| transform.check())
    }

    /// Returns whether boxes and points move with the pixels, whichever transform is drawn.
    pub(crate) fn moves_objects(&self) -> bool {
        self.transforms.iter().all(|transform| transform.moves_objects())
    }

    /// Returns how many images of a batch are copied while it is mixed, at most.
    pub(crate) fn copies(&self) -> u64 {
        if self.transforms.iter().any(|transform| transform.moves_objects()) { 3 } else { 1 }
    }

    /// Draws for the batch whose first row has position `first` in its replica's epoch, and images of `size` (width, height).
    /// `valid` says which rows have a sample, `[N]`.
    ///
    /// # Errors
    /// [`Error::Mixing`] if there is no transform, a parameter is out of range, or the images have no pixels.
    pub fn draw(&self, seed: u64, epoch: u64, first: u64, size: (u32, u32), valid: &[bool]) -> Result<BatchMix> {
        let (width, height) = size;
        self.check().map_err(|reason| Error::Mixing { reason })?;
        if width == 0 || height == 0 {
            return Err(Error::Mixing { reason: "the images have no pixels" });
        }
        let mut random = Stream(Rng::new(key(Domain::Mix, seed, epoch, first)));
        let which = random.below(self.transforms.len() as u64) as usize;
        let mut share = |alpha| beta(alpha, &mut random);
        let drawn = match self.transforms[which] {
            BatchTransform::Mosaic { p, centre } => Drawn::Mosaics(Mosaics::draw(p, centre, size, valid, &mut random)),
            BatchTransform::MixUp { alpha } => Drawn::Pairs(Pairs::new(share(alpha), None, valid)),
            BatchTransform::CutMix { alpha } => {
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
        Ok(BatchMix::new(size, drawn))
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
