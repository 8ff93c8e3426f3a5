//! Packs images into checksummed TFRecord shards once, then feeds them to a trainer: decoded, cropped and batched in a
//! seeded order, in bounded memory, resumable at any step.
//!
//! ```
//! use shardtool::{Dataset, Image, Loader, LoaderConfig, PackOptions, Pipeline, pack};
//!
//! # fn main() -> shardtool::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # std::env::set_current_dir(folder.path()).unwrap();
//! # for (class, value) in [("cat", 90), ("dog", 180)] {
//! #     std::fs::create_dir_all(format!("photos/{class}")).unwrap();
//! #     let data = vec![value; 320 * 240 * 3];
//! #     let jpeg = shardtool::decode::encode_jpeg(shardtool::decode::PixelsRef::new(320, 240, &data)?, 90)?;
//! #     (0..4).for_each(|i| std::fs::write(format!("photos/{class}/{i}.jpg"), &jpeg).unwrap());
//! # }
//! // Once: `photos` holds one folder of images for each class.
//! pack(&PackOptions::new("photos", "dataset"), &())?;
//!
//! // In every run: RandomResizedCrop to 224 × 224 and horizontal flips, in batches of 4.
//! let train = Dataset::open("dataset")?.split("train")?.clone();
//! let mut loader = Loader::new(&LoaderConfig::new(train, [Image::new(Pipeline::train(224)?)], 4))?;
//! for _epoch in 0..2 {
//!     while let Some(batch) = loader.next_batch()? {
//!         let pixels: &[u8] = batch.images().expect("the loader delivers images");
//!         assert_eq!(pixels.len(), 4 * 224 * 224 * 3); // [N, H, W, 3]
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! This crate re-exports what most programs need from the crates that do the work, and adds one error for all of them.
//! Everything else is in a module for each of these crates:
//!
//! | module | crate | contents |
//! |---|---|---|
//! | [`mod@format`] | `shardtool-format` | TFRecord frames, Examples, index and manifest as structs |
//! | [`order`] | `shardtool-order` | sample orders, replicas, resume states |
//! | [`decode`] | `shardtool-decode` | image formats to RGB; crop, resize, flip, normalise |
//! | [`read`] | `shardtool-read` | opens datasets, reads record *i*, verifies |
//! | [`mod@pack`] | `shardtool-pack` | writes, exports, reshards and repairs datasets |
//! | [`load`] | `shardtool-load` | batches, memory budget, statistics |
//! | `cuda` | `shardtool-cuda` | batches on a CUDA device (feature `cuda`) |
//! | `error` | this one | [`Error`]: the error of any of them; [`Result`] |
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `jp2`, `jxl` | yes | decoders of JPEG 2000 and JPEG XL |
//! | `parquet` | yes | Parquet as a source of [`pack()`] and a target of export; the largest dependency |
//! | `cuda` | no | `shardtool::cuda`; the driver is found at run time, so a build needs no CUDA toolkit |
//!
//! # Platforms
//!
//! Linux on x86-64 and aarch64.
#![forbid(unsafe_code)]

mod error;

/// Compiles the code of the guide in this repository.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
mod guide {}

/// Dataset files as structs: TFRecord frames, Examples, indexes and manifests.
#[doc(inline)]
pub use shardtool_format as format;

/// Which sample comes when: orders, replicas and resume states, as pure functions.
#[doc(inline)]
pub use shardtool_order as order;

/// Image files to RGB pixels: decoding, cropping, resizing and normalising.
#[doc(inline)]
pub use shardtool_decode as decode;

/// Opens, reads and verifies datasets.
#[doc(inline)]
pub use shardtool_read as read;

/// Writes, exports, reshards and repairs datasets.
pub mod pack {
    pub use shardtool_pack::*;
}

/// Delivers batches to a trainer.
#[doc(inline)]
pub use shardtool_load as load;

/// Delivers batches on a CUDA device.
#[cfg(feature = "cuda")]
#[doc(inline)]
pub use shardtool_cuda as cuda;

pub use error::{Error, Result};
pub use shardtool_decode::{Output, Pipeline, Transform};
pub use shardtool_load::{
    Arrays, Batch, BatchTransform, Clip, ClipSampling, Column, Config as LoaderConfig, Field, Image, Loader, Mask,
    Objects, Values, View,
};
pub use shardtool_order::{Order, Policy, Remainder, Replica, ResumeState};
pub use shardtool_pack::pack;
pub use shardtool_pack::{Options as PackOptions, Writer, WriterOptions};
pub use shardtool_read::{Access, Dataset, Record, Shard, Split};
