//! Transforms as data: a list of steps that serialises, checked once, and planned for each image.
//!
//! | module | content |
//! |---|---|
//! | `step`, `default` | the steps, and default values of their parameters |
//! | `pipeline`, `validate` | a list of steps, and its checks |
//! | `pixel_formats` | which steps are defined for grey and for 16 bits, and which compute values |
//! | `planner`, `draw` | draws the steps for one image |
//! | `letterbox` | the sizes of Ultralytics' `LetterBox` |
//! | `random` | where random numbers come from |
//! | `plan`, `apply` | what is done to one image, and doing it |
//! | `geometry`, `builder` | which stored pixels become which pixels of the result |
//! | `orientation` | the eight EXIF orientations |
//! | `rect` | rectangles in pixels and in fractions of them |

pub(crate) mod apply;
mod builder;
mod default;
pub(crate) mod draw;
pub(crate) mod geometry;
mod letterbox;
pub(crate) mod orientation;
pub(crate) mod pipeline;
mod pixel_formats;
pub(crate) mod plan;
mod planner;
pub(crate) mod random;
pub(crate) mod rect;
pub(crate) mod step;
mod validate;

use crate::pixels::PixelsMut;
use random::Random;
use std::sync::Arc;

/// A user function that is called on the transformed pixels of each sample: `[H, W, channels]`, u8 or little-endian u16.
///
/// It may change values but not the size, because the geometry is planned before decoding. It is not a
/// [`Transform`](crate::Transform) variant because code does not serialise, and a list of steps read from JSON must be
/// complete.
pub type PixelFn = Arc<dyn Fn(PixelsMut<'_>, &mut dyn Random) + Send + Sync>;
