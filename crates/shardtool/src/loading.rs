//! The loader, its configuration, and what it says of its run.

/// Delivers batches to a trainer.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut loader = Loader::new(&LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 5))?;
/// for _epoch in 0..3 {
///     for batch in loader.epoch() {
///         assert_eq!(batch?.labels().expect("classes").len(), 5);
///     }
/// }
/// assert_eq!(loader.stats().samples, 3 * 10, "two of twelve samples do not fill a batch");
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Loader;

/// Configures a loader.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Column, Dataset, Image, Loader, LoaderConfig, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 4)
///     .with(Column::new("embedding"))
///     .with_seed(7)
///     .with_workers(2)
///     .with_memory(64 << 20);
/// assert_eq!(Loader::new(&config)?.steps_left(), 3);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Config as LoaderConfig;

/// Lists the parts of a configuration that cannot be combined, with the reasons.
///
/// ```
/// use shardtool::EXCLUSIONS;
///
/// for exclusion in &EXCLUSIONS {
///     let others: Vec<&str> = exclusion.others.iter().map(|part| part.name()).collect();
///     println!("{} without {}: {}", exclusion.part.name(), others.join(", "), exclusion.reason);
/// }
/// ```
pub use shardtool_load::EXCLUSIONS;

/// Maps the class ids of several splits.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Classes, Dataset, Field, Loader, LoaderConfig};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut config = LoaderConfig::new(train, [Field::Record], 4);
/// config.classes = Classes::Names(vec!["dog".into(), "cat".into(), "bird".into()]);
/// let batch = Loader::new(&config)?.epoch().next().expect("a step")?;
/// let record = batch.records()[0].as_ref().unwrap();
/// assert_eq!(batch.labels().unwrap()[0], i64::from(record.key()?.starts_with(b"cat")));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Classes;

/// Decides what happens to samples that cannot be decoded.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{BadSamples, Dataset, Image, LoaderConfig, OnBad, Pipeline};
///
/// let mut strict = BadSamples::default();
/// strict.on_bad = Some(OnBad::Error);
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 4).with_bad_samples(strict);
/// assert_eq!(config.on_bad(), OnBad::Error);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::BadSamples;

/// Names what happens to a bad sample.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, LoaderConfig, OnBad, Order};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Field::Record], 4);
/// assert_eq!(config.on_bad(), OnBad::Substitute);
/// assert_eq!(config.with_order(Order::Sequential).on_bad(), OnBad::Mask);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::OnBad;

/// Bounds what is read and built ahead of the trainer.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, Loader, LoaderConfig, Prefetch};
///
/// let mut prefetch = Prefetch::default();
/// prefetch.batches = Some(1);
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let loader = Loader::new(&LoaderConfig::new(train, [Field::Record], 4).with_prefetch(prefetch))?;
/// assert_eq!(loader.stats().prefetch, 1);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Prefetch;

/// Keeps or releases what was read in the page cache of the system.
///
/// ```
/// use shardtool::{PageCache, Prefetch};
///
/// let mut prefetch = Prefetch::default();
/// prefetch.page_cache = PageCache::Release;
/// ```
pub use shardtool_load::PageCache;

/// Says what a run will take, before it begins.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let plan = Loader::plan(&LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 5))?;
/// assert_eq!(plan.schedule.steps(0), 2);
/// assert_eq!(plan.classes, ["cat", "dog"]);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::LoadPlan;

/// Says how a loader divides its memory.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 4).with_memory(64 << 20);
/// let memory = Loader::plan(&config)?.memory;
/// assert_eq!(memory.budget, 64 << 20);
/// assert!(memory.batch >= 4 * 32 * 32 * 3 && memory.minimum() <= memory.budget);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::MemoryPlan;

/// Reads the statistics of a loader from another thread.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, Loader, LoaderConfig};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut loader = Loader::new(&LoaderConfig::new(train, [Field::Record], 4))?;
/// let monitor = loader.monitor();
/// let samples = std::thread::spawn(move || monitor.stats().samples);
/// loader.epoch().for_each(drop);
/// assert!(samples.join().unwrap() <= 12);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Monitor;

/// Says where the time of a run goes.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut loader = Loader::new(&LoaderConfig::new(train, [Image::new(Pipeline::train(32)?)], 4))?;
/// loader.epoch().for_each(drop);
/// let stats = loader.stats();
/// println!("{:.0} images per second; {}", stats.rate(), stats.bottleneck());
/// assert_eq!((stats.samples, stats.bad), (12, 0));
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Stats;

/// Reports an event that did not end the run.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, Loader, LoaderConfig, Notice};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut loader = Loader::new(&LoaderConfig::new(train, [Field::Record], 4))?;
/// loader.epoch().for_each(drop);
/// for notice in loader.notices() {
///     match notice {
///         Notice::BadSamples { epoch, count } => println!("{count} bad samples by epoch {epoch}"),
///         other => println!("{other}"),
///     }
/// }
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Notice;
