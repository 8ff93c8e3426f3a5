//! Ctrl-C (SIGINT) and SIGTERM: a command that takes long says what is true of its work, and exits with 130 or 143.
//!
//! The handlers call only functions that are async-signal-safe (signal-safety(7)).

use crate::exit::{self, Exit};
use crate::output;
use shardtool_pack::Error;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

/// What a command does when it is interrupted, and what it then says.
#[derive(Clone, Copy)]
pub(crate) enum Interrupted {
    /// Stops when [`received`] says so, and removes its unfinished files. If that takes more than [`GRACE_SECONDS`], or at a
    /// second signal, exits at once.
    Stops(&'static str),
    /// Exits at once.
    Exits(&'static str),
}

impl Interrupted {
    fn message(self) -> &'static str {
        match self {
            Interrupted::Stops(message) | Interrupted::Exits(message) => message,
        }
    }
}

/// Seconds that a command gets to stop.
const GRACE_SECONDS: u32 = 5;

/// What the running command does.
static COMMAND: OnceLock<Interrupted> = OnceLock::new();
/// The signal received; 0 before.
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// Returns whether the command is to stop.
pub(crate) fn received() -> bool {
    RECEIVED.load(Ordering::Relaxed) != 0
}

/// Declares what the command does from now on when it is interrupted. Signals that the process ignores stay ignored
/// (`nohup`, background jobs).
pub(crate) fn declare(command: Interrupted) {
    if COMMAND.set(command).is_ok() {
        [libc::SIGINT, libc::SIGTERM].into_iter().filter(|signal| !is_ignored(*signal)).for_each(handle);
        handle(libc::SIGALRM);
    }
}

/// If a signal ended the command, prints what is true of its work and returns 128 plus the signal's number, as shells do.
pub(crate) fn finish(result: anyhow::Result<Exit>) -> ExitCode {
    let signal = RECEIVED.load(Ordering::Relaxed);
    let stopped = |error: &anyhow::Error| matches!(error.downcast_ref::<Error>(), Some(Error::Stopped));
    match (&result, COMMAND.get()) {
        (Err(error), Some(command)) if signal != 0 && stopped(error) => {
            output::message(command.message());
            ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
        }
        _ => exit::finish(result),
    }
}

#[expect(unsafe_code, reason = "asks the system for the action of a signal")]
fn is_ignored(signal: i32) -> bool {
    // SAFETY: a `sigaction` of zeros is valid, and the call with a null action only writes to `old`.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut old) == 0 && old.sa_sigaction == libc::SIG_IGN
    }
}

#[expect(unsafe_code, reason = "installs a signal handler")]
fn handle(signal: i32) {
    // SAFETY: `on_signal` calls only async-signal-safe functions and touches only atomics and a `OnceLock` that is set.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        // System calls that the signal interrupts continue.
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &action, std::ptr::null_mut());
    }
}

#[expect(unsafe_code, reason = "async-signal-safe functions of libc")]
extern "C" fn on_signal(signal: i32) {
    let Some(command) = COMMAND.get() else { return };
    let first = RECEIVED.load(Ordering::Relaxed);
    if first == 0 && signal != libc::SIGALRM {
        RECEIVED.store(signal, Ordering::Relaxed);
        if matches!(command, Interrupted::Stops(_)) {
            // SAFETY: async-signal-safe; SIGALRM has this handler.
            unsafe { libc::alarm(GRACE_SECONDS) };
            return;
        }
    }
    let status = 128 + if first == 0 { signal } else { first };
    // SAFETY: `isatty`, `write` and `_exit` are async-signal-safe, and the buffers outlive the calls.
    unsafe {
        // The terminal has the bar and `^C` in the present line.
        let before = if libc::isatty(2) == 1 { "\n" } else { "" };
        for text in [before, command.message(), "\n"] {
            libc::write(2, text.as_ptr().cast(), text.len());
        }
        libc::_exit(status)
    }
}
