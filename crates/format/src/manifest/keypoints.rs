//! What the keypoints of objects are: the manifest's member `keypoints`.

use super::SidesError;
use super::check::wrong;
use crate::Result;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// The points of each object, in the order in which records store them (`image/object/keypoints`). A member that is empty is not
/// known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keypoints {
    /// The name of each point, such as `left_eye`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// The number that each point has in a mirrored object: `[0, 2, 1]` for a nose and two eyes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flip_index: Vec<usize>,
    /// Numbers of points, from 0, that a line joins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skeleton: Vec<[usize; 2]>,
}

impl Keypoints {
    /// Returns the number of points of an object: that of the names, or that of `flip_index` if there are no names.
    pub fn count(&self) -> usize {
        self.names.len().max(self.flip_index.len())
    }

    /// Returns the number that each point has in a mirrored object: as it is stored, or by names of which some have a side; `None` if no
    /// name has.
    ///
    /// # Errors
    /// [`SidesError`].
    pub fn mirrored(&self) -> std::result::Result<Option<Vec<usize>>, SidesError> {
        if !self.flip_index.is_empty() {
            return Ok(Some(self.flip_index.clone()));
        }
        let order = super::flip_index(&self.names)?;
        Ok(Some(order).filter(|order| order.iter().enumerate().any(|(number, other)| number != *other)))
    }

    /// Checks that all members are about the same points: names are not empty and none is twice, `flip_index` exchanges pairs, and
    /// the skeleton joins two points that exist.
    ///
    /// # Errors
    /// [`crate::Error::ManifestValue`].
    pub fn check(&self) -> Result<()> {
        let problem = |value: &str, problem| Err(wrong("keypoints", value, problem));
        let Keypoints { names, flip_index, skeleton } = self;
        if self.count() == 0 {
            return problem("", "neither `names` nor `flip_index`");
        }
        let mut known = HashSet::new();
        if let Some(name) = names.iter().find(|name| name.is_empty() || !known.insert(name.as_str())) {
            return problem(name, "an empty name, or a name twice");
        }
        if !names.is_empty() && !flip_index.is_empty() && names.len() != flip_index.len() {
            return problem(&flip_index.len().to_string(), "the length of `flip_index`, which is not that of `names`");
        }
        if let Some(at) = (0..flip_index.len()).find(|at| flip_index.get(flip_index[*at]) != Some(at)) {
            return problem(&flip_index[at].to_string(), "a number in `flip_index` that does not exchange two points");
        }
        let joins = |[a, b]: &&[usize; 2]| a == b || *a.max(b) >= self.count();
        match skeleton.iter().find(joins) {
            Some([a, b]) => problem(&format!("{a}, {b}"), "a pair of `skeleton` that does not join two of the points"),
            None => Ok(()),
        }
    }

    /// Returns the value of the member, as a writer writes it: JSON in one line.
    pub(super) fn line(&self) -> String {
        let names: Vec<_> = self.names.iter().map(|name| super::write::text(name)).collect();
        let pairs: Vec<_> = self.skeleton.iter().map(|[a, b]| format!("[{a}, {b}]")).collect();
        let numbers: Vec<_> = self.flip_index.iter().map(usize::to_string).collect();
        let members = [("names", names), ("flip_index", numbers), ("skeleton", pairs)];
        let members = members.iter().filter(|(_, values)| !values.is_empty());
        let members: Vec<_> = members.map(|(name, values)| format!("\"{name}\": [{}]", values.join(", "))).collect();
        format!("{{{}}}", members.join(", "))
    }
}
