//! Builds TIFF files with any directories: images with metadata, and EXIF metadata themselves (CIPA DC-008).

/// A value of an entry.
pub(super) enum Value {
    Shorts(Vec<u16>),
    Longs(Vec<u32>),
    Ascii(&'static [u8]),
    /// Bytes of type UNDEFINED.
    Bytes(Vec<u8>),
    Rationals(Vec<(u32, u32)>),
    /// Strips or tiles: the value is their offsets.
    Chunks(Vec<Vec<u8>>),
    /// The offset of a directory.
    Directory(Vec<(u16, Value)>),
}

/// Byte order and kind of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) big_endian: bool,
    pub(super) big: bool,
}

impl Kind {
    pub(super) const ALL: [Kind; 4] = [
        Kind { big_endian: false, big: false },
        Kind { big_endian: true, big: false },
        Kind { big_endian: false, big: true },
        Kind { big_endian: true, big: true },
    ];

    fn number(self, number: u64, width: usize) -> Vec<u8> {
        let bytes = number.to_be_bytes()[8 - width..].to_vec();
        if self.big_endian { bytes } else { bytes.into_iter().rev().collect() }
    }

    fn word(self) -> usize {
        if self.big { 8 } else { 4 }
    }

    /// Returns a file with these directories, one after the other.
    pub(super) fn file(self, chain: Vec<Vec<(u16, Value)>>) -> Vec<u8> {
        let mut out = if self.big_endian { b"MM".to_vec() } else { b"II".to_vec() };
        out.extend(self.number(if self.big { 43 } else { 42 }, 2));
        if self.big {
            out.extend([self.number(8, 2), self.number(0, 2)].concat());
        }
        let mut pointer = out.len();
        out.extend(self.number(0, self.word()));
        for directory in chain {
            let (start, next) = self.directory(&mut out, directory);
            out[pointer..pointer + self.word()].copy_from_slice(&self.number(start, self.word()));
            pointer = next;
        }
        out
    }

    /// Appends a directory behind its values. Returns its offset, and that of the offset of the next one.
    fn directory(self, out: &mut Vec<u8>, entries: Vec<(u16, Value)>) -> (u64, usize) {
        let mut coded = vec![];
        let count = entries.len() as u64;
        for (tag, value) in entries {
            let (kind, element, bytes) = self.value(out, value);
            coded.extend([self.number(tag.into(), 2), self.number(kind, 2)].concat());
            coded.extend(self.number((bytes.len() / element) as u64, self.word()));
            if bytes.len() <= self.word() {
                coded.extend_from_slice(&bytes);
                coded.resize(coded.len() + self.word() - bytes.len(), 0);
            } else {
                coded.extend(self.number(out.len() as u64, self.word()));
                out.extend(bytes);
            }
        }
        let start = out.len() as u64;
        out.extend(self.number(count, if self.big { 8 } else { 2 }));
        out.extend(coded);
        out.extend(self.number(0, self.word()));
        (start, out.len() - self.word())
    }

    fn value(self, out: &mut Vec<u8>, value: Value) -> (u64, usize, Vec<u8>) {
        let longs =
            |numbers: Vec<u64>| numbers.into_iter().flat_map(|number| self.number(number, 4)).collect::<Vec<u8>>();
        match value {
            Value::Shorts(list) => (3, 2, list.into_iter().flat_map(|number| self.number(number.into(), 2)).collect()),
            Value::Longs(list) => (4, 4, longs(list.into_iter().map(u64::from).collect())),
            Value::Ascii(text) => (2, 1, text.to_vec()),
            Value::Bytes(bytes) => (7, 1, bytes),
            Value::Rationals(list) => (5, 8, longs(list.into_iter().flat_map(|(a, b)| [a.into(), b.into()]).collect())),
            Value::Chunks(chunks) => {
                let mut offsets = vec![];
                for chunk in chunks {
                    offsets.push(out.len() as u64);
                    out.extend(chunk);
                }
                (4, 4, longs(offsets))
            }
            Value::Directory(entries) => {
                let (start, _) = self.directory(out, entries);
                (4, 4, longs(vec![start]))
            }
        }
    }
}
