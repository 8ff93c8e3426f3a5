//! Directories of EXIF metadata, which are a TIFF file (CIPA DC-008, 4.5.2), or of a TIFF image: the Orientation tag, and whether
//! there are a position and a thumbnail.

/// What an Orientation tag says: 1 to 8; 1 for any other value.
///
/// Searches the first directory of `tiff`, a TIFF or BigTIFF file, for tag 0x0112, as Pillow does: the value may have any numeric
/// type, the first usable entry counts, and a damaged directory counts as far as it can be read. Returns `None` without such a
/// tag.
pub(super) fn orientation(tiff: &[u8]) -> Option<u8> {
    let tiff = Tiff::new(tiff)?;
    let at = tiff.number(if tiff.big { 8 } else { 4 }, tiff.word())?;
    let count = tiff.number(at, if tiff.big { 8 } else { 2 })?;
    let mut at = at.checked_add(if tiff.big { 8 } else { 2 })?;
    let mut outside = 0u64;
    for _ in 0..count {
        // An entry: u16 tag, u16 type, count, and the value or its offset.
        let word = tiff.word();
        let end = at.checked_add(4 + 2 * word)?;
        tiff.bytes.get(..usize::try_from(end).ok()?)?;
        let (tag, kind, count) = (tiff.number(at, 2)?, tiff.number(at + 2, 2)?, tiff.number(at + 4, word)?);
        let (field, len) = (at + 4 + word, count.saturating_mul(size(kind)));
        at = end;
        let place = if len <= word {
            field
        } else {
            let offset = tiff.number(field, word)?;
            // Values of more bytes than the file has are no values.
            outside = outside.saturating_add(len);
            if outside > tiff.bytes.len() as u64 {
                continue;
            }
            // Pillow stops reading the directory here.
            tiff.bytes.get(usize::try_from(offset).ok()?..)?.get(..usize::try_from(len).ok()?)?;
            offset
        };
        if tag == 0x0112 && len > 0 {
            return Some(tiff.value(place, kind).and_then(exact).unwrap_or(1));
        }
    }
    None
}

/// Returns whether the GPS directory has a latitude or a longitude, of the camera or of the destination (CIPA DC-008, 4.6.6).
pub(super) fn has_position(tiff: &[u8]) -> bool {
    let position = |tiff: Tiff<'_>| {
        let gps = tiff.entries(tiff.first()?).find(|entry| entry.tag == 0x8825)?;
        let gps = tiff.number(gps.field, if matches!(gps.kind, 16 | 18) { 8 } else { 4 })?;
        Some(tiff.entries(gps).any(|entry| matches!(entry.tag, 0x02 | 0x04 | 0x14 | 0x16)))
    };
    Tiff::new(tiff).and_then(position).unwrap_or(false)
}

/// Returns whether the second directory has an image: a JPEG or strips (CIPA DC-008, 4.5.5).
pub(super) fn has_thumbnail(tiff: &[u8]) -> bool {
    let thumbnail = |tiff: Tiff<'_>| {
        let first = tiff.first()?;
        let count = tiff.number(first, tiff.count_bytes())?;
        let end = first.checked_add(tiff.count_bytes())?.checked_add(count.checked_mul(4 + 2 * tiff.word())?)?;
        let second = tiff.number(end, tiff.word()).filter(|second| *second != 0)?;
        Some(tiff.entries(second).any(|entry| matches!(entry.tag, 0x0111 | 0x0201)))
    };
    Tiff::new(tiff).and_then(thumbnail).unwrap_or(false)
}

/// An entry of a directory, as far as it is needed to find other directories.
struct Entry {
    tag: u64,
    kind: u64,
    /// Offset of the value, or of its offset.
    field: u64,
}

/// A TIFF file.
struct Tiff<'a> {
    bytes: &'a [u8],
    little: bool,
    /// BigTIFF: counts and offsets of 8 bytes instead of 4.
    big: bool,
}

impl<'a> Tiff<'a> {
    fn new(bytes: &'a [u8]) -> Option<Self> {
        let (little, big) = match bytes.get(..4)? {
            // The version in the wrong byte order: Pillow reads such files too.
            b"II*\0" | b"II\0*" => (true, false),
            b"MM\0*" | b"MM*\0" => (false, false),
            b"II+\0" => (true, true),
            b"MM\0+" => (false, true),
            _ => return None,
        };
        Some(Tiff { bytes, little, big })
    }

    /// Returns the offset of the first directory.
    fn first(&self) -> Option<u64> {
        self.number(self.word().max(4), self.word())
    }

    /// Returns the length of the number of entries of a directory.
    fn count_bytes(&self) -> u64 {
        if self.big { 8 } else { 2 }
    }

    /// Iterates over the entries of the directory at `at`, as far as they can be read.
    fn entries(&self, at: u64) -> impl Iterator<Item = Entry> {
        let count = self.number(at, self.count_bytes()).unwrap_or(0);
        let mut at = at.saturating_add(self.count_bytes());
        let entry = move |_| {
            let (tag, kind) = (self.number(at, 2)?, self.number(at + 2, 2)?);
            let entry = Entry { tag, kind, field: at.checked_add(4 + self.word())? };
            at = entry.field.checked_add(self.word())?;
            Some(entry)
        };
        (0..count).map_while(entry)
    }

    /// Returns the length of a count or an offset.
    fn word(&self) -> u64 {
        if self.big { 8 } else { 4 }
    }

    /// Reads an unsigned integer of `len` bytes.
    fn number(&self, at: u64, len: u64) -> Option<u64> {
        let field = self.bytes.get(usize::try_from(at).ok()?..)?.get(..len as usize)?;
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(if self.little { field.iter().rev().fold(0, add) } else { field.iter().fold(0, add) })
    }

    /// Reads a value of a numeric type; `None` for bytes, text and undefined bytes.
    fn value(&self, at: u64, kind: u64) -> Option<f64> {
        let number = self.number(at, size(kind))?;
        Some(match kind {
            3 | 4 | 13 | 16 => number as f64,
            // A rational number: numerator and denominator of 4 bytes.
            5 => self.number(at, 4)? as f64 / self.number(at + 4, 4)? as f64,
            10 => f64::from(self.number(at, 4)? as i32) / f64::from(self.number(at + 4, 4)? as i32),
            6 => f64::from(number as i8),
            8 => f64::from(number as i16),
            9 => f64::from(number as i32),
            11 => f64::from(f32::from_bits(number as u32)),
            12 => f64::from_bits(number),
            _ => return None,
        })
    }
}

/// Returns the length of a value of a type; 0 for unknown types, whose entries do not count.
fn size(kind: u64) -> u64 {
    match kind {
        1 | 2 | 6 | 7 => 1,
        3 | 8 => 2,
        4 | 9 | 11 | 13 => 4,
        5 | 10 | 12 | 16 => 8,
        _ => 0,
    }
}

/// Returns the orientation that is exactly `value`.
fn exact(value: f64) -> Option<u8> {
    (1..=8).find(|orientation| f64::from(*orientation) == value)
}
