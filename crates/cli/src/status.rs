//! Exit statuses, and errors as a person reads them.

use std::io::ErrorKind;
use std::process::ExitCode;

/// How a command ended, when it could run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Nothing to complain about.
    Good,
    /// It ran, and found something: damage, rejected inputs.
    Finding,
    /// It could not run.
    CouldNotRun,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        match status {
            Status::Good => ExitCode::SUCCESS,
            Status::Finding => ExitCode::from(1),
            Status::CouldNotRun => ExitCode::from(2),
        }
    }
}

/// The exit status of a command; prints its error, if it ended in one, as `error: …` on standard error.
pub(crate) fn finish(result: anyhow::Result<Status>) -> ExitCode {
    match result {
        Ok(status) => status.into(),
        // Whoever read our output has seen enough: `shardtool ls | head` is not an error.
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let mut message = error.to_string();
            for cause in error.chain().skip(1).map(ToString::to_string) {
                // Our crates' messages end with their cause already.
                if !message.contains(&cause) {
                    message = format!("{message}: {cause}");
                }
            }
            eprintln!("error: {message}");
            Status::CouldNotRun.into()
        }
    }
}

fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}
