//! Which blocks make room for others.

use super::claim::Claim;
use super::users::Users;
use super::{Cache, block_id, key};
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a listing of the cache's files is used.
const LISTED: Duration = Duration::from_secs(60);

/// Blocks that are looked at to find one that no order names.
const TRIES: usize = 32;

/// How long nothing is looked for after nothing was found.
const IN_VAIN: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
pub(super) struct Room {
    /// Blocks that this process fetched although the cache was full, oldest first.
    soon: VecDeque<(Arc<str>, u64)>,
    /// Names of the files.
    files: Vec<String>,
    listed: Option<Instant>,
    /// Names of those that no process uses.
    abandoned: Vec<String>,
    /// When no block was found that no order names.
    in_vain: Option<Instant>,
    draws: u64,
}

impl Room {
    /// Notes that a block was fetched although the cache was full.
    pub(super) fn fetched_soon(&mut self, name: &Arc<str>, block: u64) {
        self.soon.push_back((name.clone(), block));
    }

    /// Removes a file that no process uses. Returns whether there was one.
    pub(super) fn remove_abandoned(&mut self, cache: &Cache, users: &Users) -> bool {
        if self.list(cache) {
            let all = std::mem::take(&mut self.files);
            (self.files, self.abandoned) = all.into_iter().partition(|name| users.uses(key(name), false));
        }
        while let Some(name) = self.abandoned.pop() {
            // A process may have opened it meanwhile.
            if users.uses(key(&name), true) {
                self.files.push(name);
                continue;
            }
            if let Ok(bytes) = cache.blocks_of(&name).unlink() {
                cache.release(bytes);
                return true;
            }
        }
        false
    }

    /// Removes a block that no order names: the first one that was fetched in place of others and has been used, else any.
    /// Returns whether there was one.
    pub(super) fn remove_one(&mut self, cache: &Cache, users: &Users) -> bool {
        if self.in_vain.is_some_and(|since| since.elapsed() < IN_VAIN) {
            return false;
        }
        for _ in 0..self.soon.len().min(TRIES) {
            let Some((name, block)) = self.soon.pop_front() else { break };
            if users.will_read(block_id(key(&name), block), None) > 0 {
                self.soon.push_back((name, block));
            } else if remove(cache, &name, block) {
                return true;
            }
        }
        self.list(cache);
        let found = self.remove_drawn(cache, |id| users.will_read(id, None) == 0);
        self.in_vain = (!found).then(Instant::now);
        found
    }

    /// Removes any block. Returns whether there was one.
    pub(super) fn remove_any(&mut self, cache: &Cache, users: &Users) -> bool {
        self.remove_abandoned(cache, users) || self.remove_drawn(cache, |_| true)
    }

    fn remove_drawn(&mut self, cache: &Cache, allowed: impl Fn(u64) -> bool) -> bool {
        for _ in 0..TRIES {
            let Some(name) = self.draw(self.files.len() as u64).and_then(|at| self.files.get(at as usize).cloned())
            else {
                return false;
            };
            let file = cache.blocks_of(&name);
            let drawn = self.draw(file.end()).and_then(|block| file.next(block).or_else(|| file.next(0)));
            match drawn {
                Some(block) if allowed(block_id(key(&name), block)) && remove(cache, &name, block) => return true,
                Some(_) => {}
                None => self.files.retain(|other| *other != name),
            }
        }
        false
    }

    /// Lists the files, if it was long ago. Returns whether it did.
    fn list(&mut self, cache: &Cache) -> bool {
        if self.listed.is_some_and(|listed| listed.elapsed() < LISTED) {
            return false;
        }
        self.listed = Some(Instant::now());
        let entries = std::fs::read_dir(cache.0.folder.blocks()).into_iter().flatten().flatten();
        self.files = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        true
    }

    /// Returns a random number below `most`; `None` if that is 0.
    fn draw(&mut self, most: u64) -> Option<u64> {
        self.draws += 1;
        RandomState::new().hash_one(self.draws).checked_rem(most)
    }
}

/// Removes a block, unless another process is writing or removing it. Returns whether it did.
pub(super) fn remove(cache: &Cache, name: &str, block: u64) -> bool {
    let Ok(Some(_claim)) = Claim::new(&cache.0.folder.claims(), block_id(key(name), block)) else { return false };
    let removed = cache.blocks_of(name).remove(block);
    removed.is_ok_and(|bytes| {
        cache.release(bytes);
        bytes > 0
    })
}
