//! How often classes occur, and which occur together.

use std::collections::{BTreeMap, HashMap};

/// Distinct labels, and distinct pairs of labels, that are counted, at most: a hostile dataset may have more. A pair takes about 50
/// bytes.
const MAX_LABELS: usize = 1 << 16;
const MAX_PAIRS: usize = 1 << 20;

/// Objects and images of each label, and images of each pair of labels.
#[derive(Debug)]
pub(super) struct ClassCounts {
    /// `None` once there are too many.
    labels: Option<BTreeMap<i64, Class>>,
    /// The smaller label first. `None` once there are too many.
    pairs: Option<HashMap<[i64; 2], u64>>,
}

/// How often a label occurs.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Class {
    pub(super) objects: u64,
    pub(super) images: u64,
}

impl Default for ClassCounts {
    fn default() -> Self {
        ClassCounts { labels: Some(BTreeMap::new()), pairs: Some(HashMap::new()) }
    }
}

impl ClassCounts {
    /// Adds the labels of the objects of one image.
    pub(super) fn add(&mut self, labels: &[i64]) {
        let mut present = BTreeMap::<i64, u64>::new();
        labels.iter().for_each(|label| *present.entry(*label).or_default() += 1);
        if let Some(counts) = &mut self.labels {
            for (label, objects) in &present {
                let class = counts.entry(*label).or_default();
                (class.objects, class.images) = (class.objects + objects, class.images + 1);
            }
            if counts.len() > MAX_LABELS {
                self.labels = None;
            }
        }
        let present: Vec<_> = present.into_keys().collect();
        for (at, a) in present.iter().enumerate() {
            let Some(pairs) = &mut self.pairs else { return };
            present[at + 1..].iter().take(MAX_PAIRS).for_each(|b| *pairs.entry([*a, *b]).or_default() += 1);
            if pairs.len() > MAX_PAIRS {
                self.pairs = None;
            }
        }
    }

    /// Gives each label another one: that at its place in `labels`, if there is one.
    pub(super) fn renumber(&mut self, labels: &[i64]) {
        let new = |label: i64| usize::try_from(label).ok().and_then(|at| labels.get(at)).copied().unwrap_or(label);
        self.labels = self.labels.take().map(|all| all.into_iter().map(|(label, class)| (new(label), class)).collect());
        let pair = |([a, b], images): ([i64; 2], u64)| ([new(a).min(new(b)), new(a).max(new(b))], images);
        self.pairs = self.pairs.take().map(|all| all.into_iter().map(pair).collect());
    }

    /// Returns how often each label occurs, in ascending order; `None` if there are more than are counted.
    pub(super) fn labels(&self) -> Option<&BTreeMap<i64, Class>> {
        self.labels.as_ref()
    }

    /// Returns the number of distinct pairs; `None` if there are more than are counted.
    pub(super) fn pairs(&self) -> Option<u64> {
        self.pairs.as_ref().map(|pairs| pairs.len() as u64)
    }

    /// Returns the pairs of labels that most images have, at most `most`, the most frequent first, with the number of images.
    pub(super) fn top_pairs(&self, most: usize) -> Vec<([i64; 2], u64)> {
        let mut pairs: Vec<_> = self.pairs.iter().flatten().map(|(pair, images)| (*pair, *images)).collect();
        pairs.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        pairs.truncate(most);
        pairs
    }
}

/// Labels for classes that have names only.
#[derive(Debug, Default)]
pub(super) struct ClassNames {
    labels: HashMap<String, i64>,
    /// In byte order, once they are sorted.
    names: Vec<String>,
}

impl ClassNames {
    /// Returns the label of a name: the number of names before it. Names beyond those that are counted share one.
    pub(super) fn label(&mut self, name: String) -> i64 {
        let next = self.labels.len().min(MAX_LABELS + 1) as i64;
        match self.labels.len() <= MAX_LABELS {
            true => *self.labels.entry(name).or_insert(next),
            false => self.labels.get(&name).copied().unwrap_or(next),
        }
    }

    /// Sorts the names. Returns the place of each label's name.
    pub(super) fn sort(&mut self) -> Vec<i64> {
        let mut sorted: Vec<_> = std::mem::take(&mut self.labels).into_iter().collect();
        sorted.sort_unstable();
        let mut places = vec![0; sorted.len()];
        sorted.iter().enumerate().for_each(|(place, (_, label))| places[*label as usize] = place as i64);
        self.names = sorted.into_iter().map(|(name, _)| name).collect();
        places
    }

    /// Returns the name of a label; `None` if classes have labels.
    pub(super) fn name(&self, label: i64) -> Option<&str> {
        self.names.get(usize::try_from(label).ok()?).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_labels_are_not_counted_in_unbounded_memory() {
        let mut counts = ClassCounts::default();
        counts.add(&(0..70_000).collect::<Vec<_>>());
        assert!(counts.labels().is_none() && counts.pairs().is_none());
        counts.add(&[1, 2]);
        assert!(counts.top_pairs(3).is_empty());
    }
}
