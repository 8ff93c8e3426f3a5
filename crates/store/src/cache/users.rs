//! Which contents and blocks the processes will use. Each process writes one file, which it holds locked; the others read it,
//! and believe it no further than choosing what to remove.

use super::files::{has_name, open, try_lock};
use rustix::fs::{Mode, OFlags};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long what other processes wrote is taken for what they would write now, and how often a process writes its file.
const FRESH: Duration = Duration::from_millis(50);

/// Bytes of another process's file, at most.
const MAX_FILE: u64 = 64 << 20;

/// How long what other processes wrote of their contents is used.
const CONTENTS_FRESH: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Users {
    /// `None` if they could not be created.
    files: Option<Files>,
    own: Mutex<Own>,
    others: Mutex<Others>,
}

/// The two files of a process: `PID-N`, its contents, which it holds locked, and `PID-N.next`, the blocks that its orders name.
#[derive(Debug)]
struct Files {
    folder: PathBuf,
    name: String,
    contents: File,
    blocks: File,
    /// Files belong to the process that created them, not to its forked children.
    process: u32,
}

/// The end of the name of the second file.
const NEXT: &str = ".next";

/// What this process states.
#[derive(Debug, Default)]
struct Own {
    /// Each once, the first ones first.
    contents: Vec<u64>,
    /// By order: bytes of the records in each block.
    blocks: HashMap<u64, HashMap<u64, u64>>,
    written: Option<Instant>,
}

/// What the other processes state, and when it was read.
#[derive(Debug, Default)]
struct Others {
    /// `None` if they could not be read.
    contents: Option<HashSet<u64>>,
    contents_read: Option<Instant>,
    blocks: HashMap<u64, u64>,
    blocks_read: Option<Instant>,
}

impl Users {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        let process = std::process::id();
        let (name, contents) = loop {
            // Process ids are not unique: containers may share the folder.
            let name = format!("{process}-{:016x}", RandomState::new().hash_one(process));
            let contents = open(&folder.join(&name))?;
            // Between the two calls, another process may have taken it for one that has ended.
            if try_lock(&contents)? && has_name(&contents)? {
                break (name, contents);
            }
        };
        let blocks = open(&folder.join(format!("{name}{NEXT}")))?;
        let (folder, contents, blocks) = (folder.to_owned(), File::from(contents), File::from(blocks));
        Ok(Users { files: Some(Files { folder, name, contents, blocks, process }), ..Users::default() })
    }

    pub(super) fn use_contents(&self, contents: Vec<u64>) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let known: HashSet<u64> = own.contents.iter().copied().collect();
        own.contents.extend(contents.into_iter().filter(|key| !known.contains(key)));
        if let Some(files) = &self.files {
            write(&files.contents, own.contents.iter().copied());
        }
    }

    pub(super) fn will_use(&self, order: u64, blocks: HashMap<u64, u64>) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.blocks.insert(order, blocks);
        if own.written.is_none_or(|written| written.elapsed() >= FRESH) {
            self.write_blocks(&mut own);
        }
    }

    pub(super) fn end_order(&self, order: u64) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.blocks.remove(&order);
        self.write_blocks(&mut own);
    }

    fn write_blocks(&self, own: &mut Own) {
        own.written = Some(Instant::now());
        if let Some(files) = &self.files {
            write(&files.blocks, own.blocks.values().flatten().flat_map(|(id, bytes)| [*id, *bytes]));
        }
    }

    /// Returns whether some process uses a content, or cannot be asked. `fresh` accepts no earlier answer.
    pub(super) fn uses(&self, key: u64, fresh: bool) -> bool {
        if self.own.lock().unwrap_or_else(PoisonError::into_inner).contents.contains(&key) {
            return true;
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if fresh || others.contents_read.is_none_or(|read| read.elapsed() >= CONTENTS_FRESH) {
            others.contents_read = Some(Instant::now());
            others.contents = self.read("", 8).ok().map(Iterator::collect);
        }
        others.contents.as_ref().is_none_or(|contents| contents.contains(&key))
    }

    /// Returns the contents that this process uses; none if another thread is changing them.
    pub(super) fn contents(&self) -> Vec<u64> {
        self.own.try_lock().map_or(vec![], |own| own.contents.clone())
    }

    /// Returns the bytes of a block that orders name, those of `except` not counted.
    pub(super) fn will_read(&self, id: u64, except: Option<u64>) -> u64 {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let orders = own.blocks.iter().filter(|(order, _)| Some(**order) != except);
        let bytes: u64 = orders.filter_map(|(_, blocks)| blocks.get(&id)).sum();
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if others.blocks_read.is_none_or(|read| read.elapsed() >= FRESH) {
            others.blocks_read = Some(Instant::now());
            others.blocks.clear();
            let mut numbers = self.read(NEXT, 16).into_iter().flatten();
            while let (Some(id), Some(bytes)) = (numbers.next(), numbers.next()) {
                let sum = others.blocks.entry(id).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        bytes.saturating_add(others.blocks.get(&id).copied().unwrap_or(0))
    }

    /// Returns the numbers in the files of the other processes whose names end with `end`, from each file a multiple of `unit`
    /// bytes. Removes the files of processes that have ended.
    fn read(&self, end: &str, unit: usize) -> io::Result<impl Iterator<Item = u64> + use<>> {
        let mut bytes = vec![];
        let Some(files) = &self.files else { return Err(io::ErrorKind::NotFound.into()) };
        for entry in std::fs::read_dir(&files.folder)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str().filter(|name| !name.ends_with(NEXT) && *name != files.name) else {
                continue;
            };
            let lock = match open_existing(&files.folder.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                result => result?,
            };
            if try_lock(&lock)? {
                remove(&files.folder, name);
            } else {
                let file = match open_existing(&files.folder.join(format!("{name}{end}"))) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    result => result?,
                };
                File::from(file).take(MAX_FILE).read_to_end(&mut bytes)?;
                // What is being written meanwhile may end anywhere.
                bytes.truncate(bytes.len() / unit * unit);
            }
        }
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        Ok((0..bytes.len() / 8).map(move |at| number(&bytes[8 * at..8 * at + 8])))
    }
}

fn open_existing(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Replaces what a file holds. Another process may read it meanwhile, and get half of each. Contents are only added, so that
/// it then lacks new ones at most.
fn write(file: &File, numbers: impl Iterator<Item = u64>) {
    let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    let _ = file.write_all_at(&bytes, 0).and_then(|()| file.set_len(bytes.len() as u64));
}

fn remove(folder: &Path, name: &str) {
    for name in [name.to_owned(), format!("{name}{NEXT}")] {
        let _ = std::fs::remove_file(folder.join(name));
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            remove(&self.folder, &self.name);
        }
    }
}
