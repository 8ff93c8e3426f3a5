//! The bytes of an image's entry points, laid out as [`crate::entries`] documents.

/// The largest number of MCU rows in a group: more would take too much memory, since at least two groups are decoded at once.
pub(crate) const MAX_STEP: u32 = 8;
/// Bytes before the entries.
pub(super) const HEAD: usize = 2;

/// Bytes of an entry for a scan of `components` components.
pub(super) fn entry_size(components: usize) -> usize {
    4 + 2 * components
}

/// Appends the bytes before the entries.
pub(super) fn write_head(step: u32, components: usize, payload: &mut Vec<u8>) {
    payload.extend([step as u8, components as u8]);
}

/// Appends an entry. `predictors` are those of the scan's components.
pub(super) fn write_entry(bit: u32, predictors: &[i16], payload: &mut Vec<u8>) {
    payload.extend(bit.to_le_bytes());
    payload.extend(predictors.iter().flat_map(|p| p.to_le_bytes()));
}

/// One entry.
pub(super) struct Entry {
    /// The group's first bit, counted from the start of the image as stored.
    pub bit: usize,
    pub predictors: [i16; 3],
}

/// Entries whose number fits an image. Entry 0 belongs to group 1.
pub(super) struct Payload<'a> {
    pub step: u32,
    /// Number of groups: one more than entries.
    pub groups: usize,
    pub(super) entries: &'a [u8],
    /// Bytes of an entry.
    pub(super) size: usize,
}

impl<'a> Payload<'a> {
    fn entry_bytes(&self, group: usize) -> &'a [u8] {
        &self.entries[(group - 1) * self.size..group * self.size]
    }

    /// First bit of group `group`, which is at least 1.
    pub(super) fn bit(&self, group: usize) -> usize {
        self.entry_bytes(group).first_chunk().map_or(0, |b| u32::from_le_bytes(*b) as usize)
    }

    /// The entry of group `group`, which is at least 1.
    pub(super) fn entry(&self, group: usize) -> Entry {
        let mut predictors = [0; 3];
        for (p, b) in predictors.iter_mut().zip(self.entry_bytes(group)[4..].as_chunks::<2>().0) {
            *p = i16::from_le_bytes(*b);
        }
        Entry { bit: self.bit(group), predictors }
    }
}
