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
//! #     let jpeg = shardtool::image::encode_jpeg(shardtool::image::PixelsRef::new(320, 240, &data)?, 90)?;
//! #     (0..4).for_each(|i| std::fs::write(format!("photos/{class}/{i}.jpg"), &jpeg).unwrap());
//! # }
//! // Once: `photos` holds one folder of images for each class.
//! pack(&PackOptions::new("photos", "dataset"))?;
//!
//! // In every run: RandomResizedCrop to 224 × 224 and horizontal flips, in batches of 4.
//! let train = Dataset::open("dataset")?.split("train")?.clone();
//! let mut loader = Loader::new(&LoaderConfig::new(train, [Image::new(Pipeline::train(224)?)], 4))?;
//! for _epoch in 0..2 {
//!     for batch in loader.epoch() {
//!         let batch = batch?;
//!         let pixels: &[u8] = batch.images().expect("the loader delivers images");
//!         assert_eq!(pixels.len(), 4 * 224 * 224 * 3); // [N, H, W, 3]
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The root has what a trainer needs: datasets, fields, the loader and its batches, orders. The rest is in modules:
//!
//! | module | contents |
//! |---|---|
//! | [`mod@write`] | samples that a program writes, and how a pack stores its images |
//! | [`tools`] | what is done to whole datasets: verify, export, extract, reshard, repair, copy, clone, adopt |
//! | [`change`] | new versions of a dataset: deletes, columns, appends, tags, rollbacks |
//! | [`transform`] | what steps that images go through are made of |
//! | [`image`] | image files to pixels, without a dataset |
//! | `cuda` | batches on a CUDA device (feature `cuda`) |
//! | [`error`] | what an [`Error`] holds, to match on |
//! | `data`, `loading`, `fields`, `columns`, `transforms`, `orders`, `batches`, `writing`, `errors` | not public: the source of what this page lists, by subject |
//!
//! The guide is [docs/rust.md](https://github.com/shardtool/shardtool/blob/main/docs/rust.md).
//! Programs that need the inside, such as tools for the format, depend on `shardtool-format`, `shardtool-order` or `shardtool-read`.
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `jp2`, `jxl` | yes | decoders of JPEG 2000 and JPEG XL |
//! | `libwebp` | yes | WebP by libwebp, which `cc` builds; without it, by a slower decoder in Rust |
//! | `parquet` | yes | Parquet as a source of [`pack()`] and a target of export; the largest dependency |
//! | `stores` | no | datasets in object stores (S3, GCS, Azure, HTTP) by URL; an HTTP client and TLS |
//! | `hdfs` | no | datasets in HDFS |
//! | `cuda` | no | `shardtool::cuda`; the driver is found at run time, so a build needs no CUDA toolkit |
//!
//! # Platforms
//!
//! Linux on x86-64 and aarch64.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod batches;
mod columns;
mod data;
mod errors;
mod fields;
mod loading;
mod orders;
mod transforms;
mod writing;

/// Compiles the code of the guide in this repository.
#[cfg(doctest)]
#[doc = include_str!("guide.md")]
mod guide {}

/// Image files to pixels: decoding, resizing, encoding.
pub mod image {
    pub use shardtool_decode::{
        Channels, DecodeOptions, Decoder, Depth, Filter, FloatRange, Format, ImageInfo, Limits, PixelFormat, Pixels,
        PixelsMut, PixelsRef, Truncated, decode, encode_jpeg, probe, resize,
    };
}

/// The errors that an [`Error`] holds.
///
/// ```
/// use shardtool::error::LoadError;
/// use shardtool::{Dataset, Error};
///
/// fn is_starved(error: &Error) -> bool {
///     matches!(error, Error::Load(error) if matches!(**error, LoadError::Starved { .. }))
/// }
///
/// let error = Error::from(Dataset::open("nowhere").unwrap_err());
/// assert!(!is_starved(&error) && matches!(error, Error::Read(_)));
/// ```
pub mod error {
    pub use shardtool_decode::{Error as DecodeError, OutputError, SegmentationError};
    pub use shardtool_format::array::ArrayError;
    pub use shardtool_format::manifest::SidesError;
    pub use shardtool_format::{Damage, Error as FormatError};
    pub use shardtool_load::{Error as LoadError, InvalidOptions};
    pub use shardtool_order::Error as OrderError;
    pub use shardtool_pack::Error as PackError;
    pub use shardtool_read::{ConditionError, Error as ReadError};
}

