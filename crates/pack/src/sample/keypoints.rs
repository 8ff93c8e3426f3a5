//! What a source says of the keypoints of its objects.

use serde::{Deserialize, Serialize};
use shardtool_format::manifest::Keypoints;

/// What the keypoints of a source's objects are.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct DescribedKeypoints {
    pub(crate) known: Option<Keypoints>,
    /// What the source says, and why a dataset cannot keep it.
    pub(crate) left_out: Option<String>,
}
