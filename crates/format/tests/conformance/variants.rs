//! Datasets that differ from a golden one in a few bytes. Most hostile ones do: they are lines of `variants.jsonl` instead of
//! folders, from which the kit's runner makes folders.

use crate::bytes::manifest::TAIL;
use crate::dataset::Files;
use crate::expected::Expected;
use crate::golden::Case;
use crate::golden::columns::kinds;
use crate::golden::tiny::tiny;
use crate::golden::versions::versions;
use crate::golden::virtual_shards::{virtual_files, virtual_tar, virtual_versions};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Folders of each damage, at least, so that there are some to look at. (Other tests use `ImageDecode-jpeg`.)
const FOLDERS: usize = 2;
/// Hex digits of a variant's changes, at most.
const DIGITS: usize = 700;

/// Divides hostile cases into folders and the lines of `variants.jsonl`.
pub(crate) fn divided(cases: Vec<Case>) -> (Vec<Case>, String) {
    let bases = [
        ("tiny", tiny()),
        ("kinds", kinds()),
        ("versions", versions()),
        ("virtual-files", virtual_files()),
        ("virtual-tar", virtual_tar()),
        ("virtual-versions", virtual_versions()),
    ];
    let bases = bases.map(|(name, dataset)| (name, dataset.files(), dataset.expected()));
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    let (mut kept, mut lines) = (vec![], String::new());
    for (name, files, wanted) in cases {
        let count = folders.entry(name.split('-').next().expect("a name").to_owned()).or_default();
        let variant = bases.iter().find_map(|(base, known, expected)| Some((base, changes(known, &files)?, expected)));
        match variant {
            Some((base, changes, expected)) if *count >= FOLDERS && name != "ImageDecode-jpeg" => {
                let (read, verify) = (numbered(expected, &wanted), wanted.verify());
                let line = json!({"name": name, "base": base, "changes": changes, "read": read, "verify": verify});
                lines.push_str(&format!("{line}\n"));
            }
            _ => {
                *count += 1;
                kept.push((name, files, wanted));
            }
        }
    }
    (kept, lines)
}

/// Returns the lines of `read`, those of the base as their numbers.
fn numbered(base: &Expected, wanted: &Expected) -> Vec<Value> {
    let number = |line: &Value| base.read.iter().position(|known| known == line);
    wanted.read.iter().map(|line| number(line).map_or_else(|| line.clone(), |number| json!(number))).collect()
}

/// Returns `[file, offset, bytes removed, inserted bytes in hex]` for each change, from the last one to the first. `None` if
/// they are many, or if files are added. A removed file is `[file]`.
fn changes(base: &Files, files: &Files) -> Option<Vec<Value>> {
    if files.keys().any(|path| !base.contains_key(path)) {
        return None;
    }
    let (mut changes, mut digits) = (vec![], 0);
    for (path, bytes) in base {
        let Some(other) = files.get(path) else {
            changes.push(json!([path]));
            continue;
        };
        for (at, removed, inserted) in differences(bytes, other).into_iter().rev() {
            let hex: String = inserted.iter().map(|byte| format!("{byte:02x}")).collect();
            digits += hex.len() + 8;
            changes.push(json!([path, at, removed, hex]));
        }
    }
    (digits <= DIGITS).then_some(changes)
}

/// Returns offset, length and replacement of each difference.
fn differences(a: &[u8], b: &[u8]) -> Vec<(usize, usize, Vec<u8>)> {
    // A manifest ends in its CRC, which always differs.
    if a.len() != b.len() && a.ends_with(b"\"\n}\n") && b.ends_with(b"\"\n}\n") && a.len().min(b.len()) > TAIL {
        let ((a, a_tail), (b, b_tail)) = (a.split_at(a.len() - TAIL), b.split_at(b.len() - TAIL));
        let tail = differences(a_tail, b_tail).into_iter().map(|(at, removed, bytes)| (a.len() + at, removed, bytes));
        return differences(a, b).into_iter().chain(tail).collect();
    }
    if a.len() != b.len() {
        let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        let same = a[start..].iter().rev().zip(b[start..].iter().rev()).take_while(|(a, b)| a == b).count();
        return vec![(start, a.len() - start - same, b[start..b.len() - same].to_vec())];
    }
    let mut found: Vec<(usize, usize)> = vec![];
    for at in (0..a.len()).filter(|at| a[*at] != b[*at]) {
        match found.last_mut() {
            Some((_, end)) if at < *end + 8 => *end = at + 1,
            _ => found.push((at, at + 1)),
        }
    }
    found.into_iter().map(|(start, end)| (start, end - start, b[start..end].to_vec())).collect()
}
