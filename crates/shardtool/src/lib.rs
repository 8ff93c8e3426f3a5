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
//! | [`image`] | image files to pixels, without a dataset |
//! | `cuda` | batches on a CUDA device (feature `cuda`) |
//! | `error` | [`Error`], the error of all of them; [`Result`] |
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

mod error;

/// Compiles the code of the guide in this repository.
#[cfg(doctest)]
#[doc = include_str!("guide.md")]
mod guide {}

/// Image files to pixels: decoding, resizing, encoding.
pub mod image {
    pub use shardtool_decode::{
        DecodeOptions, Decoder, Format, ImageInfo, Limits, PixelFormat, Pixels, PixelsMut, PixelsRef, decode,
        encode_jpeg, probe, resize,
    };
}

/// Samples that a program writes with [`Writer`], and how images are stored.
pub mod write {
    pub use shardtool_format::array::Codec;
    pub use shardtool_format::manifest::{DType, Keypoints};
    pub use shardtool_pack::{
        Annotated, Array, ArrayColumn, BoxFormat, BoxUnit, Committed, Compression, Image, JpegLayout, Label, OnError,
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

pub use error::{Error, Result};
pub use shardtool_decode::{Interpolation, Layout as PixelLayout, Pipeline, Transform};
pub use shardtool_format::Chain;
pub use shardtool_format::array::ArrayDtype;
pub use shardtool_format::example::{Example, Feature};
pub use shardtool_load::{
    Array, ArrayKind, Arrays, AspectRatioBuckets, Axis, BadSample, BadSamples, Batch, BatchTransform, BoxFormat,
    BoxUnit, Buckets, Classes, Clip, ClipSampling, Column, Config as LoaderConfig, CopyPaste, Custom, DecodedCache,
    EXCLUSIONS, Element, Epoch, Field, FurtherImage, FurtherKind, Image, Layout as ColumnLayout, LengthBuckets,
    LoadPlan, Loader, Longer, Mask, Masks, MemberStage, Members, MemoryPlan, Mode, Monitor, Mosaic, Notice, Objects,
    OnBad, OwnedImages, PackedSamples, PageCache, Pairs, Pictures, PixelDtype, Pixels, Prefetch, RaggedArrays,
    SampleError, Select, Stages, Stats, Tokens, Values, View,
};
pub use shardtool_order::{
    Balanced, Launch, Mixture, Order, Policy, Remainder, Replica, ResumeState, Source, Weighted, rarest_labels,
};
pub use shardtool_pack::{Options as PackOptions, Writer, WriterOptions};
pub use shardtool_read::{Access, Cache, Condition, Dataset, Options as OpenOptions, Record, Records, Shard, Split};

/// Packs a source into a split of a dataset: see [`PackOptions`]. After a kill, the same call continues. With a bar of progress:
/// [`write::pack_with_progress`].
///
/// # Errors
/// [`Error::Pack`].
pub fn pack(options: &PackOptions) -> Result<write::Summary> {
    Ok(shardtool_pack::pack(options, &write::Silent)?)
}
