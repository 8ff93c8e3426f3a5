//! An object that is read through a cache.

use super::blocks::BlockFile;
use super::claim::Claim;
use super::{Cache, FETCHED_BY_READERS, Process, block_id, count_hit, key, room};
use crate::stats::{self, add};
use crate::{Object, time_limit};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a reader looks whether another process has a block.
const POLL: Duration = Duration::from_millis(2);

/// An object, and what a cache holds of it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CachedObject {
    object: Object,
    cache: Cache,
    name: Arc<str>,
    key: u64,
    file: Arc<BlockFile>,
}

/// A block that this process is requesting.
#[derive(Debug, Default)]
pub struct Pending {
    result: Mutex<Option<Result<(), (io::ErrorKind, String)>>>,
    done: Condvar,
}

/// What became of the call [`CachedObject::fetch`].
#[derive(Debug)]
pub enum Fetched {
    /// The cache has the block.
    Present,
    /// This process requests it.
    Pending(Arc<Pending>),
    /// Another process requests it.
    Elsewhere,
    /// The cache has no room for it.
    Refused,
}

impl Cache {
    /// Returns an object that is read through the cache. `name` identifies its content, and consists of letters, digits, `-`
    /// and `.`: another content must have another name.
    pub fn object(&self, object: Object, name: &str) -> CachedObject {
        let file = Arc::new(self.block_file(name));
        CachedObject { object, cache: self.clone(), name: name.into(), key: key(name), file }
    }
}

impl CachedObject {
    /// Returns the object.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// Returns the numbers of the blocks that a range touches.
    pub fn blocks(&self, range: &Range<u64>) -> Range<u64> {
        let block = self.cache.0.block;
        range.start / block..range.end.div_ceil(block)
    }

    /// Returns the bytes of a block.
    pub fn block_range(&self, block: u64) -> Range<u64> {
        let bytes = self.cache.0.block;
        block * bytes..((block + 1) * bytes).min(self.object.len())
    }

    /// Returns the number that identifies a block in [`Cache::will_use`].
    pub fn id(&self, block: u64) -> u64 {
        block_id(self.key, block)
    }

    /// Returns whether the cache has a block.
    pub fn has(&self, block: u64) -> bool {
        self.file.has(block)
    }

