//! The object that says which process writes a split of a dataset in a store.
//!
//! It is created if it does not exist, so that one process has it, and is written again every [`refresh`] by the process
//! that has it, if it is still what that process wrote last. A process has ended if it ran on this machine and does not any
//! more, or if the object is older than `silence_seconds`, both times by the clock of the store. Another process then
//! replaces the object, if it is unchanged. One that is slow, or was stopped, finds that before it puts the next object in
//! place, since it first refreshes a claim that it has not refreshed for some time.
//!
//! The object also lists the uploads in parts that are under way, so that the next process can remove their parts.

use super::owner::Owner;
use crate::Error;
use crate::error::DestinationError;
use serde::{Deserialize, Serialize};
use shardtool_store::{Condition, Version, abort_upload, find, put_if, time_limit};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// The longest time between two refreshes.
const REFRESH: Duration = Duration::from_secs(15);
/// A claim is short.
const MAX_BYTES: u64 = 16 << 20;
/// How often a claim is tried while others change it.
const TRIES: usize = 5;

/// Returns the time between two refreshes: a quarter of the time limit of a request, at most [`REFRESH`].
fn refresh() -> Duration {
    REFRESH.min(time_limit() / 4)
}

/// Returns how old the last refresh may be when an object is put in place.
fn fresh() -> Duration {
    3 * refresh()
}

/// What the object says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
struct Content {
    owner: Owner,
    /// Distinguishes the claims of one process.
    claim: String,
    refreshes: u64,
    /// After this time without a refresh, the process has ended.
    silence_seconds: u64,
    /// Uploads in parts: the name of the object, and the id of the upload.
    uploads: Vec<(String, String)>,
}

/// A claim that this process has. Dropping it removes the object.
pub(super) struct Claim {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    path: PathBuf,
    /// What is claimed, for messages.
    what: PathBuf,
    /// Whether the store compares versions.
    conditional: bool,
    /// Uploads of the process that had the claim before.
    inherited: Vec<(String, String)>,
    /// Held while the object is being written.
    writing: Mutex<()>,
    state: Mutex<State>,
    ended: Condvar,
}

struct State {
    content: Content,
    version: Version,
    refreshed: Instant,
    lost: bool,
    ended: bool,
}

impl Claim {
    /// Takes the claim `path` on `what`. `now` is the time by the store's clock.
    ///
    /// # Errors
    /// [`DestinationError::Claimed`], [`Error::Io`].
    pub(super) fn take(path: PathBuf, what: &Path, conditional: bool, now: SystemTime) -> Result<Self, Error> {
        let content = Content {
            owner: Owner::this_process(),
            claim: crate::commit::unique(),
            refreshes: 0,
            silence_seconds: (fresh() + refresh() + time_limit()).as_secs(),
            uploads: vec![],
        };
        let begun = Instant::now();
        let (mut tries, mut inherited) = (0, vec![]);
        let version = loop {
            tries += 1;
            let found = match find(&path, MAX_BYTES) {
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                found => found.map_err(Error::io("read", &path))?,
            };
            let condition = match &found {
                Some(found) => {
                    let left = serde_json::from_slice::<Content>(&found.bytes).unwrap_or_default();
                    check_ended(&left, found.modified, now + begun.elapsed(), &path, what)?;
                    for (object, id) in &left.uploads {
                        let object = what.join(object);
                        abort_upload(&object, id).map_err(Error::io("remove the unfinished upload of", &object))?;
                    }
                    inherited = left.uploads;
                    Condition::Unchanged(&found.version)
                }
                None => Condition::Absent,
            };
            let condition = if conditional { condition } else { Condition::Always };
            match put_if(&path, to_json(&content), condition) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < TRIES => {}
                version => break version.map_err(Error::io("create", &path))?,
            }
        };
        let state = State { content, version, refreshed: begun, lost: false, ended: false };
        let shared = Arc::new(Shared {
            path,
            what: what.to_owned(),
            conditional,
            inherited,
            writing: Mutex::new(()),
            state: Mutex::new(state),
            ended: Condvar::new(),
        });
        let refreshing = shared.clone();
        let thread = std::thread::Builder::new().name("claim".to_owned()).spawn(move || refreshing.keep());
        let thread = thread.map_err(Error::io("start a thread that refreshes", &shared.path));
        let claim = |thread| Claim { shared: shared.clone(), thread };
        match thread {
            Ok(thread) => Ok(claim(Some(thread))),
            Err(error) => {
                drop(claim(None));
                Err(error)
            }
        }
    }

    /// Checks that no other process has the claim `path` on `what`. One of a process that has ended, or was stopped for long, is taken
    /// over and removed: that process then finds that it has lost it before it writes or removes anything. `now` is the time by the
    /// store's clock.
    ///
    /// # Errors
    /// [`DestinationError::Claimed`], [`Error::Io`].
    pub(super) fn refuse_taken(path: &Path, what: &Path, conditional: bool, now: SystemTime) -> Result<(), Error> {
        let begun = Instant::now();
        let mut tries = 0;
        loop {
            let found = match find(path, MAX_BYTES) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
                found => found.map_err(Error::io("read", path))?,
            };
            let Some(found) = found else { return Ok(()) };
            let content = serde_json::from_slice::<Content>(&found.bytes).unwrap_or_default();
            let now = now + begun.elapsed();
            let ended = check_ended(&content, found.modified, now, path, what);
            if tries == 0 || ended.is_ok() {
                ended?;
                tries += 1;
            }
            match Claim::take(path.to_owned(), what, conditional, now) {
                // Another process that joins has taken it over, and removes it.
                Err(Error::Destination(DestinationError::Claimed { .. })) if tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(Duration::from_millis(200));
                }
                taken => return taken.map(drop),
            }
        }
    }

    /// Checks that this process still has the claim.
    ///
    /// # Errors
    /// [`DestinationError::ClaimLost`], [`Error::Io`].
    pub(super) fn check(&self) -> Result<(), Error> {
        let (lost, age) = {
            let state = self.shared.state();
            (state.lost, state.refreshed.elapsed())
        };
        match (lost, age > fresh()) {
            (true, _) => Err(self.shared.lost()),
            (false, true) => self.shared.refresh(|_| ()).map_err(|error| self.shared.error(error)),
            (false, false) => Ok(()),
        }
    }

    /// Returns what records an upload of an object, before its first part is sent.
    pub(super) fn journal(&self, object: String) -> shardtool_store::Journal {
        let shared = self.shared.clone();
        Box::new(move |id| {
            shared.refresh(|content| {
                // An object that is uploaded again has no other upload any more.
                content.uploads.retain(|(other, _)| *other != object);
                content.uploads.push((object.clone(), id.to_owned()));
            })
        })
    }

    /// Removes the record of an upload that has ended. The object is written with the next refresh.
    pub(super) fn forget(&self, object: &str) {
        self.shared.state().content.uploads.retain(|(other, _)| other != object);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refreshes the object until the claim ends.
    fn keep(&self) {
        let mut state = self.state();
        while !state.ended && !state.lost {
            let (guard, wait) = self.ended.wait_timeout(state, refresh()).unwrap_or_else(PoisonError::into_inner);
            state = guard;
            if wait.timed_out() && !state.ended {
                drop(state);
                // If it fails, it is tried again: here, or before the next object is put in place.
                let _ = self.refresh(|_| ());
                state = self.state();
            }
        }
    }

    /// Writes the object again, after a change.
    fn refresh(&self, change: impl FnOnce(&mut Content)) -> io::Result<()> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        let (json, version) = {
            let mut state = self.state();
            if state.lost {
                return Err(ErrorKind::AlreadyExists.into());
            }
            change(&mut state.content);
            state.content.refreshes += 1;
            (to_json(&state.content), state.version.clone())
        };
        let condition = if self.conditional { Condition::Unchanged(&version) } else { Condition::Always };
        let written = put_if(&self.path, json, condition);
        let mut state = self.state();
        match written {
            Ok(version) => {
                (state.version, state.refreshed) = (version, begun);
                Ok(())
            }
            Err(error) => {
                state.lost |= is_lost(&error);
                Err(error)
            }
        }
    }

    fn error(&self, error: io::Error) -> Error {
        if is_lost(&error) { self.lost() } else { Error::io("write", &self.path)(error) }
    }

    fn lost(&self) -> Error {
        let (what, claim) = (self.what.clone(), self.path.clone());
        Error::Destination(DestinationError::ClaimLost { what, claim })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let (lost, fresh) = {
            let mut state = self.shared.state();
            state.ended = true;
            (state.lost, state.refreshed.elapsed() <= fresh())
        };
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        // A claim that may be another process's stays. So does one of a store that does not answer.
        if !lost && fresh {
            // Parts that were on their way when an upload was ended may have arrived after that.
            for (object, id) in &self.shared.inherited {
                let _ = abort_upload(&self.shared.what.join(object), id);
            }
            let _ = shardtool_store::clean_up(&self.shared.path);
        }
    }
}

