//! Arrays of any number of dimensions in a batch: volumes, audio, embeddings, point clouds. Only the chunks that a row needs are
//! decompressed.
//!
//! | module | content |
//! |---|---|
//! | `group` | what the loader knows of a group of arrays, of whichever kind |
//! | `crop` | a crop of each array, perhaps flipped and rotated by quarter turns, or the array in the geometry of the record's image |
//! | `ragged` | arrays whose first dimension differs between records: some of their elements, rotated, with noise |
//! | `resolved` | groups checked against the dataset |
//! | `pad_value` | the value where a row has no element of the record's |
//! | `stored` | the array of a record |
//! | `positions` | arrays with an element for each pixel of the image |
//! | `moved_values` | such arrays whose values the geometry changes |
//! | `displacements`, `normals` | those whose elements are displacements; surface normals |
//! | `planned` | the arrays of a record: planned, then written into their rows |

mod crop;
mod displacements;
mod group;
mod moved_values;
mod normals;
pub(crate) mod pad_value;
mod planned;
mod positions;
mod ragged;
mod resolved;
mod stored;

pub(crate) use group::ArrayScratch;
pub(crate) use planned::PlannedArrays;
pub(crate) use positions::{OUTSIDE, Positions};
pub(crate) use resolved::ResolvedArrays;