    /// Reads a range into `buffer`, which is resized to it: from the cache or, where that has holes, from the store. Waits for
    /// blocks that are being requested.
    ///
    /// # Errors
    /// As [`Object::read`].
    pub fn read(&self, range: Range<u64>, buffer: &mut Vec<u8>) -> io::Result<()> {
        if range.start > range.end || range.end > self.object.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = (range.end - range.start) as usize;
        buffer.clear();
        // A manifest may claim any length.
        buffer.try_reserve_exact(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        buffer.resize(length, 0);
        let mut hit = true;
        for block in self.blocks(&range) {
            let bytes = self.block_range(block);
            let piece = bytes.start.max(range.start)..bytes.end.min(range.end);
            let out = &mut buffer[(piece.start - range.start) as usize..(piece.end - range.start) as usize];
            if self.file.read(piece.clone(), out) {
                continue;
            }
            hit = false;
            self.bring(block)?;
            if !self.file.read(piece.clone(), out) {
                out.copy_from_slice(&self.object.read(piece)?);
            }
        }
        if hit {
            count_hit(length as u64);
        }
        Ok(())
    }

    /// Waits until the cache has a block, if it is to have it.
    ///
    /// # Errors
    /// `TimedOut`: another request would take as long.
    fn bring(&self, block: u64) -> io::Result<()> {
        let process = self.cache.process();
        let pending = process.pending().get(&self.id(block)).cloned();
        if let Some(pending) = pending {
            return pending.wait();
        }
        let claims = self.cache.0.folder.claims();
        let since = Instant::now();
        while Claim::exists(&claims, self.id(block)) && !self.has(block) {
            if since.elapsed() > time_limit() {
                return Ok(());
            }
            std::thread::sleep(POLL);
        }
        let bytes = self.block_range(block);
        let Some(_reader) = Reader::new(&process, bytes.end - bytes.start) else { return Ok(()) };
        match self.fetch(block, None, || {}) {
            Fetched::Pending(pending) => pending.wait(),
            Fetched::Present | Fetched::Elsewhere | Fetched::Refused => Ok(()),
        }
    }

    /// Requests a block for the cache, if there is room, and returns at once. If the cache is full, `of_order` lets the block
    /// take the place of another one, provided that other orders name enough of it: the number of the order for which it is
    /// fetched, and the bytes of the block that it reads now and later. Then calls `done` on another thread, once the result is
    /// [`Fetched::Pending`] and the block has arrived or failed.
    pub fn fetch(&self, block: u64, of_order: Option<Need>, done: impl FnOnce() + Send + 'static) -> Fetched {
        if self.has(block) {
            return Fetched::Present;
        }
        if self.cache.failure().is_some() {
            return Fetched::Refused;
        }
        let (process, id, range) = (self.cache.process(), self.id(block), self.block_range(block));
        let claim = match Claim::new(&self.cache.0.folder.claims(), id) {
            Ok(Some(claim)) => claim,
            Ok(None) => {
                let pending = process.pending().get(&id).cloned();
                return pending.map_or(Fetched::Elsewhere, Fetched::Pending);
            }
            Err(error) => {
                self.cache.fail(&error);
                return Fetched::Refused;
            }
        };
        if self.has(block) {
            return Fetched::Present;
        }
        let len = range.end - range.start;
        let soon = of_order.is_some_and(|need| need.is_soon(&process, id, len));
        if !self.cache.reserve(&self.name, block, len, soon) {
            return Fetched::Refused;
        }
        let pending = Arc::new(Pending::default());
        process.pending().insert(id, pending.clone());
        let (this, result_of) = (self.clone(), pending.clone());
        self.object.read_then(range, move |result| {
            in_background(move || {
                let result = result.map(|bytes| this.write(block, &bytes));
                if !matches!(result, Ok(true)) {
                    this.cache.release(len);
                }
                process.pending().remove(&id);
                drop(claim);
                result_of.set(result.map(drop));
                done();
            });
        });
        Fetched::Pending(pending)
    }

    /// Writes a block. Returns whether it could.
    fn write(&self, block: u64, bytes: &[u8]) -> bool {
        let written = self.file.write(block, bytes);
        written.inspect_err(|error| self.cache.fail(error)).is_ok()
    }

    /// Removes the blocks of a range, whose bytes failed a check.
    pub fn forget(&self, range: &Range<u64>) {
        for block in self.blocks(range).filter(|block| self.has(*block)) {
            add(&stats::CACHE_BAD, 1);
            room::remove(&self.cache, &self.name, block);
        }
    }
}

/// For whom a block is fetched.
#[derive(Debug, Clone, Copy)]
pub struct Need {
    /// The number of the order, see [`super::new_order`].
    pub order: u64,
    /// Bytes of the block that its next rows read at once.
    pub now: u64,
    /// Bytes of the block that its rows read after that.
    pub later: u64,
}

impl Need {
    /// Returns whether a block is fetched whole although the cache is full: more of it is read than by this request alone, and
    /// in all at least half.
    fn is_soon(self, process: &Process, id: u64, len: u64) -> bool {
        let later = self.later + process.users.will_read(id, Some(self.order));
        later > 0 && 2 * (self.now + later) >= len
    }
}

impl Pending {
    fn set(&self, result: io::Result<()>) {
        let result = result.map_err(|error| (error.kind(), error.to_string()));
        *self.result.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.done.notify_all();
    }

    /// Returns whether the block has arrived or failed.
    pub fn is_done(&self) -> bool {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Waits until the block has arrived or failed. (The request has a time limit.)
    ///
    /// # Errors
    /// `TimedOut`: another request would take as long. Other errors are found again by whoever reads the bytes.
    pub fn wait(&self) -> io::Result<()> {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*result {
                Some(Err((kind @ io::ErrorKind::TimedOut, text))) => return Err(io::Error::new(*kind, text.clone())),
                Some(_) => return Ok(()),
                None => result = self.done.wait(result).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// The right of a reader without an order to fetch a block whole.
struct Reader<'p> {
    process: &'p Process,
    bytes: u64,
}

impl<'p> Reader<'p> {
    fn new(process: &'p Process, bytes: u64) -> Option<Self> {
        let mut readers = process.readers.lock().unwrap_or_else(PoisonError::into_inner);
        (*readers + bytes <= FETCHED_BY_READERS).then(|| {
            *readers += bytes;
            Reader { process, bytes }
        })
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        *self.process.readers.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
    }
}

/// Runs what may wait for a disk, outside of the threads that receive answers.
fn in_background(work: impl FnOnce() + Send + 'static) {
    #[cfg(feature = "remote")]
    if let Ok(process) = crate::process::Process::current() {
        return process.spawn_blocking(work);
    }
    work();
}
