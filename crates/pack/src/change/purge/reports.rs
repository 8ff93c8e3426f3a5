//! Removes the inputs with purged keys from the lists of rejected inputs, which name files and keys.

use super::chosen::Chosen;
use crate::Error;
use crate::place::Place;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

/// Writes the lists again without these inputs. Returns the number of inputs that were removed.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn without<P: Place>(place: &P, chosen: &Chosen) -> Result<u64, Error> {
    let keys: HashSet<&[u8]> = chosen.keys().collect();
    let mut removed = 0;
    for name in place.names(Path::new(""))? {
        let is_list = name.to_str().is_some_and(|name| name.starts_with("rejected-") && name.ends_with(".jsonl"));
        if !is_list {
            continue;
        }
        let Some(list) = place.read(Path::new(&name))? else { continue };
        let lines: Vec<&[u8]> = list.split_inclusive(|byte| *byte == b'\n').collect();
        let kept: Vec<&[u8]> = lines.iter().copied().filter(|line| !names_one(line, &keys)).collect();
        if kept.len() < lines.len() {
            removed += (lines.len() - kept.len()) as u64;
            place.publish(Path::new(&name), &kept.concat())?;
        }
    }
    Ok(removed)
}

/// Returns whether a line names one of the keys: as its input, as the end of the input's path, or in the reason.
fn names_one(line: &[u8], keys: &HashSet<&[u8]>) -> bool {
    let Ok(Value::Object(line)) = serde_json::from_slice(line) else { return false };
    let texts = line.values().filter_map(Value::as_str);
    let mut parts = texts.flat_map(|text| {
        let ends = text.match_indices('/').map(move |(at, _)| &text[at + 1..]);
        let quoted = text.split('`');
        std::iter::once(text).chain(ends).chain(quoted)
    });
    parts.any(|part| keys.contains(part.as_bytes()))
}
