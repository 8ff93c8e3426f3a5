//! The columns of a virtual shard: where the bytes of its records lie.

use super::rows::ByteRows;
use crate::virtual_source::{FrameRange, SourceName};
use shardtool_format::index::{Builder, SourceFile, SourceRange, VIRTUAL_BYTES, VIRTUAL_FILES, VIRTUAL_RANGES};
use std::collections::HashMap;
use std::sync::Arc;

/// The rows so far.
#[derive(Default)]
pub(super) struct VirtualRows {
    files: ByteRows,
    ranges: ByteRows,
    bytes: ByteRows,
    /// The files that have an entry, and its offset in the values of their column.
    known: HashMap<Arc<str>, u64>,
    /// The file of the range before, and its entry: mostly the same one, in a tar.
    last: Option<(Arc<SourceName>, u64)>,
    /// Bytes of all entries.
    end: u64,
}

impl VirtualRows {
    /// Adds the frame of a record.
    pub(super) fn push(&mut self, frame: &[u8], ranges: &[FrameRange]) {
        let (mut files, mut at) = (vec![], 0);
        let (mut row, mut bytes) = (vec![], vec![]);
        for FrameRange { at: start, length, crc, file, offset } in ranges {
            let file = self.entry(file, &mut files);
            let before = &frame[at..*start];
            bytes.extend_from_slice(before);
            let range = SourceRange { file, offset: *offset, length: *length, crc: *crc, before: before.len() as u32 };
            range.encode(&mut row);
            at = start + *length as usize;
        }
        bytes.extend_from_slice(&frame[at..]);
        self.files.push(&files);
        self.ranges.push(&row);
        self.bytes.push(&bytes);
    }

    /// Returns the offset of the entry of a file. Appends it to `row` if it is new.
    fn entry(&mut self, file: &Arc<SourceName>, row: &mut Vec<u8>) -> u64 {
        if let Some((_, entry)) = self.last.as_ref().filter(|(last, _)| Arc::ptr_eq(last, file)) {
            return *entry;
        }
        let entry = *self.known.entry(file.name.as_str().into()).or_insert_with(|| {
            let from = row.len();
            SourceFile { length: file.length, name: &file.name }.encode(row);
            let entry = self.end;
            self.end += (row.len() - from) as u64;
            entry
        });
        self.last = Some((file.clone(), entry));
        entry
    }

    /// Writes the columns.
    pub(super) fn finish(self, index: &mut Builder) {
        index.variable(VIRTUAL_FILES, { self.files }.iter());
        index.variable(VIRTUAL_RANGES, { self.ranges }.iter());
        index.variable(VIRTUAL_BYTES, { self.bytes }.iter());
    }
}
