//! The list of rejected inputs: one JSON object per line, with the reason.

use crate::place::Place;
use crate::{Error, Rejection};
use shardtool_format::Chain;
use std::io::Write;
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

/// Returns input and reason of the first rejection in lines of JSON.
pub(crate) fn first(json: &[u8]) -> Option<(String, String)> {
    let value: serde_json::Value = serde_json::from_slice(json.split(|byte| *byte == b'\n').next()?).ok()?;
    let text = |name| value.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
    Some((text("input")?, text("reason")?))
}

/// Returns the number of rejections in lines of JSON.
pub(crate) fn lines(json: &[u8]) -> u64 {
    json.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Returns the number of rejections in a file of a dataset; 0 if it does not exist.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn count<P: Place>(place: &P, relative: &Path) -> Result<u64, Error> {
    let (mut count, mut ended) = (0, true);
    place.read_parts(relative, &mut |part| {
        count += lines(part);
        ended = part.last().map_or(ended, |byte| *byte == b'\n');
    })?;
    Ok(count + u64::from(!ended))
}
