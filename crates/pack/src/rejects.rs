//! The list of rejected inputs: one JSON object per line, with the reason.

use crate::{Error, Rejection};
use shardtool_format::Chain;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

/// Formats rejections as JSON lines: `{"input": …, "reason": …}`.
pub(crate) fn to_json_lines(rejections: &[Rejection]) -> Vec<u8> {
    let mut out = vec![];
    for Rejection { input, reason } in rejections {
        let text = |text: &str| serde_json::Value::from(text);
        writeln!(out, "{{\"input\": {}, \"reason\": {}}}", text(input), text(&Chain(reason).to_string()))
            .expect("into a Vec");
    }
    out
}

/// Returns the number of rejections in a file; 0 if it does not exist.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn count(file: &Path) -> Result<u64, Error> {
    match File::open(file) {
        Ok(file) => Ok(BufReader::new(file).split(b'\n').count() as u64),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(e) => Err(Error::io("read", file)(e)),
    }
}
