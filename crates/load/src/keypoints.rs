//! What the keypoints of several splits are: the datasets say which they are and which change places in a mirrored object.

use crate::classes::describe;
use crate::error::{Error, Result};
use crate::options::KEYPOINTS;
use crate::splits::Splits;
use shardtool_format::manifest::{Keypoints, SidesError};

/// The keypoints of splits.
#[derive(Debug, Default)]
pub(crate) struct DescribedKeypoints {
    /// Points of each object, if it is known.
    pub(crate) count: Option<usize>,
    /// The number that each point has in a mirrored object; `None` if it is not known. The error says why names do not tell it.
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
        let described = |split: &shardtool_read::Split| split.manifest().keypoints.clone();
        let meaning = |keypoints: &Keypoints| (keypoints.names.clone(), keypoints.mirrored().ok().flatten());
        let all: Vec<_> = splits.as_slice().iter().map(|split| (split, described(split))).collect();
        let differ = |(a, b): (&Option<Keypoints>, &Option<Keypoints>)| match (a, b) {
            (Some(a), Some(b)) => meaning(a) != meaning(b),
            (None, None) => false,
            _ => !given,
        };
        let (first, keypoints) = &all[0];
        if let Some((other, theirs)) = all.iter().find(|(_, theirs)| differ((keypoints, theirs))) {
            let text = |split: &shardtool_read::Split, keypoints: &Option<Keypoints>| match keypoints {
                None => format!("those of {} have no names", describe(split)),
                Some(keypoints) => format!("those of {} are {}", describe(split), points(keypoints)),
            };
            return Err(Error::Keypoints { first: text(first, keypoints), second: text(other, theirs) });
        }
        let known = all.into_iter().find_map(|(_, keypoints)| keypoints);
        Ok(DescribedKeypoints {
            count: known.as_ref().map(Keypoints::count),
            flip_index: known.as_ref().and_then(|known| known.mirrored().transpose()),
        })
    }
}

/// Returns the names of points, as text.
fn points(keypoints: &Keypoints) -> String {
    match keypoints.names.is_empty() {
        true => format!("{} points without names, mirrored to {:?}", keypoints.count(), keypoints.flip_index),
        false => keypoints.names.join(", "),
    }
}
