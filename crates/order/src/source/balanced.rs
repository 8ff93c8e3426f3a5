//! Every class equally often, whatever its size.

use std::collections::BTreeMap;

use super::{crc32c_numbers, rotate};
use crate::Error;
use crate::permutation::MAX;

/// Cycles through the classes, and inside a class through its samples; an epoch continues where the preceding one
/// stopped. Over many epochs every sample of a class is shown equally often. Holds 8 bytes per id and per class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balanced {
    /// Ids grouped by class, in the given order inside a class.
    ids: Box<[u64]>,
    /// End of each class in `ids`; every class has at least one id.
    ends: Box<[u64]>,
    /// Source positions of a class per epoch: ⌈M ÷ J⌉ for M samples in J classes.
    per_class: u64,
}

impl Balanced {
    /// Balances samples given as (id, label). Classes are in ascending order of their labels, samples of a class in the
    /// given order. Iterates twice, so that no memory beyond the result is needed.
    pub fn new(samples: impl Iterator<Item = (u64, i64)> + Clone) -> Self {
        let mut classes = BTreeMap::<i64, u64>::new();
        let mut n = 0;
        for (_, label) in samples.clone() {
            *classes.entry(label).or_default() += 1;
            n += 1;
        }
        // Turns each class's count into its next free slot, which is its end after the second pass.
        let mut start = 0;
        for slot in classes.values_mut() {
            start += std::mem::replace(slot, start);
        }
        let mut ids = vec![0; n];
        for (id, label) in samples {
            if let Some(slot) = classes.get_mut(&label) {
                ids[*slot as usize] = id;
                *slot += 1;
            }
        }
        let per_class = per_class(classes.len() as u64, n as u64);
        Balanced { ids: ids.into(), ends: classes.into_values().collect(), per_class }
    }

    /// Returns the number of source positions of a balanced source, J·⌈M ÷ J⌉, from J = `classes` and M = `samples` alone.
    ///
    /// # Errors
    /// [`Error::TooManySamples`] if it exceeds 2⁶³, which samples in memory cannot reach.
    pub fn source_positions(classes: u64, samples: u64) -> Result<u64, Error> {
        let len = per_class(classes, samples).saturating_mul(classes);
        if len > MAX { Err(Error::TooManySamples { len }) } else { Ok(len) }
    }

    pub(super) fn len(&self) -> u64 {
        self.ends.len() as u64 * self.per_class
    }

    #[inline]
    pub(super) fn id(&self, epoch: u64, v: u64) -> u64 {
        let classes = self.ends.len() as u64;
        let members = self.members((v % classes) as usize);
        members[rotate(v / classes, epoch, self.per_class, members.len() as u64) as usize]
    }

    fn members(&self, class: usize) -> &[u64] {
        let start = if class == 0 { 0 } else { self.ends[class - 1] };
        &self.ids[start as usize..self.ends[class] as usize]
    }

    pub(super) fn canonical_json(&self) -> String {
        let numbers = (0..self.ends.len()).flat_map(|c| {
            let members = self.members(c);
            std::iter::once(members.len() as u64).chain(members.iter().copied())
        });
        let crc = crc32c_numbers(numbers);
        format!(
            r#"{{"source":"balanced","classes":{},"count":{},"crc32c":"{crc:08x}"}}"#,
            self.ends.len(),
            self.ids.len()
        )
    }

    pub(super) fn numbers(&self) -> u64 {
        (self.ids.len() + self.ends.len()) as u64
    }
}

fn per_class(classes: u64, samples: u64) -> u64 {
    samples.div_ceil(classes.max(1))
}
