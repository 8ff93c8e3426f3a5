//! A folder that one command fills: `reshard`, `merge`, `export`, `extract`, `demo`. Files are written inside it, in a
//! folder of unfinished files, and moved to their names when all are complete and durable, so that the destination may be
//! a mount point or a link to another file system.
//!
//! ```text
//! OUT/.unfinished-DIGITS/files/…   the files
//! OUT/.unfinished-DIGITS/moves     their names, separated by NUL: exists while they are being moved
//! ```
//!
//! A dataset's manifest is moved last. If the process is killed, the next command that fills the folder removes the files
//! that `moves` names and are no longer in `files`, then the folder of unfinished files, and starts again. If it was killed
//! after `moves` was removed, the files are complete, and the same command returns them by their [record](super::record).

use super::record::{self, RECORD, Record, Request};
use super::temporary::{is_unique, publish, unique};
use super::{Directory, Lock};
use crate::Error;
use crate::error::DestinationError;
use crate::progress::{Progress, Step, after};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shardtool_format::names;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const PREFIX: &str = ".unfinished-";
const FILES: &str = "files";
const MOVES: &str = "moves";

/// Handles that are held only so that the folder of unfinished files can be removed when no more can be opened.
const RESERVED: usize = 4;

/// A folder whose files appear when all are complete. If it is dropped before [`Output::publish`], the folder is as it
/// was before.
pub struct Output {
    files: Directory,
    force: bool,
    /// Recorded with the files, unless they join others.
    request: Option<Request>,
    unfinished: Unfinished,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Output").finish_non_exhaustive()
    }
}

/// A folder that a command would fill.
pub(crate) enum Begun<T> {
    /// It is empty, or `force` adds files to it.
    Output(Box<Output>),
    /// The same command filled it. It reported this.
    Complete(T),
}

/// A destination with a folder of unfinished files, which is removed on drop.
struct Unfinished {
    destination: Directory,
    /// Whether the destination did not exist before.
    created: bool,
    /// The name of the folder of unfinished files.
    name: String,
    published: bool,
    reserved: Vec<OwnedFd>,
    /// Held until the folder is removed.
    lock: Option<Lock>,
}

impl Output {
    /// Begins to fill a folder, which is created if it does not exist. Removes what a killed command left in it.
    ///
    /// Without `force`, the folder must be empty, apart from `lost+found`. With it, files are added to those in the
    /// folder, and replace those of the same names.
    ///
    /// # Errors
    /// [`DestinationError::NotEmpty`], [`DestinationError::Locked`], [`DestinationError::Link`], [`Error::Io`].
    pub fn new(destination: &Path, force: bool) -> Result<Self, Error> {
        match Self::begin::<()>(destination, force, None)? {
            Begun::Output(output) => Ok(*output),
            Begun::Complete(()) => unreachable!("no request is complete without one"),
        }
    }

    /// As [`Self::new`], for a command that writes the same files whenever its request is the same. Without `force`, its
    /// complete output is recognised.
    ///
    /// # Errors
    /// As [`Self::new`]; [`DestinationError::FilledOtherwise`].
    pub(crate) fn begin<T: DeserializeOwned>(
        destination: &Path,
        force: bool,
        request: Option<Request>,
    ) -> Result<Begun<T>, Error> {
        let created = Directory::open(destination)?.is_none();
        let mut unfinished = Unfinished {
            destination: Directory::create(destination)?,
            created,
            name: format!("{PREFIX}{}", unique()),
            published: false,
            reserved: vec![],
            lock: None,
        };
        let destination = &unfinished.destination;
        unfinished.lock = Some(Lock::own_dataset(destination)?);
        for abandoned in abandoned(destination)? {
            roll_back(destination, &abandoned)?;
        }
        let ours = |name: &OsStr| Lock::is_of_dataset(name) || name == "lost+found";
        if !force && destination.entries()?.iter().any(|entry| !ours(&entry.name)) {
            let complete = request.map(|request| complete(destination, &request, ours)).transpose()?.flatten();
            let not_empty = || Error::Destination(DestinationError::NotEmpty { path: destination.path().to_owned() });
            return complete.map(Begun::Complete).ok_or_else(not_empty);
        }
        for _ in 0..RESERVED {
            unfinished.reserved.push(destination.duplicate()?);
        }
        let files = destination.create_folder(Path::new(&unfinished.name).join(FILES))?;
        Ok(Begun::Output(Box::new(Output { files, force, request, unfinished })))
    }

    /// Returns the folder in which the files lie until they are published.
    pub fn path(&self) -> &Path {
        self.files.path()
    }

