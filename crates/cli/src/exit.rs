//! Exit statuses, and how the error of a command is printed.

use crate::output;
use shardtool_format::Chain;
use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command ran and found nothing wrong: status 0.
    Success,
    /// The command ran and found damage or rejected inputs: status 1.
    Finding,
    /// The command could not run: status 2.
    CouldNotRun,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Success => ExitCode::SUCCESS,
            Exit::Finding => ExitCode::from(1),
            Exit::CouldNotRun => ExitCode::from(2),
        }
    }
}

/// Returns the exit status of a command. If it failed, prints its error as `error: …` on standard error.
pub(crate) fn finish(result: anyhow::Result<Exit>) -> ExitCode {
    match result {
        Ok(exit) => exit.into(),
        Err(error) => {
            print_error(error.as_ref());
            Exit::CouldNotRun.into()
        }
    }
}

/// Prints an error and its sources in one line on standard error.
pub(crate) fn print_error(error: &(dyn std::error::Error + 'static)) {
    output::message(format_args!("error: {}", Chain(error)));
}
