//! Datasets and their records.

/// Opens a dataset, from which a trainer takes its splits.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::Dataset;
///
/// let dataset = Dataset::open("dataset")?;
/// let names: Vec<&str> = dataset.splits().iter().map(|split| split.name()).collect();
/// assert_eq!(names, ["train", "validation"]);
/// assert_eq!(dataset.split("validation")?.len(), 5);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_read::Dataset;

/// Opens a dataset in another way than by default.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Access, Dataset, OpenOptions};
///
/// // Another program may rewrite the files: they are not mapped.
/// let options = OpenOptions::default().with_access(Access::Pread);
/// let dataset = Dataset::open_with("dataset", options)?;
/// assert_eq!(dataset.split("train")?.len(), 12);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_read::Options as OpenOptions;

/// Decides whether files are mapped.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Access, Dataset, OpenOptions};
///
/// for access in [Access::Auto, Access::Mmap, Access::Pread] {
///     let dataset = Dataset::open_with("dataset", OpenOptions::default().with_access(access))?;
///     assert_eq!(dataset.split("train")?.get(0)?.key()?, &b"cat/0.jpg"[..]);
/// }
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_read::Access;

/// Decides whether the CRCs of records are checked.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Check, Dataset, OpenOptions};
///
/// assert_eq!(Check::default(), Check::Data);
/// // For a file system that checks what it reads.
/// let dataset = Dataset::open_with("dataset", OpenOptions::default().with_check(Check::LengthOnly))?;
/// assert_eq!(dataset.split("train")?.get(0)?.key()?, &b"cat/0.jpg"[..]);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_format::frame::Check;

/// Keeps what was read from an object store on a local disk.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Cache, Dataset, OpenOptions};
/// use std::path::Path;
///
/// let cache = Cache::open(Path::new("cache"), Some(64 << 20))?;
/// // With the feature `stores`: "s3://bucket/imagenet".
/// let dataset = Dataset::open_with("dataset", OpenOptions::default().with_cache(cache))?;
/// assert_eq!(dataset.split("train")?.len(), 12);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_read::Cache;

/// Returns records by number, and columns of all of them.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::Dataset;
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// assert_eq!(train.get(3)?.key()?, &b"dog/3.jpg"[..]);
/// assert_eq!(train.find(b"dog/3.jpg")?, Some(3));
/// let widths: Vec<Option<i64>> = train.column("image/width")?.expect("a column of the index");
/// assert_eq!(widths, [Some(64); 12]);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_read::Split;

/// Holds a record whose CRC was checked.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::Dataset;
///
/// let record = Dataset::open("dataset")?.split("train")?.get(0)?;
/// let image: &[u8] = record.image()?.expect("a JPEG");
/// assert_eq!(image[..2], [0xff, 0xd8]);
/// assert_eq!(record.example()?.floats("embedding"), Some(vec![0.5; 4]));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_read::Record;

/// Iterates over a range of records.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::Dataset;
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut bytes = 0;
/// for record in train.records(4..8) {
///     bytes += record?.data().len();
/// }
/// assert!(bytes > 4 * 64);
/// assert_eq!(train.records(0..train.len()).len(), 12);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_read::Records;

/// Reads one file of a split, as for a tool that works file by file.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::Dataset;
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let shard = train.shard(0)?;
/// assert_eq!(shard.records(), 12);
/// assert_eq!(shard.key(1)?, &b"dog/1.jpg"[..]);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_read::Shard;

/// Tests the value of a feature; [`Split::matching`] tests all records with conditions.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::write::DType;
/// use shardtool::{Condition, Dataset};
///
/// let condition = Condition::parse("length>=5", |name| (name == "length").then_some(DType::Int64))?;
/// assert_eq!(condition.name(), "length");
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// assert_eq!(train.matching(["length>=5", "length<8"])?, [2, 3, 4]);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_read::Condition;

/// Reads the features of a record.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::Dataset;
///
/// let record = Dataset::open("dataset")?.split("train")?.get(1)?;
/// let example = record.example()?;
/// assert_eq!(example.int64("image/class/label"), Some(1));
/// assert_eq!(example.floats("image/object/bbox"), Some(vec![0.25, 0.25, 0.75, 0.75]));
/// assert_eq!(example.byte_strings("caption").unwrap()[0], b"a dog");
/// assert_eq!(example.int64("no such feature"), None);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_format::example::Example;

/// Holds the values of a feature, whatever their type.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Feature};
///
/// let record = Dataset::open("dataset")?.split("train")?.get(2)?;
/// match record.example()?.get("tokens") {
///     Some(Feature::Int64(list)) => assert_eq!(list.iter().sum::<i64>(), 10),
///     other => panic!("expected integers, found {other:?}"),
/// }
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_format::example::Feature;

/// Names the type of the elements of a stored array.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{ArrayDtype, Arrays, Dataset, Loader, LoaderConfig};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut loader = Loader::new(&LoaderConfig::new(train, [Arrays::new(vec!["volume".into()])], 4))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// assert_eq!(batch.arrays().next().unwrap().dtype, ArrayDtype::U8);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_format::array::ArrayDtype;
