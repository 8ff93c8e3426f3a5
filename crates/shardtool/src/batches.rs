//! Batches and what they hold.

/// Holds the rows of one step. Dropping it returns its memory to the loader.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Order, Pipeline};
///
/// let split = Dataset::open("dataset")?.split("validation")?.clone();
/// let config = LoaderConfig::new(split, [Image::new(Pipeline::eval(40, 32)?)], 4).with_order(Order::Sequential);
/// let mut loader = Loader::new(&config)?;
/// let batch = loader.epoch().next().expect("a step")?;
/// assert_eq!((batch.image_shape(), batch.labels()), (Some([4, 32, 32, 3]), Some(&[0, 1, 0, 1][..])));
/// assert_eq!((batch.ids(), batch.valid()), (&[0, 1, 2, 3][..], &[true; 4][..]));
/// // Five samples: the last batch has three rows without one.
/// let last = loader.epoch().next().expect("a step")?;
/// assert_eq!((last.labels(), last.valid()), (Some(&[0, -100, -100, -100][..]), &[true, false, false, false][..]));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Batch;

/// Iterates over the batches that are left of an epoch.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, Loader, LoaderConfig};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut loader = Loader::new(&LoaderConfig::new(train, [Field::Record], 4))?;
/// assert_eq!(loader.epoch().len(), 3);
/// let first: Vec<_> = loader.epoch().take(1).collect::<Result<_, _>>()?;
/// // The rest of the same epoch, then the next one.
/// assert_eq!((first[0].epoch(), loader.epoch().count()), (0, 2));
/// assert_eq!(loader.epoch().next().expect("a step")?.epoch(), 1);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Epoch;

/// Gives access to one array of images of a batch.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut loader = Loader::new(&LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 4))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// for picture in batch.pictures() {
///     assert_eq!(picture.shape.iter().product::<usize>(), picture.bytes.len());
/// }
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Pictures;

/// Gives access to the label maps of a batch.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, LabelDtype, Loader, LoaderConfig, Mask, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 4).with(Mask::new("mask"));
/// let batch = Loader::new(&config)?.epoch().next().expect("a step")?;
/// let masks = batch.masks().next().unwrap();
/// assert_eq!((masks.feature, masks.dtype, masks.bytes.len()), ("mask", LabelDtype::U8, 4 * 32 * 32));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Masks;

/// Gives access to one array of a batch.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Arrays, Dataset, Loader, LoaderConfig};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut loader = Loader::new(&LoaderConfig::new(train, [Arrays::new(vec!["volume".into()])], 4))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// let volume = batch.arrays().next().unwrap();
/// assert_eq!(volume.shape, [4, 4, 4, 4]);
/// let voxels: &[u8] = volume.values().expect("u8");
/// assert_eq!(i64::from(voxels[0]), batch.ids()[0]);
/// assert!(volume.values::<f32>().is_none());
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Array;

/// Marks the types that the elements of an [`Array`] are borrowed as.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Array, Element};
///
/// /// Returns the first element of each row.
/// fn first<T: Element>(array: &Array) -> Option<Vec<T>> {
///     let values = array.values::<T>()?;
///     Some(values.chunks(values.len() / array.shape[0]).map(|row| row[0]).collect())
/// }
///
/// # use shardtool::{Arrays, Dataset, Loader, LoaderConfig};
/// # let train = Dataset::open("dataset")?.split("train")?.clone();
/// # let mut loader = Loader::new(&LoaderConfig::new(train, [Arrays::new(vec!["volume".into()])], 4))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// assert_eq!(first::<u8>(&batch.arrays().next().unwrap()).unwrap().len(), 4);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Element;

/// Hands the pixels of a batch to a framework that owns its bytes, without a copy.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, OwnedImages, Pipeline};
///
/// /// As `bytes::Bytes::from_owner` and others demand.
/// fn adopt(owner: impl AsRef<[u8]> + Send + 'static) -> usize {
///     owner.as_ref().len()
/// }
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut loader = Loader::new(&LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 4))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// let address = batch.images().unwrap().as_ptr();
/// let images: OwnedImages = batch.into_images().expect("images");
/// assert_eq!(images.as_ref().as_ptr(), address);
/// assert_eq!(adopt(images), 4 * 32 * 32 * 3);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::OwnedImages;

/// Says which sample could not be delivered, and why.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Access, Dataset, Field, Loader, LoaderConfig, OpenOptions, Order};
///
/// # let options = OpenOptions::default().with_access(Access::Pread);
/// # let train = Dataset::open_with("dataset", options)?.split("train")?.clone();
/// # let file = train.shard_path(0);
/// # let middle = train.shard(0)?.frame(3)?.start as usize + 40;
/// # let mut bytes = std::fs::read(&file).unwrap();
/// # bytes[middle] ^= 1;
/// # std::fs::write(&file, bytes).unwrap();
/// // A byte of record 3 has changed on the disk.
/// let config = LoaderConfig::new(train, [Field::Record], 4).with_order(Order::Sequential);
/// let mut loader = Loader::new(&config)?;
/// assert!(!loader.epoch().next().expect("a step")?.valid()[3]);
/// let bad = &loader.bad_samples()[0];
/// assert_eq!((bad.id, bad.record), (3, 3));
/// println!("{bad}"); // record 3 of dataset/train-00000.tfrecord (id 3): …
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::BadSample;

/// Says what is wrong with a sample.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Access, Dataset, Field, Loader, LoaderConfig, OpenOptions, Order, SampleError};
///
/// # let options = OpenOptions::default().with_access(Access::Pread);
/// # let train = Dataset::open_with("dataset", options)?.split("train")?.clone();
/// # let file = train.shard_path(0);
/// # let middle = train.shard(0)?.frame(3)?.start as usize + 40;
/// # let mut bytes = std::fs::read(&file).unwrap();
/// # bytes[middle] ^= 1;
/// # std::fs::write(&file, bytes).unwrap();
/// // A byte of record 3 has changed on the disk.
/// let config = LoaderConfig::new(train, [Field::Record], 4).with_order(Order::Sequential);
/// let mut loader = Loader::new(&config)?;
/// loader.epoch().next().expect("a step")?;
/// match &loader.bad_samples()[0].error {
///     SampleError::Read(error) => assert!(error.damage().is_some(), "{error}"),
///     other => panic!("expected damage, found {other}"),
/// }
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::SampleError;
