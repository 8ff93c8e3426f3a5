//! Runs a program under `ptrace`, and makes one of its system calls fail, transfer less than asked for, or be its last.
//!
//! Calls are counted in all threads together, from the first instruction of `main` on: the dynamic loader's calls are not
//! the program's.

use libc::{c_int, c_long, pid_t};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does nothing and returns this error. Only calls that concern files are counted.
    Error(i32),
    /// Its length is halved. Only calls that transfer two bytes or more are counted.
    Short,
    /// The process is killed before it.
    Kill,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Exit(i32),
    Signal(i32),
    /// It was killed because it took longer than [`LIMIT`].
    Late,
}

/// A run of a program.
pub(crate) struct Run {
    pub(crate) end: End,
    /// The call that failed; `None` if the program made fewer calls.
    pub(crate) failed: Option<&'static str>,
}

/// How long a program may run.
const LIMIT: Duration = Duration::from_secs(60);

/// System calls that concern files. Those that wait, map anonymous memory, or manage threads, signals and time are left out.
const FILE_CALLS: &[(c_long, &str)] = &[
    (libc::SYS_read, "read"),
    (libc::SYS_write, "write"),
    (libc::SYS_open, "open"),
    (libc::SYS_close, "close"),
    (libc::SYS_stat, "stat"),
    (libc::SYS_fstat, "fstat"),
    (libc::SYS_lstat, "lstat"),
    (libc::SYS_lseek, "lseek"),
    (libc::SYS_mmap, "mmap"),
    (libc::SYS_ioctl, "ioctl"),
    (libc::SYS_pread64, "pread64"),
    (libc::SYS_pwrite64, "pwrite64"),
    (libc::SYS_readv, "readv"),
    (libc::SYS_writev, "writev"),
    (libc::SYS_access, "access"),
    (libc::SYS_sendfile, "sendfile"),
    (libc::SYS_fcntl, "fcntl"),
    (libc::SYS_flock, "flock"),
    (libc::SYS_fsync, "fsync"),
    (libc::SYS_fdatasync, "fdatasync"),
    (libc::SYS_truncate, "truncate"),
    (libc::SYS_ftruncate, "ftruncate"),
    (libc::SYS_getdents64, "getdents64"),
    (libc::SYS_getcwd, "getcwd"),
    (libc::SYS_rename, "rename"),
    (libc::SYS_mkdir, "mkdir"),
    (libc::SYS_rmdir, "rmdir"),
    (libc::SYS_link, "link"),
    (libc::SYS_unlink, "unlink"),
    (libc::SYS_symlink, "symlink"),
    (libc::SYS_readlink, "readlink"),
    (libc::SYS_chmod, "chmod"),
    (libc::SYS_fchmod, "fchmod"),
    (libc::SYS_statfs, "statfs"),
    (libc::SYS_fstatfs, "fstatfs"),
    (libc::SYS_fadvise64, "fadvise64"),
    (libc::SYS_openat, "openat"),
    (libc::SYS_openat2, "openat2"),
    (libc::SYS_mkdirat, "mkdirat"),
    (libc::SYS_newfstatat, "newfstatat"),
    (libc::SYS_unlinkat, "unlinkat"),
    (libc::SYS_renameat, "renameat"),
    (libc::SYS_renameat2, "renameat2"),
    (libc::SYS_linkat, "linkat"),
    (libc::SYS_symlinkat, "symlinkat"),
    (libc::SYS_readlinkat, "readlinkat"),
    (libc::SYS_fchmodat, "fchmodat"),
    (libc::SYS_faccessat, "faccessat"),
    (libc::SYS_faccessat2, "faccessat2"),
    (libc::SYS_utimensat, "utimensat"),
    (libc::SYS_fallocate, "fallocate"),
    (libc::SYS_copy_file_range, "copy_file_range"),
    (libc::SYS_statx, "statx"),
    (libc::SYS_sync_file_range, "sync_file_range"),
    (libc::SYS_syncfs, "syncfs"),
];

/// Calls that change names. After each of them, a run without a fault shows the files to its caller.
const NAMING: [c_long; 11] = [
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_mkdirat,
    libc::SYS_rmdir,
];

type Registers = libc::user_regs_struct;

/// Runs `command` to its end. The `fault.0`-th call (from 0) of those that `fault.1` concerns has that fault. Calls `named`
/// after each call that changed a name.
pub(crate) fn run(command: &mut Command, fault: Option<(u64, Fault)>, named: &mut dyn FnMut()) -> Run {
    // SAFETY: `ptrace` is a plain system call; the closure allocates nothing.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, null_mut::<u8>(), null_mut::<u8>()) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        })
    };
    let process = command.spawn().expect("starts under ptrace").id() as pid_t;
    let (done, wait) = channel::<()>();
    std::thread::scope(|scope| {
        let late = scope.spawn(move || {
            let late = wait.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout);
            if late {
                kill(process);
            }
            late
        });
        let mut tracer =
            Tracer { process, fault, count: 0, main: false, inside: BTreeSet::new(), pending: None, failed: None };
        let end = tracer.follow(named);
        drop(done);
        Run { end: if late.join().unwrap() { End::Late } else { end }, failed: tracer.failed }
    })
}

