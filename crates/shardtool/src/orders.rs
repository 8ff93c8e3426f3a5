//! Orders: which samples an epoch shows, in which order, on which replica.

/// Chooses the order of an epoch.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, Loader, LoaderConfig, Order};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Field::Record], 4).with_order(Order::Sequential);
/// assert_eq!(Loader::new(&config)?.epoch().next().expect("a step")?.ids(), [0, 1, 2, 3]);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_order::Order;

/// Decides how replicas share an epoch.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, Loader, LoaderConfig, Policy, Replica};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut config = LoaderConfig::new(train, [Field::Record], 4).with_replica(Replica::new(0, 3)?);
/// assert_eq!(Loader::new(&config)?.steps_left(), 1);
/// config.policy = Policy::Off; // each replica shows all samples
/// assert_eq!(Loader::new(&config)?.steps_left(), 3);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_order::Policy;

/// Decides what happens to samples that do not fill the last batch.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, Loader, LoaderConfig, Remainder};
///
/// let split = Dataset::open("dataset")?.split("validation")?.clone();
/// let config = LoaderConfig::new(split, [Field::Record], 4);
/// for (remainder, steps) in [(Remainder::Drop, 1), (Remainder::Pad, 2), (Remainder::Mask, 2)] {
///     assert_eq!(Loader::new(&config.clone().with_remainder(remainder))?.steps_left(), steps);
/// }
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_order::Remainder;

/// Decides which samples an epoch shows.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, Loader, LoaderConfig, Source};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let long = Source::list(train.matching(["length>=10"])?, train.len())?;
/// let mut loader = Loader::new(&LoaderConfig::new(train, [Field::Record], 5).with_source(long))?;
/// let mut ids = loader.epoch().next().expect("a step")?.ids().to_vec();
/// ids.sort();
/// assert_eq!(ids, [7, 8, 9, 10, 11]);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_order::Source;

/// Shows each sample in proportion to its weight.
///
/// ```
/// use shardtool::{Order, Source, Weighted};
///
/// // Three times as often, never, once; eight samples are an epoch.
/// let source = Source::Weighted(Weighted::new([3, 0, 1], Some(8))?);
/// let mut ids: Vec<u64> = (0..source.len()).map(|position| source.id(Order::Shuffled, 7, 0, position)).collect();
/// ids.sort();
/// assert_eq!(ids, [0, 0, 0, 0, 0, 0, 2, 2]);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_order::Weighted;

/// Shows each class equally often.
///
/// ```
/// use shardtool::{Balanced, Dataset, Order, Source};
///
/// let labels = [0, 0, 0, 0, 1];
/// let source = Source::Balanced(Balanced::new((0..).zip(labels)));
/// let rare = (0..source.len()).filter(|position| source.id(Order::Shuffled, 7, 0, *position) == 4).count();
/// assert_eq!((source.len(), rare), (6, 3));
/// ```
pub use shardtool_order::Balanced;

/// Mixes several splits, each with a share.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, Loader, LoaderConfig, Mixture, Source};
///
/// let dataset = Dataset::open("dataset")?;
/// let (large, small) = (dataset.split("train")?, dataset.split("validation")?);
/// let mut config = LoaderConfig::new(large.clone(), [Field::Record], 4);
/// config.splits.push(small.clone());
/// // Three samples of the first for each of the second; sixteen are an epoch.
/// let mixture = Mixture::new(&[(large.len(), 3), (small.len(), 1)], Some(16))?;
/// let mut ids = vec![];
/// for batch in Loader::new(&config.with_source(Source::Mixture(mixture)))?.epoch() {
///     ids.extend_from_slice(batch?.ids());
/// }
/// assert_eq!(ids.iter().filter(|id| **id < 12).count(), 12);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_order::Mixture;

/// Mixes members in shares that change within the run.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, Loader, LoaderConfig, Stages};
///
/// let dataset = Dataset::open("dataset")?;
/// let mut config = LoaderConfig::new(dataset.split("train")?.clone(), [Field::Record], 4);
/// config.splits.push(dataset.split("validation")?.clone());
/// // Three samples of the first for each of the second, and from epoch 1 on the first alone.
/// let stages: Stages = "0: 3,1; 1: 1,0".parse().expect("stages");
/// let mut loader = Loader::new(&config.with_stages(stages.with_draws(8)))?;
/// for expected in [6, 8] {
///     let mut first = 0;
///     for batch in loader.epoch() {
///         first += batch?.ids().iter().filter(|id| **id < 12).count();
///     }
///     assert_eq!(first, expected);
/// }
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_load::Stages;

