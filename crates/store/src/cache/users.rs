//! Which contents and blocks the processes will use. Each process writes one file, which it holds locked; the others read it,
//! and believe it no further than choosing what to remove.

use super::folder::open;
use rustix::fs::{FlockOperation, flock};
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
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
    contents: HashSet<u64>,
    /// By order: bytes of the records in each block.
    blocks: HashMap<u64, HashMap<u64, u64>>,
    written: Option<Instant>,
}

/// What the other processes state, and when it was read.
#[derive(Debug, Default)]
struct Others {
    contents: HashSet<u64>,
    contents_read: Option<Instant>,
    blocks: HashMap<u64, u64>,
    blocks_read: Option<Instant>,
}

impl Users {
    pub(super) fn new(folder: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let process = std::process::id();
        let name = format!("{process}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let contents = open(&folder.join(&name))?;
        flock(&contents, FlockOperation::LockExclusive)?;
        let blocks = open(&folder.join(format!("{name}{NEXT}")))?;
        let (folder, contents, blocks) = (folder.to_owned(), File::from(contents), File::from(blocks));
        Ok(Users { files: Some(Files { folder, name, contents, blocks, process }), ..Users::default() })
    }

    pub(super) fn use_contents(&self, contents: Vec<u64>) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.contents.extend(contents);
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

    /// Returns whether some process uses a content.
    pub(super) fn uses(&self, key: u64) -> bool {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if own.contents.contains(&key) {
            return true;
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if others.contents_read.is_none_or(|read| read.elapsed() >= CONTENTS_FRESH) {
            others.contents_read = Some(Instant::now());
            others.contents = self.read("", 8).collect();
        }
        others.contents.contains(&key)
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
            let mut numbers = self.read(NEXT, 16);
            while let (Some(id), Some(bytes)) = (numbers.next(), numbers.next()) {
                let sum = others.blocks.entry(id).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        bytes.saturating_add(others.blocks.get(&id).copied().unwrap_or(0))
    }

    /// Returns the numbers in the files of the other processes whose names end with `end`, from each file a multiple of `unit`
    /// bytes. Removes the files of processes that have ended.
    fn read(&self, end: &str, unit: usize) -> impl Iterator<Item = u64> + use<> {
        let mut bytes = vec![];
        for (folder, name) in self.files.iter().flat_map(others) {
            let Ok(lock) = open(&folder.join(&name)) else { continue };
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
                remove(folder, &name);
            } else if let Ok(file) = open(&folder.join(format!("{name}{end}"))) {
                let _ = File::from(file).take(MAX_FILE).read_to_end(&mut bytes);
                // What is being written meanwhile may end anywhere.
                bytes.truncate(bytes.len() / unit * unit);
            }
        }
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        (0..bytes.len() / 8).map(move |at| number(&bytes[8 * at..8 * at + 8]))
    }
}

/// Returns the names of the other processes' first files.
fn others(files: &Files) -> impl Iterator<Item = (&PathBuf, String)> {
    let entries = std::fs::read_dir(&files.folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| !name.ends_with(NEXT) && *name != files.name).map(|name| (&files.folder, name))
}

/// Replaces what a file holds. Another process may read it meanwhile, and get half of each: nobody depends on it.
fn write(file: &File, numbers: impl Iterator<Item = u64>) {
    let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    let _ = file.set_len(bytes.len() as u64).and_then(|()| file.write_all_at(&bytes, 0));
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
