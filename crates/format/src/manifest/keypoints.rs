//! What the keypoints of objects are: the manifest's member `keypoints`.

use super::SidesError;
use super::check::wrong;
use crate::Result;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Points of an object, and lines between them, at most.
const MAX_POINTS: usize = 10_000;
/// Bytes of a name, at most.
const MAX_NAME: usize = 256;

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
    /// The feature that has the points of each object: x, y and visibility.
    pub const FEATURE: &str = "image/object/keypoints";

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

    /// Returns what two descriptions of the same points say together; `None` if they contradict each other: both have a member, and it
    /// differs.
    pub fn joined(&self, other: &Keypoints) -> Option<Keypoints> {
        fn member<T: Clone + PartialEq>(a: &[T], b: &[T]) -> Option<Vec<T>> {
            match (a.is_empty(), b.is_empty()) {
                (false, false) if a != b => None,
                (true, _) => Some(b.to_vec()),
                _ => Some(a.to_vec()),
            }
        }
        let joined = Keypoints {
            names: member(&self.names, &other.names)?,
            flip_index: member(&self.flip_index, &other.flip_index)?,
            skeleton: member(&self.skeleton, &other.skeleton)?,
        };
        joined.check().is_ok().then_some(joined)
    }

    /// Checks that all members are about the same points: names are not empty and none is twice, `flip_index` exchanges pairs, and
    /// the skeleton joins two points that exist.
    ///
    /// # Errors
    /// [`crate::Error::ManifestValue`].
    pub fn check(&self) -> Result<()> {
        self.found().map_or(Ok(()), |(value, problem)| Err(wrong("keypoints", &value, problem)))
    }

    /// Returns what [`check`](Self::check) finds, for people; `None` if all is well.
    pub fn problem(&self) -> Option<String> {
        let (value, problem) = self.found()?;
        Some(if value.is_empty() { problem.to_owned() } else { format!("{problem}: {value}") })
    }

    /// Returns the first value that is wrong, and why.
    fn found(&self) -> Option<(String, &'static str)> {
        let Keypoints { names, flip_index, skeleton } = self;
        if self.count() == 0 {
            return Some((String::new(), "neither `names` nor `flip_index`"));
        }
        if self.count() > MAX_POINTS || skeleton.len() > MAX_POINTS {
            return Some((
                self.count().max(skeleton.len()).to_string(),
                "more than 10,000 points, or pairs of `skeleton`",
            ));
        }
        let mut known = HashSet::new();
        if let Some(name) = names.iter().find(|name| name.len() > MAX_NAME) {
            return Some((name.len().to_string(), "a name of more than 256 bytes"));
        }
        if let Some(name) = names.iter().find(|name| name.is_empty() || !known.insert(name.as_str())) {
            return Some((name.clone(), "an empty name, or a name twice"));
        }
        if !names.is_empty() && !flip_index.is_empty() && names.len() != flip_index.len() {
            return Some((flip_index.len().to_string(), "the length of `flip_index`, which is not that of `names`"));
        }
        if let Some(at) = (0..flip_index.len()).find(|at| flip_index.get(flip_index[*at]) != Some(at)) {
            return Some((flip_index[at].to_string(), "a number in `flip_index` that does not exchange two points"));
        }
        let mut joined = HashSet::new();
        if let Some([a, b]) = skeleton.iter().find(|[a, b]| !joined.insert([a.min(b), a.max(b)])) {
            return Some((format!("{a}, {b}"), "a pair of `skeleton` that is there twice"));
        }
        let joins = |[a, b]: &&[usize; 2]| a == b || *a.max(b) >= self.count();
        let [a, b] = skeleton.iter().find(joins)?;
        Some((format!("{a}, {b}"), "a pair of `skeleton`, which counts from 0, that does not join two of the points"))
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
