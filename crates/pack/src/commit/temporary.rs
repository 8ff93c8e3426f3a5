//! Files under temporary names.

use super::Directory;
use crate::Error;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Bytes of a file's name that its temporary name contains at most, so that it is at most 255 bytes long.
const NAME_BYTES: usize = 200;
/// Hexadecimal digits of [`unique`].
const DIGITS: usize = 16;

/// A file under the temporary name `.NAME.DIGITS.tmp`, where DIGITS are 16 random hexadecimal ones; removed when dropped
/// before it is published.
pub(crate) struct Temporary {
    /// The folder of the file.
    directory: Directory,
    temporary: OsString,
    name: OsString,
    file: BufWriter<File>,
    published: bool,
}

impl Temporary {
    /// Creates a temporary file for the file `relative` to a folder. The file's folder must exist.
    ///
    /// # Errors
    /// [`DestinationError::Link`](crate::DestinationError) if that folder is a symbolic link, [`Error::Io`].
    pub(crate) fn new(directory: &Directory, relative: &Path) -> Result<Self, Error> {
        let directory = directory.folder(relative.parent().unwrap_or(Path::new("")))?;
        let name = relative.file_name().expect("the path of a file").to_owned();
        let temporary = temporary_name(&name);
        let path = directory.path().join(&temporary);
        let file = directory.create_file(Path::new(&temporary)).map_err(Error::io("create", &path))?;
        // Large enough to collect small records; larger records bypass the buffer.
        let file = BufWriter::with_capacity(64 << 10, file);
        Ok(Temporary { directory, temporary, name, file, published: false })
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|e| Error::io("write", &self.path())(e))
    }

    /// Passes the bytes written so far to the system. Returns the path under which they can be read.
    pub(crate) fn flush(&mut self) -> Result<PathBuf, Error> {
        self.file.flush().map_err(|e| Error::io("write", &self.path())(e))?;
        Ok(self.path())
    }

    fn make_durable(&mut self) -> Result<(), Error> {
        let durable = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        durable.map_err(|e| Error::io("write", &self.path())(e))
    }

    /// Makes the bytes durable and gives the file its name, unless a file has it. Returns whether it has got it.
    fn publish_new(mut self) -> Result<bool, Error> {
        self.make_durable()?;
        let linked = self.directory.link_new(Path::new(&self.temporary), Path::new(&self.name))?;
        self.directory.remove(&self.temporary)?;
        self.published = true;
        Ok(linked)
    }

    /// Makes the bytes durable and renames the file. The new name is durable after [`Directory::sync`].
    pub(crate) fn publish(mut self) -> Result<(), Error> {
        self.make_durable()?;
        self.directory.rename(Path::new(&self.temporary), &self.directory, Path::new(&self.name))?;
        self.published = true;
        Ok(())
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join(&self.temporary)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.published {
            // If this fails, a later run removes the file.
            let _ = self.directory.remove(&self.temporary);
        }
    }
}

/// Writes a file atomically.
pub(crate) fn publish(directory: &Directory, relative: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut file = Temporary::new(directory, relative)?;
    file.write(bytes)?;
    file.publish()
}

/// Writes a file atomically, unless a file of this name exists. Returns whether it was written.
pub(crate) fn publish_new(directory: &Directory, relative: &Path, bytes: &[u8]) -> Result<bool, Error> {
    let mut file = Temporary::new(directory, relative)?;
    file.write(bytes)?;
    file.publish_new()
}

/// Returns 16 random hexadecimal digits.
pub(crate) fn unique() -> String {
    // The keys of a `RandomState` are random, and different for each.
    format!("{:0DIGITS$x}", RandomState::new().hash_one(std::process::id()))
}

fn temporary_name(name: &OsStr) -> OsString {
    let name = name.to_string_lossy();
    let mut bytes = NAME_BYTES.min(name.len());
    while !name.is_char_boundary(bytes) {
        bytes -= 1;
    }
    OsString::from(format!(".{}.{}.tmp", &name[..bytes], unique()))
}

/// Returns the name of the file that has this temporary name, up to its first 200 bytes; `None` if the
/// name is not a temporary one.
pub(crate) fn final_name(temporary: &str) -> Option<&str> {
    let (name, digits) = temporary.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.')?;
    is_unique(digits).then_some(name)
}

/// Returns whether this is a text that [`unique`] may have returned.
pub(super) fn is_unique(digits: &str) -> bool {
    digits.len() == DIGITS && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

/// Removes the temporary files that killed processes left in a folder, for files whose names are `ours`: those that only
/// the holder of a lock writes, which the caller holds.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn remove_abandoned(
    directory: &Directory,
    folder: impl AsRef<Path>,
    ours: impl Fn(&str) -> bool,
) -> Result<(), Error> {
    let folder = folder.as_ref();
    for entry in directory.entries_of(folder)? {
        if !entry.is_folder && entry.name.to_str().and_then(final_name).is_some_and(&ours) {
            directory.remove(folder.join(&entry.name))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpublished_file_is_removed() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Directory::create(temp.path()).unwrap();
        let mut file = Temporary::new(&folder, Path::new("a")).unwrap();
        file.write(b"half").unwrap();
        drop(file);
        assert_eq!(folder.entries().unwrap().len(), 0);
        publish(&folder, Path::new("a"), b"whole").unwrap();
        assert_eq!(folder.read("a").unwrap().unwrap(), b"whole");
        assert_eq!(folder.entries().unwrap().len(), 1);
    }

    #[test]
    fn only_abandoned_files_of_these_names_are_removed() {
        let temp = tempfile::tempdir().unwrap();
        let folder = Directory::create(temp.path()).unwrap();
        for name in [".a.0123456789abcdef.tmp", ".b.0123456789abcdef.tmp", ".a.tmp", ".a.0123456789ABCDEF.tmp", "a"] {
            std::fs::write(temp.path().join(name), "").unwrap();
        }
        std::fs::create_dir(temp.path().join(".a.00000000000000ff.tmp")).unwrap();
        remove_abandoned(&folder, "", |name| name == "a").unwrap();
        let left: Vec<_> = folder.entries().unwrap().into_iter().map(|entry| entry.name).collect();
        let expected = [".a.00000000000000ff.tmp", ".a.0123456789ABCDEF.tmp", ".a.tmp", ".b.0123456789abcdef.tmp", "a"];
        assert_eq!(left, expected);
    }

    #[test]
    fn temporary_names_are_short_and_lead_back_to_the_name() {
        let long = "é".repeat(127);
        for name in ["train-00000.tfrecord", &long] {
            let temporary = temporary_name(OsStr::new(name));
            assert!(temporary.len() <= 255);
            assert!(name.starts_with(final_name(temporary.to_str().unwrap()).unwrap()));
        }
    }
}