/// Returns whether another process has replaced the object of a claim, or removed it after that.
fn is_lost(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound)
}

/// Fails if the process that wrote a claim may still be writing.
fn check_ended(left: &Content, modified: SystemTime, now: SystemTime, path: &Path, what: &Path) -> Result<(), Error> {
    // Times of the store have whole seconds, and an object without a valid claim was not written by this program.
    let silence = Duration::from_secs(left.silence_seconds.clamp(30, 3600) + 1);
    let age = now.duration_since(modified).unwrap_or_default();
    if left.owner.has_ended() || age > silence {
        return Ok(());
    }
    let Owner { host, pid, .. } = &left.owner;
    let host: String = host.chars().filter(|c| !c.is_control()).take(100).collect();
    Err(Error::Destination(DestinationError::Claimed {
        what: what.to_owned(),
        claim: path.to_owned(),
        owner: format!("process {pid} on `{host}`"),
        age: age.as_secs(),
        wait: (silence - age).as_secs() + 1,
    }))
}

fn to_json(content: &Content) -> Vec<u8> {
    let mut json = serde_json::to_vec_pretty(content).expect("strings and numbers");
    json.push(b'\n');
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::ProcessIdentity;

    #[test]
    fn a_claim_ends_with_its_process_or_after_its_silence() {
        let now = SystemTime::now();
        let ended = |left: &Content, age: u64| {
            let modified = now - Duration::from_secs(age);
            check_ended(left, modified, now, Path::new("s3://b/.lock"), Path::new("s3://b")).is_ok()
        };
        let mine = Content { owner: Owner::this_process(), silence_seconds: 120, ..Content::default() };
        assert!(!ended(&mine, 0) && !ended(&mine, 121) && ended(&mine, 122));
        let of = |identity| Content { owner: Owner { identity, ..mine.owner.clone() }, ..mine.clone() };
        let killed = of(ProcessIdentity::of_ended_process());
        assert!(ended(&killed, 0));
        let elsewhere = of(ProcessIdentity::elsewhere());
        assert!(!ended(&elsewhere, 0) && ended(&elsewhere, 122));
        // Not a claim.
        assert!(!ended(&Content::default(), 29) && ended(&Content::default(), 32));
        // The clock of the store may have been set back.
        let future = now + Duration::from_secs(60);
        assert!(check_ended(&mine, future, now, Path::new("l"), Path::new("s")).is_err());
    }
}
