//! The type of a label map's values.

use serde::{Deserialize, Serialize};

/// The type of a label map's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum LabelDtype {
    /// 8 bits: up to 256 labels.
    #[default]
    #[serde(rename = "uint8")]
    U8,
    /// 16 bits, little-endian: up to 65,536 labels, such as instances.
    #[serde(rename = "uint16")]
    U16,
}

impl LabelDtype {
    /// Returns the size of one value in bytes.
    pub fn bytes(self) -> usize {
        match self {
            LabelDtype::U8 => 1,
            LabelDtype::U16 => 2,
        }
    }
}