/// Says from where on members have which weights.
///
/// ```
/// use shardtool::{MemberStage, Stages};
///
/// let easy = MemberStage::new("0", ["1", "0.5"])?.with_condition("difficulty<2");
/// let stages = Stages::new([easy, MemberStage::new("20%", ["1", "1"])?]).with_epochs(90);
/// assert_eq!(stages, "0: 1,0.5 where difficulty<2; 20%: 1,1".parse::<Stages>()?.with_epochs(90));
/// # Ok::<(), String>(())
/// ```
pub use shardtool_load::MemberStage;

/// Chooses what has a share: the splits of the loader, the classes of the labels, or lists of samples.
///
/// ```
/// use shardtool::{Members, Stages};
///
/// // Samples 0, 2 and 4 as often as 1 and 3 together.
/// let lists = Members::Lists(vec![vec![0, 2, 4], vec![1, 3]]);
/// let stages = "0: 1,1".parse::<Stages>()?.with_members(lists);
/// assert_ne!(stages.members, Members::Splits);
/// # Ok::<(), String>(())
/// ```
pub use shardtool_load::Members;

/// Chooses a label of each sample to balance by, where samples have several.
///
/// ```
/// use shardtool::{Balanced, Source, rarest_labels};
///
/// let samples: [&[i64]; 4] = [&[3], &[3, 7], &[], &[7, 3, 9]];
/// let labels = rarest_labels(samples.into_iter());
/// assert_eq!(labels, [3, 7, -1, 9]);
/// let source = Source::Balanced(Balanced::new((0..).zip(labels)));
/// assert_eq!(source.len(), 4);
/// ```
pub use shardtool_order::rarest_labels;

/// Says which of several processes this one is.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, Loader, LoaderConfig, Replica};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let mut ids = vec![];
/// for rank in 0..2 {
///     let config = LoaderConfig::new(train.clone(), [Field::Record], 3).with_replica(Replica::new(rank, 2)?);
///     for batch in Loader::new(&config)?.epoch() {
///         ids.extend_from_slice(batch?.ids());
///     }
/// }
/// ids.sort();
/// assert!(ids.into_iter().eq(0..12), "each sample once");
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_order::Replica;

/// Reads rank and world size from what torchrun, Open MPI, MPICH or SLURM set.
///
/// ```
/// use shardtool::Launch;
///
/// let launch = Launch::from_env(None, |name| match name {
///     "RANK" => Some("3".into()),
///     "WORLD_SIZE" => Some("8".into()),
///     "LOCAL_WORLD_SIZE" => Some("4".into()),
///     _ => None,
/// })?;
/// assert_eq!((launch.replica.rank(), launch.replica.world(), launch.local_world), (3, 8, Some(4)));
/// // Of this process, which no launcher started:
/// # if std::env::var_os("RANK").is_none() && std::env::var_os("SLURM_PROCID").is_none() {
/// assert_eq!(Launch::of_process()?.replica.world(), 1);
/// # }
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_order::Launch;

/// Names what set rank and world size.
///
/// ```
/// use shardtool::{Launch, Launcher};
///
/// let launch = Launch::from_env(None, |name| match name {
///     "OMPI_COMM_WORLD_RANK" => Some("0".into()),
///     "OMPI_COMM_WORLD_SIZE" => Some("2".into()),
///     _ => None,
/// })?;
/// assert_eq!((launch.launcher, launch.replica.world()), (Launcher::OpenMpi, 2));
/// let launch = Launch::from_env(None, |_| None)?;
/// assert_eq!(launch.launcher, Launcher::None);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_order::Launcher;

/// Says where a run is, as text for a checkpoint.
///
/// ```
/// # let _folder = include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doctest/datasets.rs"));
/// use shardtool::{Dataset, Field, Loader, LoaderConfig, ResumeState};
///
/// let train = Dataset::open("dataset")?.split("train")?.clone();
/// let config = LoaderConfig::new(train, [Field::Record], 4).with_seed(7);
/// let mut loader = Loader::new(&config)?;
/// let first = loader.epoch().next().expect("a step")?;
/// let text = first.state_after().to_string();
/// let expected = loader.epoch().next().expect("a step")?.ids().to_vec();
///
/// // In another process:
/// let state: ResumeState = text.parse()?;
/// let mut resumed = Loader::new(&config)?;
/// resumed.load_state(&state)?;
/// assert_eq!(resumed.epoch().next().expect("a step")?.ids(), expected);
/// # Ok::<(), shardtool::Error>(())
/// ```
pub use shardtool_order::ResumeState;
