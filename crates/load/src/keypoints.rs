//! What the keypoints of several splits are: the datasets say which they are and which change places in a mirrored object.

use crate::classes::describe;
use crate::error::{Error, Result};
use crate::options::KEYPOINTS;
use crate::splits::Splits;
use shardtool_format::manifest::{Keypoints, SidesError};
use shardtool_read::Split;

/// The keypoints of splits.
#[derive(Debug, Default)]
pub(crate) struct DescribedKeypoints {
    /// Points of each object, if it is known.
    pub(crate) count: Option<usize>,
    /// The number that each point has in a mirrored object; `None` if it is not known. The error says why the names leave it open.
    pub(crate) flip_index: Option<std::result::Result<Vec<usize>, SidesError>>,
}

impl DescribedKeypoints {
    /// Compares what the datasets say of a feature. Unless the order of mirrored points is `given`, all must describe the points, or
    /// none.
    ///
    /// # Errors
    /// [`Error::Keypoints`].
    pub(crate) fn new(splits: &Splits, feature: &str, given: bool) -> Result<Self> {
        if feature != KEYPOINTS {
            return Ok(Self::default());
        }
        let all: Vec<_> = splits.as_slice().iter().map(|split| (split, split.manifest().keypoints.clone())).collect();
        let (first, keypoints) = &all[0];
        if let Some((other, theirs)) = all.iter().find(|(_, theirs)| !are_same(keypoints, theirs, given)) {
            return Err(Error::Keypoints { first: text(first, keypoints), second: text(other, theirs) });
        }
        let known = all.into_iter().filter_map(|(_, keypoints)| keypoints).max_by_key(|known| known.names.len());
        Ok(DescribedKeypoints {
            count: known.as_ref().map(Keypoints::count),
            flip_index: known.as_ref().and_then(|known| known.mirrored().transpose()),
        })
    }
}

/// Returns whether the points of two datasets are the same. Where one does not name them, the user says so.
fn are_same(a: &Option<Keypoints>, b: &Option<Keypoints>, given: bool) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return given || a == b };
    let mirrored = |keypoints: &Keypoints| keypoints.mirrored().ok().flatten();
    let orders = (mirrored(a), mirrored(b));
    a.count() == b.count()
        && (a.names == b.names || ((a.names.is_empty() || b.names.is_empty()) && given))
        && (orders.0 == orders.1 || given)
}

/// Returns what a dataset says of its points, as text.
fn text(split: &Split, keypoints: &Option<Keypoints>) -> String {
    let split = describe(split);
    match keypoints {
        None => format!("those of {split} have no names"),
        Some(keypoints) if keypoints.names.is_empty() => {
            format!("those of {split} are {} without names, mirrored to {:?}", keypoints.count(), keypoints.flip_index)
        }
        Some(keypoints) => format!("those of {split} are {}", keypoints.names.join(", ")),
    }
}
