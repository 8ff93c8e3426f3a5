//! A cache of objects on a local disk, shared by the processes of a machine, and never trusted.
//!
//! | module | contents |
//! |---|---|
//! | `files` | opens and locks files |
//! | `folder` | the folder: who uses it, how many bytes it holds |
//! | `system` | the blocks of one object: in a sparse file on Linux, in a file for each block elsewhere |
//! | `claim` | which process requests a block |
//! | `users` | which contents and blocks the processes will use |
//! | `room` | which blocks make room for others |
//! | `object` | an object that is read through the cache |
//!
//! ```text
//! DIR/shardtool-cache-1/lock          held by every process that uses the cache
//!                       used          bytes of all blocks
//!                       blocks/NAME   a sparse file: the blocks of one object at their offsets, holes for the others;
//!                                     not on Linux: a folder with a file for each block
//!                       claims/ID     locked while a block is requested
//!                       users/PID-N   locked by a process: the contents it uses; PID-N.next: the blocks it will use
//! ```
//!
//! The holes of a file, or the files of a folder, say which blocks there are. Nothing else does, and so nothing that a killed process could leave in
//! contradiction. A block that was written in part, or that another process removes while it is read, has records whose CRCs
//! do not match; its reader then requests them from the store. Locks end with the process that holds them. `NAME` contains
//! checksums of the content, so that a dataset that changes has other names.
//!
//! # What is kept
//! While there is room, each block that is read is kept. In a full cache, a block is fetched whole only if records that the
//! orders of the processes name soon take at least half of it, and more than those that are read now; it then takes the place of
//! one that no order names: first of one that was itself fetched so, then of any. All others stay, which is the best that can
//! be done for data that is read once in each epoch. Contents that no running process uses are removed first.

mod claim;
mod files;
mod folder;
mod object;
mod room;
mod system;
mod users;

pub use object::{CachedObject, Fetched, Need, Pending};

use crate::stats::{self, add};
use folder::Folder;
use room::Room;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use system::Blocks;
use users::Users;

/// Bytes of a block.
const BLOCK: u64 = 4 << 20;

/// Bytes of blocks that readers without an order fetch whole at once, in addition to those of loaders; others are read by range.
const FETCHED_BY_READERS: u64 = 2 * BLOCK;

/// How long a cache that was full is taken to be full.
const FULL: Duration = Duration::from_millis(50);

/// Blocks or files that are removed for one block, at most.
const MOST_REMOVED: usize = 8;

/// A cache of objects in a folder. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Cache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The folder that the user named.
    path: PathBuf,
    folder: Folder,
    /// Bytes of all blocks, at most.
    size: u64,
    block: u64,
    generation: Generation,
    /// Why nothing is added any more.
    failure: OnceLock<String>,
}

/// What a process knows, and what its forked children know. A child begins anew: what its parent knows may be locked by a
/// thread that the child does not have, and the files are the parent's.
#[derive(Debug)]
struct Generation {
    process: u32,
    known: Arc<Process>,
    /// Of the child, in the child's memory.
    next: OnceLock<Box<Generation>>,
}

/// What one process knows.
#[derive(Debug)]
struct Process {
    users: Users,
    room: Mutex<Room>,
    /// Blocks that this process is requesting.
    pending: Mutex<HashMap<u64, Arc<Pending>>>,
    /// When a block was last refused because the cache is full.
    full: Mutex<Option<Instant>>,
    /// Bytes of blocks that readers without an order are fetching.
    readers: Mutex<u64>,
}

impl Cache {
    /// Opens a cache in a folder, which is created if it does not exist. `size` is in bytes; `None` is what the folder holds
    /// already and 90 % of the file system's free space. Removes what exceeds the size. In one process, caches with the same
    /// folder and size are clones of one.
    ///
    /// # Errors
    /// Those of the system; `Unsupported` if the file system keeps no holes; `InvalidInput` if the size is less than one block;
    /// `PermissionDenied` if folders in it belong to another user, or are links.
    /// In one process, caches with the same folder and size are clones of one.
    pub fn open(path: &Path, size: Option<u64>) -> io::Result<Self> {
        static OPEN: Mutex<Vec<Weak<Inner>>> = Mutex::new(vec![]);
        let process = std::process::id();
        let absolute = std::path::absolute(path)?;
        // If another thread held the lock when this process was forked, the cache is opened once more.
        let mut open = OPEN.try_lock();
        if let Ok(open) = &mut open {
            open.retain(|inner| inner.strong_count() > 0);
            let mut found = open.iter().filter_map(Weak::upgrade);
            let same = |inner: &Inner| {
                inner.path == absolute && size.is_none_or(|size| size == inner.size) && inner.folder.blocks().exists()
            };
            if let Some(inner) = found.find(|inner| inner.generation.process == process && same(inner)) {
                return Ok(Cache(inner));
            }
        }
        let cache = Cache::with_blocks(path, size, BLOCK)?;
        if let Ok(open) = &mut open {
            open.push(Arc::downgrade(&cache.0));
        }
        Ok(cache)
    }