struct Tracer {
    process: pid_t,
    fault: Option<(u64, Fault)>,
    /// Calls that the fault concerns, so far.
    count: u64,
    /// Whether the dynamic loader is done.
    main: bool,
    /// Threads inside of a system call.
    inside: BTreeSet<pid_t>,
    /// The thread whose call is skipped, and the result that it gets.
    pending: Option<(pid_t, i32)>,
    failed: Option<&'static str>,
}

impl Tracer {
    fn follow(&mut self, named: &mut dyn FnMut()) -> End {
        let mut known = BTreeSet::new();
        loop {
            let mut status = 0;
            // SAFETY: `status` is valid for writes. Only children of this thread are waited for.
            let thread = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
            assert!(thread > 0, "waits for the program: {}", io::Error::last_os_error());
            if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
                if thread != self.process {
                    continue;
                }
                return match libc::WIFEXITED(status) {
                    true => End::Exit(libc::WEXITSTATUS(status)),
                    false => End::Signal(libc::WTERMSIG(status)),
                };
            }
            let signal = libc::WSTOPSIG(status);
            let mut passed = 0;
            if known.insert(thread) {
                if thread == self.process {
                    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
                    trace(libc::PTRACE_SETOPTIONS, thread, options as usize);
                }
            } else if signal == libc::SIGTRAP | 0x80 {
                self.call(thread, named);
            } else if status >> 16 == 0 {
                passed = signal;
            }
            trace(libc::PTRACE_SYSCALL, thread, passed as usize);
        }
    }

    /// A thread is at the beginning or the end of a call.
    fn call(&mut self, thread: pid_t, named: &mut dyn FnMut()) {
        let Some(mut registers) = registers(thread) else { return };
        let number = registers.orig_rax as c_long;
        if self.inside.insert(thread) {
            self.begins(thread, number, &mut registers);
            return;
        }
        self.inside.remove(&thread);
        match self.pending {
            Some((skipped, error)) if skipped == thread => {
                registers.rax = i64::from(-error) as u64;
                set_registers(thread, &registers);
                self.pending = None;
            }
            _ if self.fault.is_none() && NAMING.contains(&number) => named(),
            _ => {}
        }
    }

    /// Returns whether a descriptor is that of a folder. Linux never fails to close one, and Rust's library relies on it.
    fn is_folder(&self, descriptor: u64) -> bool {
        std::fs::metadata(format!("/proc/{}/fd/{descriptor}", self.process)).is_ok_and(|metadata| metadata.is_dir())
    }

    fn begins(&mut self, thread: pid_t, number: c_long, registers: &mut Registers) {
        // The first call of Rust's runtime.
        self.main |= number == libc::SYS_poll;
        let Some((nth, fault)) = self.fault.filter(|_| self.main && self.failed.is_none()) else { return };
        let name = FILE_CALLS.iter().find(|(known, _)| *known == number).map(|(_, name)| *name);
        let on_file = name.is_some() && (number != libc::SYS_mmap || registers.r8 as c_int >= 0);
        let concerned = match fault {
            Fault::Error(_) => on_file && !(number == libc::SYS_close && self.is_folder(registers.rdi)),
            Fault::Short => length(number, registers).is_some_and(|length| *length >= 2),
            Fault::Kill => true,
        };
        if !concerned {
            return;
        }
        self.count += 1;
        if self.count <= nth {
            return;
        }
        self.failed = Some(name.unwrap_or("another call"));
        match fault {
            Fault::Error(error) => {
                registers.orig_rax = u64::MAX;
                self.pending = Some((thread, error));
                set_registers(thread, registers);
            }
            Fault::Short => {
                if let Some(length) = length(number, registers) {
                    *length /= 2;
                }
                set_registers(thread, registers);
            }
            Fault::Kill => kill(self.process),
        }
    }
}

/// Returns the argument that holds the number of bytes (of `readv` and `writev`: of buffers).
fn length(number: c_long, registers: &mut Registers) -> Option<&mut u64> {
    match number {
        libc::SYS_read | libc::SYS_write | libc::SYS_pread64 | libc::SYS_pwrite64 => Some(&mut registers.rdx),
        libc::SYS_readv | libc::SYS_writev => Some(&mut registers.rdx),
        libc::SYS_sendfile => Some(&mut registers.r10),
        libc::SYS_copy_file_range => Some(&mut registers.r8),
        _ => None,
    }
}

fn kill(process: pid_t) {
    // SAFETY: a plain system call. The process is not yet waited for, so its number is not another one's.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// Continues or configures a stopped thread. It may have been killed meanwhile.
fn trace(request: libc::c_uint, thread: pid_t, data: usize) {
    // SAFETY: these requests take no pointer.
    unsafe { libc::ptrace(request, thread, null_mut::<u8>(), without_provenance_mut::<u8>(data)) };
}

/// Returns the registers of a stopped thread; `None` if it was killed.
fn registers(thread: pid_t) -> Option<Registers> {
    // SAFETY: all zeros is a valid value of a structure of integers.
    let mut registers: Registers = unsafe { std::mem::zeroed() };
    // SAFETY: the request writes to `registers`.
    let result = unsafe { libc::ptrace(libc::PTRACE_GETREGS, thread, null_mut::<u8>(), &raw mut registers) };
    (result == 0).then_some(registers)
}

fn set_registers(thread: pid_t, registers: &Registers) {
    // SAFETY: the request reads `registers`. The thread may have been killed.
    unsafe { libc::ptrace(libc::PTRACE_SETREGS, thread, null_mut::<u8>(), &raw const *registers) };
}
