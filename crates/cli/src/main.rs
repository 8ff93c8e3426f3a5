//! The binary: calls the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A write beyond RLIMIT_FSIZE then fails with EFBIG and becomes an error message; the default kills the process.
    // SAFETY: `SIG_IGN` installs no handler, and `main` has not started any other thread yet.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    // A panic of a third-party decoder is reported as an error that names the image, not on standard error.
    shardtool_decode::silence_decoder_panics();
    shardtool_cli::run(std::env::args_os())
}
