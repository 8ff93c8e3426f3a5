//! The command line in the wheel.

use pyo3::prelude::*;
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the command line, and returns its exit status.
#[pyfunction]
pub(crate) fn run(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    let status = py.detach(|| shardtool_cli::run(arguments.into_iter()));
    // `ExitCode` has no method that returns its number, but can be compared.
    (0..=u8::MAX).find(|n| ExitCode::from(*n) == status).unwrap_or(u8::MAX)
}
