//! Columns: values of a feature, as they are stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The values of a feature of each record. A batch has them by the feature's name: an array `[N]` of one number for each record,
/// the numbers of all records and where each record's end (ragged), or byte strings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Column {
    /// Name of the feature.
    #[schemars(extend("x-positional" = true))]
    pub feature: String,
    /// Delivers one of the record's values, such as one caption of several, drawn again in each epoch. Columns that draw from as many
    /// values get the one at the same place. A text of none is empty.
    #[serde(default)]
    pub draw: bool,
    /// Delivers `[N, multi_hot]` float32: 1 at each of the record's class ids, or of the names in `classes`, 0 elsewhere, and for a record without any. The number of
    /// classes; ids are 0 and more. Batch transforms mix the rows as their images.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub multi_hot: Option<u32>,
    /// How the values are laid out in a batch. Default: as the index says, see [`Layout::Auto`].
    #[serde(default)]
    #[schemars(skip)]
    pub layout: Layout,
}

/// How the values of a feature are laid out in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Layout {
    /// `[N]` if every record has one number; bytes for byte strings; else ragged. Decided by the indexes of
    /// all shards, of 256 at most, evenly spaced (of the first one in a store); for bare files by their first record.
    #[default]
    Auto,
    /// `width` numbers per record: `[N, width]`, or `[N]` if `width` is 1.
    Numbers {
        /// Numbers per record, at least 1.
        width: usize,
    },
    /// Any number of values per record: all values, and the offset at which each record's values end.
    Ragged,
    /// One byte string per record: all bytes, and the offset at which each string ends.
    Bytes,
}

impl Column {
    /// Returns a column in the layout that the index says.
    pub fn new(feature: impl Into<String>) -> Self {
        Column::with_layout(feature, Layout::Auto)
    }

    /// Returns a column of one value of each record, drawn at random.
    pub fn drawn(feature: impl Into<String>) -> Self {
        Column { draw: true, ..Column::new(feature) }
    }

    /// Returns a column of `classes` numbers for each record: 1 at its class ids, 0 elsewhere.
    pub fn multi_hot(feature: impl Into<String>, classes: u32) -> Self {
        Column { multi_hot: Some(classes), ..Column::new(feature) }
    }

    /// Returns a column in a layout.
    pub fn with_layout(feature: impl Into<String>, layout: Layout) -> Self {
        Column { feature: feature.into(), draw: false, multi_hot: None, layout }
    }
}
