//! The index file of a shard.

use super::crc::crc32c;

pub(crate) const HEADER: usize = 64;
pub(crate) const ENTRY: usize = 72;

/// A column as its parts. `None` is an absent part.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: u8,
    pub(crate) element: u8,
    pub(crate) validity: Option<Vec<u8>>,
    pub(crate) offsets: Option<Vec<u8>>,
    pub(crate) values: Vec<u8>,
}

/// Element types.
pub(crate) const BYTES: u8 = 0;
pub(crate) const U32: u8 = 1;
pub(crate) const U64: u8 = 2;
pub(crate) const I64: u8 = 3;
pub(crate) const F32: u8 = 4;

impl Column {
    /// A column of numbers without nulls, given as bytes.
    pub(crate) fn fixed(name: &str, element: u8, values: Vec<u8>) -> Self {
        Column { name: name.as_bytes().to_vec(), kind: 0, element, validity: None, offsets: None, values }
    }

    /// A column of numbers or nulls, given as bytes.
    pub(crate) fn nullable<const N: usize>(name: &str, element: u8, rows: &[Option<[u8; N]>]) -> Self {
        let values = rows.iter().flat_map(|row| row.unwrap_or([0; N])).collect();
        Column { validity: validity(rows), ..Column::fixed(name, element, values) }
    }

    /// A variable column.
    pub(crate) fn variable<T: AsRef<[u8]>>(name: &str, rows: &[Option<T>]) -> Self {
        let bytes: Vec<&[u8]> = rows.iter().map(|row| row.as_ref().map_or(&[][..], AsRef::as_ref)).collect();
        let mut end = 0i64;
        let ends = bytes.iter().flat_map(|row| {
            end += row.len() as i64;
            end.to_le_bytes()
        });
        let offsets = Some(0i64.to_le_bytes().into_iter().chain(ends).collect());
        Column { kind: 1, offsets, validity: validity(rows), ..Column::fixed(name, BYTES, bytes.concat()) }
    }

    fn parts(&self) -> [Option<&Vec<u8>>; 3] {
        [self.validity.as_ref(), self.offsets.as_ref(), Some(&self.values)]
    }
}

/// Returns the validity bitmap, if a row is null.
fn validity<T>(rows: &[Option<T>]) -> Option<Vec<u8>> {
    let mut bits = vec![0u8; rows.len().div_ceil(8)];
    rows.iter().enumerate().filter(|(_, row)| row.is_some()).for_each(|(i, _)| bits[i / 8] |= 1 << (i % 8));
    rows.iter().any(Option::is_none).then_some(bits)
}

/// What the header says about the shard and the version.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) minor: u16,
    /// 1 in a companion.
    pub(crate) required_flags: u32,
    pub(crate) optional_flags: u32,
    pub(crate) records: u64,
    pub(crate) shard_bytes: u64,
    pub(crate) shard_crc: u32,
}

/// Returns the index file.
pub(crate) fn file(header: &Header, columns: &[Column]) -> Vec<u8> {
    let names: Vec<u8> = columns.iter().flat_map(|column| column.name.clone()).collect();
    let directory_bytes = columns.len() * ENTRY + names.len();
    let (mut directory, mut body) = (vec![], vec![]);
    let start = (HEADER + directory_bytes).next_multiple_of(64);
    for column in columns {
        let (mut places, mut crcs) = (vec![], vec![]);
        for part in column.parts() {
            let Some(part) = part else {
                places.extend([0; 16]);
                crcs.extend([0; 4]);
                continue;
            };
            places.extend(((start + body.len()) as u64).to_le_bytes());
            places.extend((part.len() as u64).to_le_bytes());
            crcs.extend(crc32c(part).to_le_bytes());
            body.extend_from_slice(part);
            body.resize(body.len().next_multiple_of(64), 0);
        }
        directory.extend([column.kind, column.element]);
        directory.extend((column.name.len() as u16).to_le_bytes());
        directory.extend([0; 4]);
        directory.extend(places);
        directory.extend(crcs);
        directory.extend([0; 4]);
    }
    directory.extend(names);
    let mut file = b"\x89STI\r\n\x1a\n\x01\x00".to_vec();
    file.extend(header.minor.to_le_bytes());
    file.extend(header.required_flags.to_le_bytes());
    file.extend(header.optional_flags.to_le_bytes());
    file.extend((columns.len() as u32).to_le_bytes());
    file.extend(header.records.to_le_bytes());
    file.extend(header.shard_bytes.to_le_bytes());
    file.extend(header.shard_crc.to_le_bytes());
    file.extend((directory.len() as u32).to_le_bytes());
    file.extend(((start + body.len()) as u64).to_le_bytes());
    file.extend(crc32c(&directory).to_le_bytes());
    file.extend(crc32c(&file).to_le_bytes());
    file.extend(directory);
    file.resize(start, 0);
    file.extend(body);
    file
}

/// Changes an index, then corrects the CRCs of its directory and header.
pub(crate) fn forge(mut file: Vec<u8>, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    change(&mut file);
    let directory_bytes = u32::from_le_bytes(file[44..48].try_into().expect("four bytes")) as usize;
    if let Some(directory) = file.get(HEADER..HEADER + directory_bytes) {
        let crc = crc32c(directory);
        file[56..60].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = crc32c(&file[..60]);
    file[60..64].copy_from_slice(&crc.to_le_bytes());
    file
}