    /// Creates a file and the folders above it, at a path relative to the destination.
    ///
    /// # Errors
    /// Those of the system; `AlreadyExists` if this output has the file.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        if self.request.is_some() && path == Path::new(RECORD) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "the record of the command has this name"));
        }
        self.files.create_file(path)
    }

    pub(crate) fn files(&self) -> &Directory {
        &self.files
    }

    /// Makes the files durable and moves them to their names, a dataset's manifest last.
    ///
    /// # Errors
    /// [`DestinationError::InTheWay`] and [`DestinationError::Link`], before the first file is moved, if a folder would
    /// replace a file or a file a folder; [`Error::Stopped`], [`Error::Io`].
    pub fn publish(self, progress: &dyn Progress) -> Result<(), Error> {
        self.publish_with((), progress)
    }

    /// As [`Self::publish`]. The next run of the same command returns `result`.
    ///
    /// # Errors
    /// As [`Self::publish`].
    pub(crate) fn publish_with(mut self, result: impl Serialize, progress: &dyn Progress) -> Result<(), Error> {
        let Unfinished { destination, name, published, reserved, .. } = &mut self.unfinished;
        // No other thread opens files any more.
        reserved.clear();
        let unfinished = destination.folder(&*name)?;
        let mut moves = vec![];
        if self.force {
            check_replaceable(&self.files, destination)?;
        } else {
            if self.files.exists(RECORD)? {
                return Err(Error::Destination(DestinationError::InTheWay { path: self.files.path().join(RECORD) }));
            }
            let listing = record::list(&self.files, |_| false, |path| add_move(&mut moves, path))?;
            if let (Some(request), Some(listing)) = (&self.request, listing) {
                publish(&self.files, Path::new(RECORD), &Record::new(request, &listing, result).to_json())?;
                add_move(&mut moves, Path::new(RECORD));
            }
        }
        self.files.sync_tree()?;
        if self.force {
            // The files will no longer be those of one command.
            destination.remove(RECORD)?;
        } else {
            publish(&unfinished, Path::new(MOVES), &moves)?;
        }
        unfinished.sync()?;
        destination.sync()?;
        after(progress, Step::Moving)?;
        let (manifest, others): (Vec<_>, Vec<_>) =
            self.files.entries()?.into_iter().partition(|entry| entry.name == names::MANIFEST);
        for entry in others {
            put(&self.files, destination, &entry.name)?;
            after(progress, Step::Moved)?;
        }
        destination.sync()?;
        for entry in manifest {
            put(&self.files, destination, &entry.name)?;
            destination.sync()?;
            after(progress, Step::Manifest)?;
        }
        // Durable, so that no later command takes the files for those of a killed one.
        unfinished.remove(MOVES)?;
        unfinished.sync()?;
        *published = true;
        destination.remove_tree(&*name)?;
        destination.sync()?;
        after(progress, Step::Finished)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.reserved.clear();
        if !self.published {
            // If this fails, the next command that fills the folder does it.
            let _ = roll_back(&self.destination, &self.name);
        }
        self.lock = None;
        if !self.published && self.created {
            // Removes the folder only if it is empty.
            let _ = std::fs::remove_dir(self.destination.path());
        }
    }
}

/// Returns the folder of unfinished files of a command that was killed while it moved them, if there is one. The caller
/// has the dataset alone.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn unfinished(directory: &Directory) -> Result<Option<PathBuf>, Error> {
    for name in abandoned(directory)? {
        let path = Path::new(&name);
        if directory.exists(path.join(MOVES))? {
            return Ok(Some(directory.path().join(path)));
        }
    }
    Ok(None)
}

/// Returns the names of folders of unfinished files.
fn abandoned(directory: &Directory) -> Result<Vec<String>, Error> {
    let mut found = vec![];
    for entry in directory.entries()? {
        let Some(name) = entry.name.to_str().filter(|name| entry.is_folder && is_unfinished(name)) else { continue };
        // A folder with anything else in it was not made here.
        let known = |inside: &OsStr| {
            let temporary = || inside.to_str().and_then(super::final_name) == Some(MOVES);
            inside == FILES || inside == MOVES || temporary()
        };
        if directory.entries_of(name)?.iter().all(|inside| known(&inside.name)) {
            found.push(name.to_owned());
        }
    }
    Ok(found)
}

fn is_unfinished(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(is_unique)
}

/// Removes what a command made that did not finish: the files that it moved, in reverse order, then its folder.
fn roll_back(destination: &Directory, name: &str) -> Result<(), Error> {
    let unfinished = Path::new(name);
    if let Some(moves) = destination.read(unfinished.join(MOVES))? {
        let mut folders = BTreeSet::new();
        // The manifest is the last one that was moved, and the first one that is removed.
        let (manifest, others): (Vec<_>, Vec<_>) = moves
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty())
            .map(|path| Path::new(OsStr::from_bytes(path)))
            .partition(|path| *path == Path::new(names::MANIFEST));
        for path in manifest.into_iter().chain(others) {
            if !destination.exists(unfinished.join(FILES).join(path))? {
                destination.remove(path)?;
                folders.extend(path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()));
            }
        }
        // Folders after those inside them. One with other files stays.
        for folder in folders.into_iter().rev() {
            let _ = destination.remove_folder(folder);
        }
        destination.sync()?;
        destination.remove(unfinished.join(MOVES))?;
    }
    destination.remove_tree(unfinished)
}

