//! Fields: what a batch has of each record.

/// Says what a batch has of each record; every struct of a field converts into it.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Column, Dataset, Field, Image, Loader, LoaderConfig, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let fields: Vec<Field> = vec![Image::new(Pipeline::train(32)?).into(), Column::new("embedding").into()];
/// let mut loader = Loader::new(&LoaderConfig::new(train, fields, 4))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// assert_eq!(batch.image_shape(), Some([4, 32, 32, 3]));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Field;

/// Delivers the image of each record, decoded and transformed.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let image = Image::new(Pipeline::train(32)?).with_normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]);
/// let mut loader = Loader::new(&LoaderConfig::new(train, [image], 4))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// assert_eq!(batch.image_shape(), Some([4, 3, 32, 32]));
/// assert_eq!(batch.images_f32().expect("float32").len(), 4 * 3 * 32 * 32);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Image;

/// Delivers several results of one image, such as two crops for contrastive learning.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline, View};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let views = vec![View::new("large", Pipeline::train(32)?), View::new("small", Pipeline::train(16)?)];
/// let mut loader = Loader::new(&LoaderConfig::new(train, [Image::with_views(views)], 4))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// let shapes: Vec<_> = batch.pictures().map(|picture| (picture.view, picture.shape)).collect();
/// assert_eq!(shapes, [("large", [4, 32, 32, 3]), ("small", [4, 16, 16, 3])]);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::View;

/// Says how images are decoded, and which type and layout a batch has.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline, PixelDtype, PixelLayout, Pixels};
///
/// let mut pixels = Pixels::default();
/// pixels.dtype = Some(PixelDtype::Float16);
/// pixels.layout = Some(PixelLayout::Nhwc);
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let image = Image::new(Pipeline::eval(40, 32)?).with_pixels(pixels);
/// let mut loader = Loader::new(&LoaderConfig::new(train, [image], 4))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// assert_eq!(batch.image_shape(), Some([4, 32, 32, 3]));
/// assert_eq!(batch.images().unwrap().len(), 4 * 32 * 32 * 3 * 2);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Pixels;

/// Chooses the type of a batch's pixels.
///
/// ```
/// use shardtool::{Image, Pipeline, PixelDtype};
///
/// let mut image = Image::new(Pipeline::eval(40, 32)?);
/// image.pixels.dtype = Some(PixelDtype::Bfloat16);
/// assert!(image.pixels.output()?.is_some(), "normalised");
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::PixelDtype;

/// Chooses the order of the dimensions of normalised pixels.
///
/// ```
/// use shardtool::PixelLayout;
///
/// assert_eq!(PixelLayout::Nchw.shape([8, 224, 224, 3]), [8, 3, 224, 224]);
/// ```
pub use shardtool_decode::Layout as PixelLayout;

/// Chooses colour or grey images.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Mode, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut image = Image::new(Pipeline::eval(40, 32)?);
/// image.pixels.mode = Mode::L;
/// let mut loader = Loader::new(&LoaderConfig::new(train, [image], 4))?;
/// assert_eq!(loader.epoch().next().expect("a step")?.image_shape(), Some([4, 32, 32, 1]));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Mode;

/// Changes the pixels of each image by a function of yours, in the loader's threads.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Custom, Dataset, Image, Loader, LoaderConfig, Pipeline};
/// use std::sync::Arc;
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut image = Image::new(Pipeline::eval(40, 32)?);
/// image.pixels.custom = Some(Custom(Arc::new(|pixels, _random| pixels.data.fill(7))));
/// let mut loader = Loader::new(&LoaderConfig::new(train, [image], 4))?;
/// assert!(loader.epoch().next().expect("a step")?.images().unwrap().iter().all(|value| *value == 7));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Custom;

/// Keeps decoded images from one epoch to the next.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, DecodedCache, Image, Loader, LoaderConfig, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut image = Image::new(Pipeline::train(32)?);
/// image.pixels.decoded_cache = Some(DecodedCache::new(16 << 20));
/// let mut loader = Loader::new(&LoaderConfig::new(train, [image], 4))?;
/// assert_eq!(loader.epoch().count(), 3);
/// assert!(loader.stats().decoded_cache.is_some());
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::DecodedCache;

