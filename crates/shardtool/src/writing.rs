//! Datasets from a source, or sample by sample.

/// Says what a pack reads and how it stores images.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, PackOptions, pack};
///
/// # std::fs::create_dir_all("photos/cat").unwrap();
/// # let dataset = Dataset::open("dataset")?;
/// # std::fs::write("photos/cat/0.jpg", dataset.split("train")?.get(0)?.image()?.unwrap()).unwrap();
/// let mut options = PackOptions::new("photos", "packed");
/// options.split = Some("train".into());
/// pack(&options)?;
/// assert_eq!(Dataset::open("packed")?.split("train")?.len(), 1);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_pack::Options as PackOptions;

/// Says which features a writer's samples have.
///
/// ```
/// use shardtool::WriterOptions;
/// use shardtool::write::DType;
///
/// let options = WriterOptions::new("dataset", "train")
///     .with_classes(["cat", "dog"])
///     .with_features([("embedding", DType::Float), ("caption", DType::Bytes)]);
/// assert_eq!(options.features.len(), 2);
/// ```
pub use shardtool_pack::WriterOptions;

/// Writes a split sample by sample, from any number of threads.
///
/// ```
/// use shardtool::write::{DType, Sample};
/// use shardtool::{Dataset, Writer, WriterOptions};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # std::env::set_current_dir(folder.path()).unwrap();
/// # let pixels = [90; 32 * 32 * 3];
/// # let jpeg = shardtool::image::encode_jpeg(shardtool::image::PixelsRef::new(32, 32, &pixels)?, 90)?;
/// let options = WriterOptions::new("written", "train").with_features([("score", DType::Float)]);
/// let writer = Writer::open(&options)?;
/// for (name, score) in [("a.jpg", 0.25), ("b.jpg", 0.75)] {
///     writer.write(&Sample::new(name).with_file(&jpeg).with_value("score", score))?;
/// }
/// writer.finish()?;
/// let scores = Dataset::open("written")?.split("train")?.column::<f32>("score")?;
/// assert_eq!(scores, Some(vec![Some(0.25), Some(0.75)]));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_pack::Writer;
