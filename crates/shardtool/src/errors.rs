//! One error type for programs that use several of the crates.

/// Prints an error with all its causes on one line.
///
/// ```
/// use shardtool::{Chain, Dataset};
///
/// let error = Dataset::open("nowhere").unwrap_err();
/// assert!(Chain(&error).to_string().contains("nowhere"));
/// ```
pub use shardtool_format::Chain;

/// Result of a function that calls several of the crates.
///
/// ```
/// use shardtool::{Dataset, Image, Loader, LoaderConfig, Pipeline};
///
/// fn validation(dataset: &str) -> shardtool::Result<Loader> {
///     let split = Dataset::open(dataset)?.split("validation")?.clone();
///     Ok(Loader::new(&LoaderConfig::new(split, [Image::new(Pipeline::eval(256, 224)?)], 64))?)
/// }
///
/// assert!(validation("nowhere").is_err());
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// An error of any of the crates, so that `?` works on all of them. Each variant displays the error that it holds.
///
/// ```
/// use shardtool::{Dataset, Error};
///
/// match shardtool::Error::from(Dataset::open("nowhere").unwrap_err()) {
///     Error::Read(error) => println!("no dataset: {error}"),
///     other => panic!("{other}"),
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes of a dataset that do not follow the format.
    #[error(transparent)]
    Format(#[from] shardtool_format::Error),
    /// An order, source, replica or resume state that does not fit.
    #[error(transparent)]
    Order(#[from] shardtool_order::Error),
    /// An image that cannot be decoded, or a transform that cannot be applied.
    #[error(transparent)]
    Decode(#[from] shardtool_decode::Error),
    /// A normalisation that no type of pixels can hold.
    #[error(transparent)]
    Output(#[from] shardtool_decode::OutputError),
    /// What an object covers cannot be drawn.
    #[error(transparent)]
    Segmentation(#[from] shardtool_decode::SegmentationError),
    /// A dataset that cannot be opened, or damage in a record.
    #[error(transparent)]
    Read(#[from] shardtool_read::Error),
    /// A source or destination that cannot be used.
    #[error(transparent)]
    Pack(Box<shardtool_pack::Error>),
    /// A configuration that does not fit, or the error that ended an epoch.
    #[error(transparent)]
    Load(Box<shardtool_load::Error>),
    /// A condition on records that cannot be parsed.
    #[error(transparent)]
    Condition(#[from] shardtool_read::ConditionError),
    /// Options of a loader that contradict each other.
    #[error(transparent)]
    Options(#[from] shardtool_load::InvalidOptions),
    /// Names of keypoints that do not say which change places in a mirrored object.
    #[error(transparent)]
    Sides(#[from] shardtool_format::manifest::SidesError),
    /// An array that does not fit its shape, or cannot be stored.
    #[error(transparent)]
    Array(#[from] shardtool_format::array::ArrayError),
    /// An error of the system, as of the folder of a [`Cache`](crate::Cache).
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// No driver, no device, or an error of the driver.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Cuda(#[from] shardtool_cuda::Error),
}

// Boxed, because these two are the largest.
impl From<shardtool_pack::Error> for Error {
    fn from(error: shardtool_pack::Error) -> Self {
        Error::Pack(Box::new(error))
    }
}

impl From<shardtool_load::Error> for Error {
    fn from(error: shardtool_load::Error) -> Self {
        Error::Load(Box::new(error))
    }
}
