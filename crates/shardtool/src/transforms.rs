//! Steps that images go through, mixing of batches, and buckets.

/// Lists the steps that give every image its size.
///
/// ```
/// use shardtool::{Pipeline, Transform};
///
/// let train = Pipeline::train(224)?; // RandomResizedCrop, HorizontalFlip
/// assert_eq!(train.output_size(), (224, 224));
/// let own = Pipeline::new(vec![Transform::CenterCrop { size: [32, 48] }, Transform::VerticalFlip { p: 0.5 }])?;
/// assert_eq!(own.output_size(), (48, 32));
/// assert!(Pipeline::new(vec![Transform::VerticalFlip { p: 0.5 }]).is_err(), "images would differ in size");
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_decode::Pipeline;

/// Describes one step; the names and numbers are those of torchvision.
///
/// ```
/// use shardtool::image::Filter;
/// use shardtool::transform::PaddingMode;
/// use shardtool::{Interpolation, Pipeline, Transform};
///
/// let steps = vec![
///     Transform::ResizeTo { size: [32, 32], interpolation: Filter::Bicubic },
///     Transform::Pad { padding: [4; 4], fill: [0; 3], padding_mode: PaddingMode::Reflect },
///     Transform::RandomRotation { degrees: [-10.0, 10.0], interpolation: Interpolation::Bilinear, fill: [0; 3] },
/// ];
/// assert_eq!(Pipeline::new(steps)?.output_size(), (40, 40));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_decode::Transform;

/// Chooses how a step that rotates or shears computes values between pixels.
///
/// ```
/// use shardtool::{Interpolation, Transform};
///
/// let rotation = Transform::RandomRotation { degrees: [-5.0, 5.0], interpolation: Interpolation::Nearest, fill: [0; 3] };
/// assert_eq!(rotation, rotation.clone());
/// ```
pub use shardtool_decode::Interpolation;

/// Mixes the rows of a batch.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{BatchTransform, Dataset, Image, Loader, LoaderConfig, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 4)
///     .with_batch_transform(BatchTransform::mix_up(0.2))
///     .with_batch_transform(BatchTransform::cut_mix(1.0));
/// let batch = Loader::new(&config)?.epoch().next().expect("a step")?;
/// let labels = batch.soft_labels().expect("mixed"); // [N, classes]
/// assert!(labels.chunks(2).all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-6));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::BatchTransform;

/// Mixes each row with the next one: the parameters of MixUp and CutMix.
///
/// ```
/// use shardtool::{BatchTransform, Pairs};
///
/// let mut pairs = Pairs::default();
/// (pairs.alpha, pairs.num_classes) = (0.8, Some(1000));
/// let transform = BatchTransform::MixUp(pairs);
/// assert_ne!(transform, BatchTransform::mix_up(0.8), "which takes the classes of the dataset");
/// ```
pub use shardtool_load::Pairs;

/// Shows parts of four images in one.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{BatchTransform, Dataset, Image, Loader, LoaderConfig, Mosaic, Objects, Pipeline};
///
/// let mut mosaic = Mosaic::default();
/// mosaic.center = [0.4, 0.6];
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Image::new(Pipeline::eval(32, 32)?)], 4)
///     .with(Objects::default())
///     .with_batch_transform(BatchTransform::Mosaic(mosaic));
/// let batch = Loader::new(&config)?.epoch().next().expect("a step")?;
/// let boxes = batch.column("image/object/bbox").unwrap();
/// assert!((0..4).any(|row| boxes.row_floats(row).unwrap().len() > 4), "boxes of several images");
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Mosaic;

/// Pastes objects of one image on another.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{BatchTransform, Dataset, Image, Loader, LoaderConfig, Objects, Pipeline};
///
/// let mut objects = Objects::default();
/// objects.masks = true;
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Image::new(Pipeline::eval(32, 32)?)], 4)
///     .with(objects)
///     .with_batch_transform(BatchTransform::copy_paste(0.5));
/// assert_eq!(Loader::new(&config)?.epoch().count(), 3);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::CopyPaste;

/// Groups samples, so that the rows of a batch have one shape without much padding.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Column, Dataset, LengthBuckets, Loader, LoaderConfig};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let buckets = LengthBuckets::new("length", vec![8, 16]);
/// let config = LoaderConfig::new(train, [Column::new("tokens")], 2).with_buckets(buckets);
/// for batch in Loader::new(&config)?.epoch() {
///     let longest = batch?.row_length().expect("of the bucket");
///     assert!(longest == 8 || longest == 16);
/// }
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Buckets;

/// Groups images of similar aspect ratios.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{AspectRatioBuckets, Dataset, Image, Loader, LoaderConfig, Pipeline, Transform};
///
/// let shapes = [[32, 32], [24, 32]].map(|size| {
///     let steps = vec![Transform::ResizeTo { size, interpolation: Default::default() }];
///     (size.map(|side| side.try_into().unwrap()).into(), Pipeline::new(steps).unwrap())
/// });
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 4)
///     .with_buckets(AspectRatioBuckets::new(shapes));
/// // All images are 64 × 48 pixels.
/// assert_eq!(Loader::new(&config)?.epoch().next().expect("a step")?.image_shape(), Some([4, 24, 32, 3]));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::AspectRatioBuckets;

/// Groups samples of similar lengths, and pads them.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Column, Dataset, LengthBuckets, Loader, LoaderConfig};
///
/// let mut buckets = LengthBuckets::new("length", vec![8, 16]);
/// buckets.padded.insert("tokens".into(), -1.0);
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Column::new("tokens")], 2).with_buckets(buckets);
/// for batch in Loader::new(&config)?.epoch() {
///     let batch = batch?;
///     let tokens = batch.padded("tokens").unwrap(); // [N, bound]
///     assert_eq!(tokens.as_int64().unwrap().len(), batch.len() * batch.row_length().unwrap());
/// }
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::LengthBuckets;

/// Chooses what happens to samples that are longer than the largest length.
///
/// ```
/// use shardtool::{LengthBuckets, Longer};
///
/// let mut buckets = LengthBuckets::new("length", vec![128, 512]);
/// assert_eq!(buckets.longer, Longer::Error);
/// buckets.longer = Longer::Cut;
/// ```
pub use shardtool_load::Longer;
