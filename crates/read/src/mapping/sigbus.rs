//! The handler of SIGBUS.
//!
//! It is installed once per process, before the first mapping, and stays. Faults outside our mappings, and signals that a
//! process sends, go to the handler that was installed before it, with that handler's mask and flags; if there was none,
//! the process ends by SIGBUS.
//!
//! A handler that the host program installs later (Python's `faulthandler`, the workers of PyTorch's `DataLoader`) gets
//! all faults first. If it does not pass them on to the one before it, an unreadable page ends the process, as it would
//! without us. Child processes after `fork` inherit handler, table and mappings.

use super::table;
use crate::system;
use libc::{SA_NODEFER, SA_ONSTACK, SA_RESETHAND, SA_RESTART, SA_SIGINFO, SIG_DFL, SIG_IGN, SIGBUS};
use libc::{c_int, c_void, siginfo_t};
use std::io;
use std::mem::{transmute, zeroed};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The action that was installed before ours.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Bytes of a page.
static PAGE: AtomicUsize = AtomicUsize::new(4096);

const MESSAGE: &[u8] =
    b"shardtool: cannot read a page of a mapped index whose columns are lent as arrays: the file was \
                         truncated, or its device failed\n";

/// Installs the handler if it is not installed.
pub(super) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Option<i32>> = OnceLock::new();
    match INSTALLED.get_or_init(|| set().err().and_then(|e| e.raw_os_error())) {
        None => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(*code)),
    }
}

fn set() -> io::Result<()> {
    PAGE.store(rustix::param::page_size(), Ordering::Relaxed);
    // SAFETY: all zeros is a valid `sigaction`: the default action, an empty mask, no flags.
    let mut previous: libc::sigaction = unsafe { zeroed() };
    // SAFETY: `previous` is valid for writes.
    check(unsafe { libc::sigaction(SIGBUS, ptr::null(), &mut previous) })?;
    // The handler reads this, so it precedes the installation.
    let previous = PREVIOUS.get_or_init(|| previous);
    let mut ours = *previous;
    ours.sa_sigaction = handle as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
    // The mask and these flags are the previous handler's, for when it is called.
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (previous.sa_flags & (SA_NODEFER | SA_RESTART));
    // SAFETY: `handle` has the signature that `SA_SIGINFO` asks for and calls async-signal-safe functions only.
    check(unsafe { libc::sigaction(SIGBUS, &ours, ptr::null_mut()) })
}

fn check(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Handles a SIGBUS: replaces the page if it is ours, and otherwise calls the previous handler.
extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes a valid `info` to a handler with `SA_SIGINFO`.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // SAFETY: the function has no preconditions.
    let errno = unsafe { system::errno() };
    // SAFETY: a valid pointer to this thread's `errno`, which the interrupted code must find unchanged.
    let saved = unsafe { *errno };
    let fault = system::is_fault(code);
    let replaced = fault && replace_page(address);
    // SAFETY: as above.
    unsafe { *errno = saved };
    if !replaced {
        // SAFETY: these are the arguments that the system passed.
        unsafe { pass_on(fault, signal, info, context) };
    }
}

/// Replaces the page at an address by zeros if it is one of our mappings'. Returns whether it did.
fn replace_page(address: usize) -> bool {
    let Some(entry) = table::find(address) else { return false };
    if entry.is_lent() {
        // SAFETY: writes a constant. `write` is async-signal-safe.
        unsafe { libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len()) };
        return false;
    }
    let page = PAGE.load(Ordering::Relaxed);
    let start = address / page * page;
    entry.lose(start..start + page);
    // SAFETY: the page belongs to a mapping in the table, which stays mapped while it is there, and which is read-only:
    // nothing but its unreadable content is lost. Borrowers of its bytes find zeros and learn of it from `Entry::lost`.
    // `mmap` is a plain system call on Linux and macOS.
    let zeros = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        libc::mmap(start as *mut c_void, page, libc::PROT_READ, flags, -1, 0)
    };
    zeros != libc::MAP_FAILED
}

/// Does what the previous action would have done.
///
/// # Safety
/// The arguments are those that the system passed to the handler.
unsafe fn pass_on(fault: bool, signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: all zeros is the default action.
    let default: libc::sigaction = unsafe { zeroed() };
    let previous = PREVIOUS.get().unwrap_or(&default);
    match previous.sa_sigaction {
        SIG_IGN if !fault => {}
        // A fault that is ignored ends the process too.
        SIG_DFL | SIG_IGN => {
            // SAFETY: restores the default action. The fault is raised again on return; a sent signal is sent again. (Sent for a
            // fault, it comes before that on return, and ends the process as well.)
            unsafe {
                libc::sigaction(signal, &default, ptr::null_mut());
                if !fault || system::SENT_MAY_LOOK_LIKE_A_FAULT {
                    libc::raise(signal);
                }
            }
        }
        // SAFETY: the host installed this handler for SIGBUS, with the signature that its flags say.
        handler => unsafe {
            if previous.sa_flags & SA_RESETHAND != 0 {
                libc::sigaction(signal, &default, ptr::null_mut());
            }
            if previous.sa_flags & SA_SIGINFO != 0 {
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = transmute(handler);
                handler(signal, info, context);
            } else {
                let handler: extern "C" fn(c_int) = transmute(handler);
                handler(signal);
            }
        },
    }
}