/// Delivers a label map of each image, which gets the geometry of the image.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Mask, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 4).with(Mask::new("mask"));
/// let batch = Loader::new(&config)?.epoch().next().expect("a step")?;
/// let mask = batch.masks().next().unwrap();
/// assert_eq!(mask.shape, [4, 32, 32]);
/// assert!(mask.bytes.iter().all(|label| *label < 2));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Mask;

/// Delivers which pixels show the image, and which are padding.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline, PixelMask};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 4).with(PixelMask::default());
/// let batch = Loader::new(&config)?.epoch().next().expect("a step")?;
/// let mask = batch.pixel_mask().unwrap();
/// assert_eq!(mask.shape, [4, 32, 32]);
/// assert!(mask.bytes.iter().all(|pixel| *pixel == 1), "a crop has no padding");
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::PixelMask;

/// Chooses the type of the labels of a mask.
///
/// ```
/// use shardtool::{LabelDtype, Mask};
///
/// let mut instances = Mask::new("instances");
/// instances.dtype = LabelDtype::U16;
/// ```
pub use shardtool_decode::LabelDtype;

/// Delivers boxes, labels, keypoints and masks of the objects in an image.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Objects, Order, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Image::new(Pipeline::eval(48, 48)?)], 4).with(Objects::default());
/// let batch = Loader::new(&config.with_order(Order::Sequential))?.epoch().next().expect("a step")?;
/// // Of 64 × 48 pixels, the 48 × 48 in the middle are left.
/// let boxes = batch.column("image/object/bbox").unwrap();
/// assert_eq!(boxes.row_floats(0), Some(&[8.0, 12.0, 40.0, 36.0][..]));
/// assert_eq!(batch.column("image/object/class/label").unwrap().row_int64s(1), Some(&[1][..]));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Objects;

/// Says what the four numbers of a stored box are, if a dataset does not follow the convention.
///
/// ```
/// use shardtool::{BoxFormat, Objects};
///
/// let mut objects = Objects::default();
/// objects.boxes = "boxes".into();
/// objects.box_format = BoxFormat::Cxcywh;
/// assert_eq!(Objects::default().box_format, BoxFormat::Xyxy);
/// ```
pub use shardtool_format::BoxFormat;

/// Says in which unit a dataset has its boxes.
///
/// ```
/// use shardtool::{BoxUnit, Objects};
///
/// let mut objects = Objects::default();
/// objects.unit = BoxUnit::Pixel;
/// assert_eq!(Objects::default().unit, BoxUnit::Fraction);
/// ```
pub use shardtool_format::BoxUnit;

/// Delivers another image of each record, such as depth, with the geometry of the first.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, FurtherImage, FurtherKind, Image, Loader, LoaderConfig, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let depth = FurtherImage::of_kind("depth", FurtherKind::Values);
/// let config = LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 4).with(depth);
/// let batch = Loader::new(&config)?.epoch().next().expect("a step")?;
/// let depth = batch.pictures().find(|picture| picture.feature == Some("depth")).unwrap();
/// assert_eq!((depth.shape, depth.values), ([4, 32, 32, 1], true));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::FurtherImage;

/// Says whether a further image holds colours or values that must not be mixed.
///
/// ```
/// use shardtool::{FurtherImage, FurtherKind};
///
/// let depth = FurtherImage::of_kind("depth", FurtherKind::Values);
/// assert_eq!(depth.kind, Some(FurtherKind::Values));
/// ```
pub use shardtool_load::FurtherKind;

/// Delivers frames of a video, in place of an image.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Clip, ClipSampling, Dataset, Loader, LoaderConfig, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut clip = Clip::new("frames", Pipeline::train(32)?, 4);
/// clip.sampling = ClipSampling::Center;
/// let mut loader = Loader::new(&LoaderConfig::new(train, [clip], 2))?;
/// let batch = loader.epoch().next().expect("a step")?;
/// assert_eq!(batch.pictures().next().unwrap().dimensions(), [2, 4, 32, 32, 3]);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Clip;

/// Chooses the frames of a clip.
///
/// ```
/// use shardtool::{Clip, ClipSampling, Pipeline};
///
/// // For evaluation: three clips of each video, spread evenly.
/// let mut clip = Clip::new("frames", Pipeline::eval(256, 224)?, 16);
/// (clip.sampling, clip.clips) = (ClipSampling::Even, 3);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::ClipSampling;
