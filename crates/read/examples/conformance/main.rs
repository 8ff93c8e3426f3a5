//! Runs the project's crates as the conformance kit asks (`fixtures/conformance/README.md`).
//!
//! ```sh
//! fixtures/conformance/run --decoder zstd --decoder jpeg -- target/debug/examples/conformance
//! ```

mod jpeg;
mod order;
mod read;
mod verify;

use serde_json::{Value, json};
use shardtool_format::checksum::crc32c;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::ExitCode;

/// The exit status for a task that is not implemented.
const NOT_IMPLEMENTED: u8 = 3;

/// Returns the lines of a task; `None` for an unknown task.
fn lines(task: &str, path: &Path) -> Option<Vec<Value>> {
    Some(match task {
        "read" => read::lines(path),
        "verify" => verify::lines(path),
        "order" => order::lines(path),
        "entries" => jpeg::entries(path),
        "rows" => jpeg::rows(path),
        _ => return None,
    })
}

/// Prints the lines of a task and returns the exit status.
fn run(task: &str, path: &Path, out: &mut impl Write) -> std::io::Result<u8> {
    let Some(lines) = lines(task, path) else { return Ok(NOT_IMPLEMENTED) };
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(0)
}

fn main() -> std::io::Result<ExitCode> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["all"] => {
            for request in std::io::stdin().lock().lines() {
                let request = request?;
                let (task, path) = request.split_once(' ').unwrap_or((&request, ""));
                let status = run(task, path.as_ref(), &mut out)?;
                writeln!(out, "{}", json!({"end": status}))?;
                out.flush()?;
            }
            Ok(ExitCode::SUCCESS)
        }
        [task, path] => run(task, path.as_ref(), &mut out).map(ExitCode::from),
        _ => {
            eprintln!("usage: conformance TASK PATH, or conformance all");
            Ok(ExitCode::from(2))
        }
    }
}

/// Returns `CRC:LENGTH`, the form of bytes in results.
fn sum(bytes: &[u8]) -> String {
    format!("{:08x}:{}", crc32c(bytes), bytes.len())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
