//! The devices on which batches are delivered.

use super::size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CUDA devices on which batches are delivered, and their memory. On `"cpu"` the memory of devices does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Device")]
#[non_exhaustive]
pub struct Devices {
    /// `"cuda:0"`, or several devices, each one replica: a batch then is a list of one for each.
    #[schemars(extend("x-positional" = true, "x-python" = "Any"))]
    pub devices: Vec<String>,
    /// Bytes, or text such as `"8GiB"`, that batches may use on each device. Default: all of its memory.
    #[serde(default, deserialize_with = "size::optional")]
    #[schemars(schema_with = "size::optional_schema")]
    pub memory_limit: Option<u64>,
    /// Batches that each device has memory for: held by the consumer, being uploaded, or ready.
    #[serde(default = "default_slots")]
    #[schemars(range(min = 2, max = 65_536))]
    pub slots: usize,
}

fn default_slots() -> usize {
    4
}
