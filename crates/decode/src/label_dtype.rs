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
    /// 32 bits, little-endian: ids of a panoptic map that an RGB PNG codes as R + 256 G + 65,536 B (COCO), or of 8 or 16 bits.
    #[serde(rename = "int32")]
    I32,
}

impl LabelDtype {
    /// Returns the size of one value in bytes.
    pub fn bytes(self) -> usize {
        match self {
            LabelDtype::U8 => 1,
            LabelDtype::U16 => 2,
            LabelDtype::I32 => 4,
        }
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            LabelDtype::U8 => "uint8",
            LabelDtype::U16 => "uint16",
            LabelDtype::I32 => "int32",
        }
    }

    /// Returns the label of pixels without a label, which losses ignore by convention: the largest one, and -1 of 32 bits.
    pub fn ignored(self) -> i32 {
        match self {
            LabelDtype::U8 => u8::MAX.into(),
            LabelDtype::U16 => u16::MAX.into(),
            LabelDtype::I32 => -1,
        }
    }

    /// Returns whether labels may have this value.
    pub fn holds(self, label: i32) -> bool {
        match self {
            LabelDtype::U8 => u8::try_from(label).is_ok(),
            LabelDtype::U16 => u16::try_from(label).is_ok(),
            LabelDtype::I32 => true,
        }
    }
}
