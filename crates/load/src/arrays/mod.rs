//! Arrays of any number of dimensions in a batch: volumes, audio, embeddings. Each row gets a crop of its record's array,
//! perhaps flipped and rotated by quarter turns; only the chunks that the crop meets are decompressed.
//!
//! | module | content |
//! |---|---|
//! | `resolved` | groups checked against the dataset: types and shapes of a row |
//! | `pad_value` | the value around an array that is smaller than its crop |
//! | `stored` | the array of a record |
//! | `geometry` | crop, flips and rotations drawn for a sample |
//! | `in_image` | arrays with an element for each pixel of the image |
//! | `planned` | the arrays of a record: planned, then written into their rows |

mod geometry;
mod in_image;
mod pad_value;
mod planned;
mod resolved;
mod stored;

pub(crate) use in_image::{OUTSIDE, Positions};
pub(crate) use planned::{ArrayScratch, PlannedArrays};
pub(crate) use resolved::ResolvedArrays;