    /// As [`Cache::open`], with blocks of another size: for tests.
    ///
    /// # Errors
    /// As [`Cache::open`].
    #[doc(hidden)]
    pub fn with_blocks(path: &Path, size: Option<u64>, block: u64) -> io::Result<Self> {
        if let Some(size) = size.filter(|size| *size < block) {
            let problem = format!("the size of the cache is {size} bytes, less than one block ({block} bytes)");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let folder = Folder::open(path, block)?;
        let size = match size {
            Some(size) => size,
            None => folder.used()?.saturating_add(folder.free_space()? / 10 * 9),
        };
        let known = Arc::new(Process::new(&folder)?);
        let generation = Generation { process: std::process::id(), known, next: OnceLock::new() };
        let (path, failure) = (std::path::absolute(path)?, OnceLock::new());
        let cache = Cache(Arc::new(Inner { path, folder, size, block, generation, failure }));
        cache.shrink()?;
        Ok(cache)
    }

    /// Returns whether both are clones of one.
    pub fn is(&self, other: &Cache) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the folder that was given.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the bytes of all blocks, at most.
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// Returns the bytes of all blocks that the cache holds.
    ///
    /// # Errors
    /// Those of the system.
    pub fn used(&self) -> io::Result<u64> {
        self.0.folder.used()
    }

    /// States that this process uses contents, so that their blocks are not taken for abandoned ones.
    pub fn use_contents<'n>(&self, names: impl Iterator<Item = &'n str>) {
        let keys = names.map(key).collect();
        self.process().users.use_contents(keys);
    }

    /// States which blocks an order names soon, and how many bytes of each its records take: in place of what this process
    /// stated for the same `order`, a number of its choice.
    pub fn will_use(&self, order: u64, blocks: HashMap<u64, u64>) {
        self.process().users.will_use(order, blocks);
    }

    /// Forgets what was stated for an order.
    pub fn end_order(&self, order: u64) {
        self.process().users.end_order(order);
    }

    /// Returns why the cache cannot be written any more, as a full disk; what it holds is still read.
    pub fn failure(&self) -> Option<&str> {
        self.0.failure.get().map(String::as_str)
    }

    /// Notes that writing failed: nothing is added any more.
    fn fail(&self, error: &io::Error) {
        use rustix::io::Errno;
        let later = [Errno::MFILE, Errno::NFILE].iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
        if !later && self.0.failure.set(error.to_string()).is_ok() {
            let path = self.0.path.display();
            log::warn!("the cache in {path} cannot be written ({error}): what it does not hold is read from the store");
        }
    }

    /// Removes blocks until they fit into the size.
    fn shrink(&self) -> io::Result<()> {
        let process = self.process();
        let mut room = process.room.lock().unwrap_or_else(PoisonError::into_inner);
        while self.0.folder.used()? > self.0.size {
            if !room.remove_any(self, &process.users) {
                break;
            }
        }
        Ok(())
    }

    /// Reserves room for a block of `len` bytes. If the cache is full, `soon` is asked whether another one may be removed for it.
    fn reserve(&self, name: &Arc<str>, block: u64, len: u64, soon: impl Fn() -> bool) -> bool {
        let process = self.process();
        let mut room = process.room.lock().unwrap_or_else(PoisonError::into_inner);
        let mut full = false;
        // Another process may have a larger size, and fill what this one removes.
        for _ in 0..MOST_REMOVED {
            match self.0.folder.reserve(len, self.0.size) {
                Ok(true) => {
                    if full {
                        room.fetched_soon(name, block);
                    }
                    return true;
                }
                Ok(false) if room.remove_abandoned(self, &process.users) => {}
                Ok(false) if soon() && room.remove_one(self, &process.users) => full = true,
                Ok(false) => {
                    *process.full.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                    return false;
                }
                Err(error) => {
                    self.fail(&error);
                    return false;
                }
            }
        }
        false
    }

    /// Gives room back after blocks were removed, or were not written.
    fn release(&self, bytes: u64) {
        if let Err(error) = self.0.folder.release(bytes) {
            self.fail(&error);
        }
    }

    fn process(&self) -> Arc<Process> {
        let (mut generation, process) = (&self.0.generation, std::process::id());
        while generation.process != process {
            generation = generation.next.get_or_init(|| {
                let known = Process::new(&self.0.folder).unwrap_or_else(|error| {
                    self.fail(&error);
                    Process::without_users()
                });
                known.users.use_contents(generation.known.users.contents());
                Box::new(Generation { process, known: Arc::new(known), next: OnceLock::new() })
            });
        }
        generation.known.clone()
    }

    fn blocks_of(&self, name: &str) -> Blocks {
        Blocks::new(self.0.folder.blocks().join(name), self.0.block)
    }
}

impl Process {
    fn new(folder: &Folder) -> io::Result<Self> {
        Ok(Process { users: Users::new(&folder.users())?, ..Process::without_users() })
    }

    fn without_users() -> Self {
        let (room, pending) = (Mutex::default(), Mutex::default());
        Process { users: Users::default(), room, pending, full: Mutex::default(), readers: Mutex::new(0) }
    }

    /// Returns whether the cache was full a moment ago.
    fn was_full(&self) -> bool {
        let full = *self.full.lock().unwrap_or_else(PoisonError::into_inner);
        full.is_some_and(|since| since.elapsed() < FULL)
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Arc<Pending>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a number for [`Cache::will_use`] that no other order of this process has.
pub fn new_order() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Counts a range that was read from a cache.
fn count_hit(bytes: u64) {
    add(&stats::CACHE_HITS, 1);
    add(&stats::CACHE_BYTES, bytes);
}

/// Returns the number of a content, from its name (FNV-1a, 64 bits). Two contents with one number only share their fate.
fn key(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the number of a block of a content.
fn block_id(key: u64, block: u64) -> u64 {
    key.wrapping_add(block.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