/// Adds a path to those that will be moved.
fn add_move(moves: &mut Vec<u8>, path: &Path) {
    moves.extend_from_slice(path.as_os_str().as_bytes());
    moves.push(0);
}

/// Returns what a command reported that filled a folder with exactly the files that are in it; `None` if there are others.
/// `ours` are the names that are not files of a command.
///
/// # Errors
/// [`DestinationError::FilledOtherwise`] if its request was another one; [`Error::Io`].
fn complete<T: DeserializeOwned>(
    destination: &Directory,
    request: &Request,
    ours: impl Fn(&OsStr) -> bool,
) -> Result<Option<T>, Error> {
    let Some(found) = destination.read(RECORD)?.map(|json| Record::parse(&json)) else { return Ok(None) };
    let Some(listing) = record::list(destination, ours, |_| ())? else { return Ok(None) };
    if !found.describes(request, &listing) {
        return Ok(None);
    }
    match found.difference(request) {
        None => Ok(found.result()),
        Some(difference) => {
            let destination = destination.path().to_owned();
            Err(Error::Destination(DestinationError::FilledOtherwise { destination, difference }))
        }
    }
}

/// Moves a file or folder. The files of a folder that exists are moved into it.
fn put(from: &Directory, to: &Directory, name: &OsStr) -> Result<(), Error> {
    let name = Path::new(name);
    if !(from.has_folder(name)? && to.has_folder(name)?) {
        return from.rename(name, to, name);
    }
    let (from, to) = (from.folder(name)?, to.folder(name)?);
    for entry in from.entries()? {
        put(&from, &to, &entry.name)?;
    }
    to.sync()
}

/// Checks that files replace files or nothing, and folders are added to folders or to nothing.
fn check_replaceable(from: &Directory, to: &Directory) -> Result<(), Error> {
    for entry in from.entries()? {
        let path = Path::new(&entry.name);
        match (entry.is_folder, to.has_folder(path)?) {
            (true, true) => check_replaceable(&from.folder(path)?, &to.folder(path)?)?,
            (true, false) if to.exists(path)? => drop(to.folder(path)?),
            (false, true) => {
                return Err(Error::Destination(DestinationError::InTheWay { path: to.path().join(path) }));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn write(output: &Output, path: &str) {
        output.create(Path::new(path)).unwrap().write_all(path.as_bytes()).unwrap();
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut paths = vec![];
        let add = |path: &Path| paths.push(path.to_str().unwrap().to_owned());
        record::list(&Directory::create(folder).unwrap(), |_| false, add).unwrap();
        paths
    }

    /// Fills a folder, and stops after it moved this number of entries, without removing anything.
    fn killed(folder: &Path, moved: usize) {
        let mut output = Output::new(folder, false).unwrap();
        ["a/b/c", "a/d", "dataset.json", "e"].into_iter().for_each(|path| write(&output, path));
        let unfinished = output.unfinished.destination.folder(&output.unfinished.name).unwrap();
        let mut moves = vec![];
        record::list(&output.files, |_| false, |path| add_move(&mut moves, path)).unwrap();
        publish(&unfinished, Path::new(MOVES), &moves).unwrap();
        for name in ["a", "e", "dataset.json"].iter().take(moved) {
            put(&output.files, &output.unfinished.destination, OsStr::new(name)).unwrap();
        }
        output.unfinished.lock = None;
        std::mem::forget(output);
    }

    #[test]
    fn rolls_back_what_a_killed_command_moved_and_nothing_else() {
        for moved in 0..=3 {
            let temp = tempfile::tempdir().unwrap();
            killed(temp.path(), moved);
            let mine = temp.path().join("a/mine");
            if moved > 0 {
                std::fs::write(&mine, "mine").unwrap();
            }
            let refused = Output::new(temp.path(), false);
            assert_eq!(refused.is_err(), moved > 0, "another program's file is in the way");
            drop(refused);
            assert_eq!(names(temp.path()), if moved > 0 { vec!["a/mine"] } else { vec![] });
        }
    }

    #[test]
    fn keeps_a_folder_that_only_resembles_its_own() {
        let temp = tempfile::tempdir().unwrap();
        for name in [".unfinished-0123456789abcdef", ".unfinished-mine", "files"] {
            std::fs::create_dir(temp.path().join(name)).unwrap();
            std::fs::write(temp.path().join(name).join("mine"), "mine").unwrap();
        }
        drop(Output::new(temp.path(), true).unwrap());
        assert_eq!(names(temp.path()).len(), 3);
    }

    #[test]
    fn dropped_output_leaves_the_folder_as_it_was() {
        let temp = tempfile::tempdir().unwrap();
        let new = temp.path().join("new");
        write(&Output::new(&new, false).unwrap(), "a/b");
        assert!(!new.exists());
        let output = Output::new(temp.path(), false).unwrap();
        write(&output, "a/b");
        output.publish(&()).unwrap();
        assert_eq!(names(temp.path()), ["a/b"]);
    }
}
