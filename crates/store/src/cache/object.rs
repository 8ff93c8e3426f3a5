//! An object that is read through a cache.

use super::claim::Claim;
use super::system::Blocks;
use super::{Cache, FETCHED_BY_READERS, Process, block_id, count_hit, key, room};
use crate::Object;
use crate::request::in_background;
use crate::stats::{self, add};
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a reader looks whether another process has a block, and how long at most: it then requests the bytes itself.
const POLL: Duration = Duration::from_millis(2);
const WAIT: Duration = Duration::from_secs(5);

/// An object, and what a cache holds of it. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CachedObject {
    object: Object,
    cache: Cache,
    name: Arc<str>,
    key: u64,
    file: Arc<Blocks>,
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
        let file = Arc::new(self.blocks_of(name));
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
        let (start, bytes) = (block.saturating_mul(self.cache.0.block), self.cache.0.block);
        start..start.saturating_add(bytes).min(self.object.len())
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
        if self.file.append(&range, buffer) {
            count_hit(length as u64);
            return Ok(());
        }
        buffer.resize(length, 0);
        let mut pieces: Vec<_> = self.blocks(&range).collect();
        let mut read = |block: &u64| {
            let piece = self.piece(*block, &range);
            let out = &mut buffer[(piece.start - range.start) as usize..(piece.end - range.start) as usize];
            self.file.read(piece, out)
        };
        pieces.retain(|block| !read(block));
        if pieces.is_empty() {
            count_hit(length as u64);
            return Ok(());
        }
        let process = self.cache.process();
        let brought: Vec<_> = pieces.iter().map(|block| self.bring(&process, *block)).collect();
        let until = Instant::now() + WAIT;
        for (block, brought) in pieces.iter().zip(&brought) {
            match brought {
                Brought::Pending(pending, _) => pending.wait()?,
                Brought::Elsewhere => self.wait_elsewhere(*block, until),
                Brought::Not => {}
            }
        }
        drop(brought);
        pieces.retain(|block| !read(block));
        // What the cache does not hold: neighbours with one request.
        let mut pieces = pieces.into_iter().map(|block| self.piece(block, &range)).peekable();
        while let Some(mut piece) = pieces.next() {
            while let Some(next) = pieces.next_if(|next| next.start == piece.end) {
                piece.end = next.end;
            }
            let out = (piece.start - range.start) as usize..(piece.end - range.start) as usize;
            buffer[out].copy_from_slice(&self.object.read(piece)?);
        }
        Ok(())
    }

    /// Returns the part of a range that lies in a block.
    fn piece(&self, block: u64, range: &Range<u64>) -> Range<u64> {
        let bytes = self.block_range(block);
        bytes.start.max(range.start)..bytes.end.min(range.end)
    }

    /// Requests a block for a reader that has no order, or finds out who does.
    fn bring<'p>(&self, process: &'p Process, block: u64) -> Brought<'p> {
        let pending = process.pending().get(&self.id(block)).cloned();
        if let Some(pending) = pending {
            return Brought::Pending(pending, None);
        }
        let bytes = self.block_range(block);
        let Some(reader) = Reader::new(process, bytes.end - bytes.start) else { return Brought::Not };
        match self.fetch(block, None, || {}) {
            Fetched::Pending(pending) => Brought::Pending(pending, Some(reader)),
            Fetched::Elsewhere => Brought::Elsewhere,
            Fetched::Present | Fetched::Refused => Brought::Not,
        }
    }

    /// Waits for a block that another process requests.
    fn wait_elsewhere(&self, block: u64, until: Instant) {
        let claims = self.cache.0.folder.claims();
        while Instant::now() < until && !self.has(block) && Claim::exists(&claims, self.id(block)) {
            std::thread::sleep(POLL);
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
        let len = range.end - range.start;
        // A full cache is not asked again for each row.
        if process.was_full() && !of_order.is_some_and(|need| need.is_soon(&process, id, len)) {
            return Fetched::Refused;
        }
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
        if !self.cache.reserve(&self.name, block, len, || of_order.is_some_and(|need| need.is_soon(&process, id, len)))
        {
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

/// What became of a block that a reader without an order needs.
enum Brought<'p> {
    /// It is under way, perhaps for this reader.
    Pending(Arc<Pending>, #[expect(dead_code, reason = "held while it is under way")] Option<Reader<'p>>),
    /// Another process requests it.
    Elsewhere,
    /// It is read by range, or is there.
    Not,
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
