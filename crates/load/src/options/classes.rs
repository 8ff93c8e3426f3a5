//! What labels mean where splits meet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The class ids of batches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Classes {
    /// Those of the splits, which must all have the same names in the same order, or all no names.
    #[default]
    Equal,
    /// The names of the first split, then those that further splits add. Maps labels by name.
    Union,
    /// These names. Maps labels by name; each class of a split must be among them.
    Names(Vec<String>),
    /// Those of the splits, whatever their names: the same id is the same class.
    Ids,
}
