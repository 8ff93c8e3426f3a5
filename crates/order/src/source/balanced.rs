//! Every class equally often, whatever its size.

use std::collections::BTreeMap;

use super::{crc32c_words, rotate};

/// Classes take turns; inside a class its samples take turns, and an epoch goes on where the one before stopped. Over
/// many epochs every sample of a class is shown equally often. Holds 8 bytes an id and 8 a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balanced {
    /// Ids, grouped by class, in the order given inside each.
    ids: Box<[u64]>,
    /// Where each class ends in `ids`; every class has at least one id.
    ends: Box<[u64]>,
    /// Places a class has in an epoch: ⌈N ÷ C⌉.
    turns: u64,
}

impl Balanced {
    /// Balances samples given as (id, label). Classes stand in ascending order of their labels, samples inside a class
    /// in the order given. The samples are gone through twice, so nothing beyond the result is held.
    pub fn new(samples: impl Iterator<Item = (u64, i64)> + Clone) -> Self {
        let mut classes = BTreeMap::<i64, u64>::new();
        let mut n = 0;
        for (_, label) in samples.clone() {
            *classes.entry(label).or_default() += 1;
            n += 1;
        }
        // From each class's count to its next free slot; when all are placed, that slot is its end.
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
        let turns = (n as u64).div_ceil(classes.len().max(1) as u64);
        Balanced { ids: ids.into(), ends: classes.into_values().collect(), turns }
    }

    /// N′ = C·⌈N ÷ C⌉.
    pub(super) fn len(&self) -> u64 {
        self.ends.len() as u64 * self.turns
    }

    #[inline]
    pub(super) fn id(&self, epoch: u64, place: u64) -> u64 {
        let classes = self.ends.len() as u64;
        let members = self.members((place % classes) as usize);
        members[rotate(place / classes, epoch, self.turns, members.len() as u64) as usize]
    }

    fn members(&self, class: usize) -> &[u64] {
        let start = if class == 0 { 0 } else { self.ends[class - 1] };
        &self.ids[start as usize..self.ends[class] as usize]
    }

    pub(super) fn canonical_json(&self) -> String {
        let words = (0..self.ends.len()).flat_map(|c| {
            let members = self.members(c);
            std::iter::once(members.len() as u64).chain(members.iter().copied())
        });
        let crc = crc32c_words(words);
        format!(
            r#"{{"source":"balanced","classes":{},"count":{},"crc32c":"{crc:08x}"}}"#,
            self.ends.len(),
            self.ids.len()
        )
    }

    pub(super) fn words(&self) -> u64 {
        (self.ids.len() + self.ends.len()) as u64
    }
}