/// What the steps of a [`Transform`] are made of.
pub mod transform {
    pub use shardtool_decode::{Align, AutoAugmentPolicy, Corner, EraseValue, Noise, PaddingMode, PixelFn, Random};
}

/// Samples that a program writes with [`Writer`], and how images are stored.
pub mod write {
    pub use shardtool_format::array::Codec;
    pub use shardtool_format::manifest::{DType, Keypoints};
    pub use shardtool_pack::{
        Annotated, Array, ArrayColumn, Committed, Compression, Image, JpegLayout, Label, MemberKey, OnError,
        PixelArray, PixelStore, Progress, Resize, Sample, Shards, Silent, SourceKind, SplitNames, Summary, Value,
        commit_parts, pack as pack_with_progress,
    };
}

/// What is done to whole datasets. Functions report to a [`Progress`](write::Progress), such as [`Silent`](write::Silent).
pub mod tools {
    pub use shardtool_pack::{
        AdoptOptions, CloneOptions, Cloned, Conventions, Copied, CopyOptions, ExportKind, ExportOptions, Exported,
        ExtractOptions, Extracted, IndexedAs, IndexedSource, Repair, RepairOptions, ReshardOptions, Selection, adopt,
        clone, copy, export, extract, index_source, indexed_as, repair, reshard,
    };
    pub use shardtool_read::verify::{Finding, Options as VerifyOptions, Report, verify};
}

/// New versions of a dataset. Each change writes new files only; earlier versions stay readable
/// ([docs/change.md](https://github.com/shardtool/shardtool/blob/main/docs/change.md)).
pub mod change {
    pub use shardtool_pack::{
        AppendOptions, Appended, AppendedSplit, ChangeOptions, ChangedColumns, ChosenRecords, Collected, ColumnChange,
        ColumnOptions, ColumnRows, ColumnSource, ColumnValues, CompactOptions, Compacted, DeleteOptions, Deleted,
        GcOptions, MissingRows, NewVersion, PurgeOptions, Purged, SelectOptions, Selected, append, change_columns,
        column_rows, compact, delete, drop_columns, gc, purge, remove_tag, remove_view, rollback, select, tag,
    };
    pub use shardtool_read::{LoggedSplit, LoggedVersion, version_log};
}

/// Delivers batches on a CUDA device.
#[cfg(feature = "cuda")]
#[cfg_attr(docsrs, doc(cfg(feature = "cuda")))]
#[doc(inline)]
pub use shardtool_cuda as cuda;

pub use batches::*;
pub use columns::*;
pub use data::*;
pub use errors::{Chain, Error, Result};
pub use fields::*;
pub use loading::*;
pub use orders::*;
pub use transforms::*;
pub use writing::*;
/// Packs a source into a split of a dataset: see [`PackOptions`]. After a kill, the same call continues. With a bar of progress:
/// [`write::pack_with_progress`].
///
/// ```
/// use shardtool::{Dataset, PackOptions, pack};
///
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// # std::fs::create_dir_all("photos/cat").unwrap();
/// # std::fs::write("photos/cat/0.jpg", Dataset::open("dataset")?.split("train")?.get(0)?.image()?.unwrap()).unwrap();
/// let summary = pack(&PackOptions::new("photos", "packed"))?; // photos/cat/0.jpg
/// assert_eq!((summary.samples, summary.rejected), (1, 0));
/// assert_eq!(Dataset::open("packed")?.split("train")?.get(0)?.key()?, &b"cat/0.jpg"[..]);
/// # Ok::<(), shardtool::Error>(())
/// ```
///
/// # Errors
/// [`Error::Pack`].
pub fn pack(options: &PackOptions) -> Result<write::Summary> {
    Ok(shardtool_pack::pack(options, &write::Silent)?)
}
