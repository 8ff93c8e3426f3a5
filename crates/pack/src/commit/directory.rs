//! A folder, and operations on the files and folders in it. Paths are relative to the folder; none of their components
//! except the last may be a symbolic link.

use crate::error::DestinationError;
use crate::{Error, system};
use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An open folder. Clones share the handle.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    handle: Arc<OwnedFd>,
    /// For messages, and for reading files by their paths.
    path: PathBuf,
}

/// What to do about a folder that does not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fail,
    Create,
    /// Creates it, and makes its name durable.
    CreateDurable,
}

/// An entry of a folder.
pub(crate) struct Entry {
    pub(crate) name: OsString,
    /// Whether it is a folder; a link to a folder is not.
    pub(crate) is_folder: bool,
}

impl Directory {
    /// Opens a folder, which may be a link. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Error> {
        if shardtool_store::is_url(path) {
            let problem = "this command writes to folders only; write to a disk, then `shardtool copy` to the store";
            return Err(Error::io("write", path)(io::Error::new(io::ErrorKind::Unsupported, problem)));
        }
        let named = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match fs::open(named, FOLDER, Mode::empty()) {
            Ok(handle) => Ok(Some(Directory { handle: Arc::new(handle), path: path.to_owned() })),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(Error::io("open the folder", named)(e.into())),
        }
    }

    /// Opens a folder, which may be a link. If it does not exist, creates it and its parents, and makes their names
    /// durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        if let Some(found) = Self::open(path)? {
            return Ok(found);
        }
        let parent = Self::create(path.parent().unwrap_or(Path::new("")))?;
        let created = match std::fs::create_dir(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => false,
            created => created.map(|()| true).map_err(Error::io("create the folder", path))?,
        };
        let opened = parent.sync().and_then(|()| Self::open(path));
        if created && opened.is_err() {
            // The error is reported; an empty folder that stays does no harm.
            let _ = std::fs::remove_dir(path);
        }
        opened?.ok_or_else(|| Error::io("create the folder", path)(Errno::NOENT.into()))
    }

    /// Returns another handle of the folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn duplicate(&self) -> Result<OwnedFd, Error> {
        self.handle.try_clone().map_err(Error::io("open the folder", &self.path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a folder inside.
    ///
    /// # Errors
    /// [`DestinationError::Link`] if a component is a symbolic link, [`Error::Io`].
    pub(crate) fn folder(&self, relative: impl AsRef<Path>) -> Result<Self, Error> {
        let relative = relative.as_ref();
        self.descend(relative, Missing::Fail).map_err(self.error("open the folder", relative))
    }

    /// Opens a folder inside, creating it and its parents if they do not exist. Their names are durable afterwards.
    ///
    /// # Errors
    /// As [`Self::folder`].
    pub(crate) fn create_folder(&self, relative: impl AsRef<Path>) -> Result<Self, Error> {
        let relative = relative.as_ref();
        self.descend(relative, Missing::CreateDurable).map_err(self.error("create the folder", relative))
    }

    /// Creates a file, which must not exist, and the folders above it. Neither is durable.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn create_file(&self, relative: &Path) -> io::Result<File> {
        let folder = match relative.parent() {
            Some(parent) => self.descend(parent, Missing::Create)?,
            None => self.clone(),
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(fs::openat(&folder.handle, last(relative)?, flags, Mode::from_raw_mode(0o666))?))
    }

    /// Opens a file for a lock, creating an empty one if it does not exist. Leaves the bytes of an existing one unchanged.
    ///
    /// # Errors
    /// [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn open_lock(&self, name: &str) -> Result<File, Error> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = fs::openat(&self.handle, name, flags, Mode::from_raw_mode(0o666));
        file.map(File::from).map_err(|e| self.error("create", Path::new(name))(e.into()))
    }

    /// Returns the bytes of a regular file, which may be a link; `None` if it does not exist.
    ///
    /// # Errors
    /// [`DestinationError::Link`] if a folder above it is a symbolic link; [`Error::Io`], also if it is a folder, a pipe or a device.
    pub(crate) fn read(&self, relative: impl AsRef<Path>) -> Result<Option<Vec<u8>>, Error> {
        let relative = relative.as_ref();
        let read = || {
            let (folder, name) = self.locate(relative)?;
            // Without NONBLOCK, opening a FIFO waits for a writer.
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let mut file = File::from(fs::openat(&folder.handle, name, flags, Mode::empty())?);
            if !file.metadata()?.is_file() {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
            }
            let mut bytes = vec![];
            file.read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        absent_as_none(read()).map_err(self.error("read", relative))
    }

    /// Returns whether a file, folder or link of this name exists.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn exists(&self, relative: impl AsRef<Path>) -> Result<bool, Error> {
        Ok(self.file_type(relative.as_ref())?.is_some())
    }

    /// Returns whether a folder of this name exists. A link to a folder does not count.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn has_folder(&self, relative: impl AsRef<Path>) -> Result<bool, Error> {
        Ok(self.file_type(relative.as_ref())? == Some(FileType::Directory))
    }

    /// Returns the length of a regular file; `None` if the name is a link, a pipe or a device, or does not exist.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn file_length(&self, relative: &Path) -> Result<Option<u64>, Error> {
        let stat = self.stat(relative)?.filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        Ok(stat.map(|stat| stat.st_size as u64))
    }

    fn file_type(&self, relative: &Path) -> Result<Option<FileType>, Error> {
        Ok(self.stat(relative)?.map(|stat| FileType::from_raw_mode(stat.st_mode)))
    }

    fn stat(&self, relative: &Path) -> Result<Option<fs::Stat>, Error> {
        let stat = || {
            let (folder, name) = self.locate(relative)?;
            Ok(fs::statat(&folder.handle, name, AtFlags::SYMLINK_NOFOLLOW)?)
        };
        absent_as_none(stat()).map_err(self.error("read", relative))
    }

    /// Returns the inode that a name refers to, or `None` if it does not exist.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn inode(&self, name: &str) -> Result<Option<u64>, Error> {
        let stat = fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from);
        Ok(absent_as_none(stat).map_err(self.error("read", Path::new(name)))?.map(|stat| stat.st_ino))
    }

    /// Returns the entries, in byte order of their names.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn entries(&self) -> Result<Vec<Entry>, Error> {
        let list = || {
            let mut found = vec![];
            for entry in Dir::read_from(&self.handle)? {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
                if name == "." || name == ".." {
                    continue;
                }
                let file_type = match entry.file_type() {
                    // Some file systems do not say.
                    FileType::Unknown => {
                        let stat = fs::statat(&self.handle, &name, AtFlags::SYMLINK_NOFOLLOW)?;
                        FileType::from_raw_mode(stat.st_mode)
                    }
                    known => known,
                };
                found.push(Entry { name, is_folder: file_type == FileType::Directory });
            }
            found.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(found)
        };
        list().map_err(Error::io("list", &self.path))
    }

    /// Returns the entries of a folder inside; none if it does not exist.
    ///
    /// # Errors
    /// As [`Self::folder`].
    pub(crate) fn entries_of(&self, relative: impl AsRef<Path>) -> Result<Vec<Entry>, Error> {
        let relative = relative.as_ref();
        match absent_as_none(self.descend(relative, Missing::Fail)).map_err(self.error("list", relative))? {
            Some(folder) => folder.entries(),
            None => Ok(vec![]),
        }
    }

    /// Renames a file or folder, replacing a file of the new name.
    ///
    /// # Errors
    /// [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn rename(&self, from: &Path, to: &Directory, name: &Path) -> Result<(), Error> {
        self.move_to(from, to, name).map_err(to.error("create", name))
    }

    /// As [`Self::rename`]. Returns whether there was a file to rename.
    ///
    /// # Errors
    /// As [`Self::rename`].
    pub(crate) fn rename_if_exists(&self, from: &Path, to: &Directory, name: &Path) -> Result<bool, Error> {
        Ok(absent_as_none(self.move_to(from, to, name)).map_err(to.error("create", name))?.is_some())
    }

    fn move_to(&self, from: &Path, to: &Directory, name: &Path) -> io::Result<()> {
        let (from, old) = self.locate(from)?;
        let (to, new) = to.locate(name)?;
        Ok(fs::renameat(&from.handle, old, &to.handle, new)?)
    }

    /// Creates a hard link to a file of this folder, unless the name exists. Returns whether it was created. On file systems
    /// without hard links, the file is renamed, and of two processes at once both may succeed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn link_new(&self, file: &Path, name: &Path) -> Result<bool, Error> {
        match fs::linkat(&self.handle, file, &self.handle, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS | Errno::MLINK) => {
                let absent = !self.exists(name)?;
                if absent {
                    self.rename(file, self, name)?;
                }
                Ok(absent)
            }
            Err(error) => Err(self.error("create", name)(error.into())),
        }
    }

    /// Creates a symbolic link.
    ///
    /// # Errors
    /// [`Error::Io`], also if the name exists.
    pub(crate) fn link(&self, target: &Path, name: &str) -> Result<(), Error> {
        fs::symlinkat(target, &self.handle, name).map_err(|e| self.error("create the link", Path::new(name))(e.into()))
    }

    /// Removes a file or link, if it exists.
    ///
    /// # Errors
    /// [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn remove(&self, relative: impl AsRef<Path>) -> Result<(), Error> {
        self.unlink(relative.as_ref(), AtFlags::empty())
    }

    /// Removes an empty folder, if it exists.
    ///
    /// # Errors
    /// [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn remove_folder(&self, relative: impl AsRef<Path>) -> Result<(), Error> {
        self.unlink(relative.as_ref(), AtFlags::REMOVEDIR)
    }

    fn unlink(&self, relative: &Path, flags: AtFlags) -> Result<(), Error> {
        let unlink = || {
            let (folder, name) = self.locate(relative)?;
            Ok(fs::unlinkat(&folder.handle, name, flags)?)
        };
        absent_as_none(unlink()).map(drop).map_err(self.error("remove", relative))
    }

    /// Removes a folder inside and everything in it, if it exists. Links in it are removed, not followed.
    ///
    /// # Errors
    /// [`DestinationError::Link`], [`Error::Io`].
    pub(crate) fn remove_tree(&self, relative: impl AsRef<Path>) -> Result<(), Error> {
        let relative = relative.as_ref();
        let Some(folder) =
            absent_as_none(self.descend(relative, Missing::Fail)).map_err(self.error("remove", relative))?
        else {
            return Ok(());
        };
        for entry in folder.entries()? {
            if entry.is_folder { folder.remove_tree(&entry.name)? } else { folder.remove(&entry.name)? }
        }
        self.remove_folder(relative)
    }

    /// Makes the names in the folder durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn sync(&self) -> Result<(), Error> {
        system::sync(&self.handle).map_err(Error::io("write", &self.path))
    }

    /// Makes the folder and everything in it durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn sync_tree(&self) -> Result<(), Error> {
        system::sync_tree(&self.handle).map_err(Error::io("write", &self.path))
    }

    /// Returns the folder of a path's last component, and that component.
    fn locate<'a>(&self, relative: &'a Path) -> io::Result<(Directory, &'a OsStr)> {
        let folder = match relative.parent() {
            Some(parent) => self.descend(parent, Missing::Fail)?,
            None => self.clone(),
        };
        Ok((folder, last(relative)?))
    }

    /// Opens a folder inside, component by component.
    fn descend(&self, relative: &Path, missing: Missing) -> io::Result<Directory> {
        let mut folder = self.clone();
        for component in relative.components() {
            let Component::Normal(name) = component else { return Err(outside()) };
            let open = || fs::openat(&folder.handle, name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
            let handle = match open() {
                Err(Errno::NOENT) if missing != Missing::Fail => {
                    match fs::mkdirat(&folder.handle, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) if missing == Missing::CreateDurable => system::sync(&folder.handle)?,
                        // If it exists, another thread or process was faster.
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(e) => return Err(e.into()),
                    }
                    open()?
                }
                opened => opened?,
            };
            folder = Directory { handle: Arc::new(handle), path: folder.path.join(name) };
        }
        Ok(folder)
    }

    /// Makes an error about something inside, for `map_err`.
    fn error<'a>(&'a self, action: &'static str, relative: &'a Path) -> impl FnOnce(io::Error) -> Error + 'a {
        move |error| {
            let refused = matches!(Errno::from_io_error(&error), Some(Errno::LOOP | Errno::NOTDIR));
            let mut path = self.path.clone();
            for component in relative.components() {
                path.push(component);
                if refused && path.is_symlink() {
                    return Error::Destination(DestinationError::Link { path });
                }
            }
            Error::io(action, &path)(error)
        }
    }
}

fn last(relative: &Path) -> io::Result<&OsStr> {
    match relative.components().next_back() {
        Some(Component::Normal(name)) => Ok(name),
        _ => Err(outside()),
    }
}

fn outside() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a path inside the folder")
}

/// Converts `NotFound` to `None`.
fn absent_as_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}
