//! Mapped files whose unreadable pages do not end the process.
//!
//! An access to a page that the system cannot read (the file was truncated, the device has a bad sector) raises SIGBUS. A
//! handler for the whole process ([`sigbus`]) looks the address up in a table of our mappings ([`table`]), replaces the
//! page by zeros and notes its range as lost. Code that used mapped bytes asks [`Mapping::is_lost`] afterwards, and reads
//! a lost range with `pread`, which returns the system's error.
//!
//! The alternative without a handler is to make the system read each range before it is used (`MADV_POPULATE_READ`,
//! `process_vm_readv`): a system call per record, and still a race with a truncation after it.

mod sigbus;
mod table;

use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::Range;
use table::Entry;
pub(crate) use table::any_lost;

/// A mapping of a whole file, read-only and shared.
#[derive(Debug)]
pub(crate) struct Mapping {
    map: Mmap,
    entry: &'static Entry,
}

impl Mapping {
    /// Maps a file, which must not be rewritten in place while it is mapped.
    ///
    /// # Safety
    /// The file's bytes must not change while they are borrowed. It may be truncated: bytes past the new end read as
    /// zeros.
    pub(crate) unsafe fn new(file: &File) -> io::Result<Self> {
        sigbus::install()?;
        // SAFETY: the caller's contract is that of `Mmap::map`, apart from truncation, which the handler covers.
        let map = unsafe { Mmap::map(file) }?;
        let start = map.as_ptr() as usize;
        let entry = table::insert(start..start + map.len());
        Ok(Mapping { map, entry })
    }

    pub(crate) fn map(&self) -> &Mmap {
        &self.map
    }

    /// Returns whether the range holds pages that could not be read, and were replaced by zeros. Call it after the last
    /// use of the bytes.
    #[inline]
    pub(crate) fn is_lost(&self, range: &Range<u64>) -> bool {
        any_lost() && {
            let lost = self.entry.lost();
            let start = self.map.as_ptr() as u64;
            !lost.is_empty() && start + range.start < lost.end as u64 && (lost.start as u64) < start + range.end
        }
    }

    /// Gives up the protection until [`Mapping::unlend`], for bytes that are lent to code which cannot ask
    /// [`Mapping::is_lost`]: an unreadable page then prints a message and ends the process, as it would without the handler.
    pub(crate) fn lend(&self) {
        self.entry.lend();
    }

    pub(crate) fn unlend(&self) {
        self.entry.unlend();
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // Before the pages are unmapped, so that the handler never replaces pages of another mapping at this address.
        table::remove(self.entry);
    }
}
