//! The binary: everything it does is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Past RLIMIT_FSIZE a write then fails with EFBIG, which becomes an error message, instead of killing the process.
    // SAFETY: setting a signal's disposition to "ignore" runs no code of ours, and no other thread runs yet.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    // The error that names the image is enough.
    shardtool_decode::silence_decoder_panics();
    shardtool_cli::run(std::env::args_os())
}
