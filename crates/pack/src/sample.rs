//! Samples as they are packed, whatever their source.

mod schema;
mod values;

pub(crate) use schema::{SampleSchema, features, is_written};
pub(crate) use values::{ListedFile, Values};

/// A sample as it is packed, but for its image.
pub(crate) struct ResolvedSample {
    pub(crate) key: String,
    pub(crate) label: Option<i64>,
    pub(crate) values: Vec<Values>,
}
