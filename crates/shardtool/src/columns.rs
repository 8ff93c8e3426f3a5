//! Fields without pixels: columns, arrays and tokens.

/// Delivers the values of a feature.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Column, Dataset, Loader, LoaderConfig, Order};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let fields = [Column::new("length"), Column::drawn("caption"), Column::multi_hot("tags", 3)];
/// let mut loader = Loader::new(&LoaderConfig::new(train, fields, 4).with_order(Order::Sequential))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// assert_eq!(batch.column("length").unwrap().as_int64(), Some(&[3, 4, 5, 6][..]));
/// assert!(batch.column("caption").unwrap().row_bytes(0).is_some());
/// assert_eq!(batch.column("tags").unwrap().as_float().unwrap()[..6], [1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Column;

/// Chooses how the values of a column lie in a batch.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Column, ColumnLayout, Dataset, Loader, LoaderConfig};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let embedding = Column::with_layout("embedding", ColumnLayout::Numbers { width: 4 });
/// let mut loader = Loader::new(&LoaderConfig::new(train, [embedding], 6))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// assert_eq!(batch.column("embedding").unwrap().as_float().unwrap().len(), 6 * 4);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Layout as ColumnLayout;

/// Holds the values of a column in a batch.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Column, Dataset, Loader, LoaderConfig, Values};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut loader = Loader::new(&LoaderConfig::new(train, [Column::new("tokens")], 4))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// match batch.column("tokens").unwrap() {
///     Values::RaggedInt64 { offsets, values } => assert_eq!(offsets[4] as usize, values.len()),
///     other => panic!("expected integers of different number, found {other:?}"),
/// }
/// // Or, for one row: `row_int64s`, `row_floats`, `row_bytes`.
/// assert!(batch.column("tokens").unwrap().row_int64s(0).is_some());
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Values;

/// Delivers arrays such as volumes, with a crop and flips of their own.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Arrays, Dataset, Loader, LoaderConfig};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut volumes = Arrays::new(vec!["volume".into()]);
/// volumes.crop = Some(vec![Some(2), None, Some(3)]);
/// volumes.flip = vec![0.5, 0.5, 0.5];
/// let mut loader = Loader::new(&LoaderConfig::new(train, [volumes], 4))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// assert_eq!(batch.arrays().next().unwrap().shape, [4, 2, 4, 3]);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Arrays;

/// Says what an array in an image means, so that its values follow the image.
///
/// ```
/// use shardtool::{ArrayKind, Arrays};
///
/// let mut flow = Arrays::new(vec!["flow".into()]);
/// flow.image_axes = Some((0, 1));
/// flow.kind = Some(ArrayKind::Flow);
/// ```
pub use shardtool_load::ArrayKind;

/// Delivers arrays that differ in length, such as point clouds.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Axis, Dataset, Loader, LoaderConfig, RaggedArrays};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut points = RaggedArrays::new(vec!["points".into()], 8.try_into().unwrap());
/// points.rotate = Some(Axis::Z);
/// let mut loader = Loader::new(&LoaderConfig::new(train, [points], 4))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// let points = batch.arrays().next().unwrap();
/// assert_eq!(points.shape, [4, 8, 3]);
/// assert_eq!(points.values::<f32>().unwrap().len(), 4 * 8 * 3);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::RaggedArrays;

/// Chooses the elements of an array that is longer than a row.
///
/// ```
/// use shardtool::{RaggedArrays, Select};
///
/// let mut points = RaggedArrays::new(vec!["points".into()], 1024.try_into().unwrap());
/// points.select = Select::First;
/// assert_eq!(Select::default(), Select::Subset);
/// ```
pub use shardtool_load::Select;

/// Names the axis about which points are rotated.
///
/// ```
/// use shardtool::{Axis, RaggedArrays};
///
/// let mut points = RaggedArrays::new(vec!["points".into()], 1024.try_into().unwrap());
/// (points.rotate, points.degrees) = (Some(Axis::Y), 45.0);
/// ```
pub use shardtool_load::Axis;

/// Packs the tokens of several samples into each row.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Loader, LoaderConfig, Tokens};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let tokens = Tokens::new("length", 16.try_into().unwrap(), [("tokens".to_owned(), 0.0)]);
/// let mut loader = Loader::new(&LoaderConfig::new(train, [tokens], 2))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// assert_eq!(batch.padded("tokens").unwrap().as_int64().unwrap().len(), 2 * 16); // [N, 16]
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Tokens;

/// Says which tokens of a packed row belong to which sample.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Loader, LoaderConfig, Tokens};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let tokens = Tokens::new("length", 16.try_into().unwrap(), [("tokens".to_owned(), 0.0)]);
/// let mut loader = Loader::new(&LoaderConfig::new(train, [tokens], 2))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// let packed = batch.packed().expect("rows are packed");
/// // For attention: tokens with the same number belong to the same sample; 0 is padding.
/// assert_eq!(packed.segment_ids()[0], 1);
/// assert_eq!(packed.position_ids()[..2], [0, 1]);
/// assert_eq!(packed.tokens.iter().sum::<i64>(), packed.segment_ids().iter().filter(|id| **id > 0).count() as i64);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::PackedSamples;
