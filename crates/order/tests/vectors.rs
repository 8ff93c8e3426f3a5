//! The vectors in `fixtures/vectors/order/` equal the results of this code, of a Python implementation of the
//! specification, and the vectors printed in the specification.

#[path = "../examples/vectors/cases.rs"]
mod cases;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn folder() -> PathBuf {
    root().join("fixtures/vectors/order")
}

fn parse(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn code_computes_the_committed_vectors() {
    for (name, text) in cases::files() {
        let stored = std::fs::read_to_string(folder().join(name)).expect("the file of vectors");
        let (stored, computed) = (parse(&stored), parse(&text));
        assert_eq!(stored.len(), computed.len(), "{name}");
        for (i, (stored, computed)) in stored.iter().zip(&computed).enumerate() {
            assert_eq!(stored, computed, "{name}, line {}", i + 1);
        }
    }
}

#[test]
fn independent_implementation_computes_the_same_vectors() {
    let Ok(out) = Command::new("python3").arg(folder().join("check.py")).output() else {
        println!("skipped: no python3");
        return;
    };
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
}

#[test]
fn vectors_printed_in_the_specification_are_committed() {
    let stored: Vec<Value> = cases::files()
        .iter()
        .flat_map(|(name, _)| parse(&std::fs::read_to_string(folder().join(name)).expect("the file of vectors")))
        .collect();
    let spec = std::fs::read_to_string(root().join("order-spec.md")).expect("order-spec.md");
    let printed =
        spec.split("```json vectors\n").skip(1).flat_map(|part| parse(part.split("```").next().unwrap_or("")));
    let mut count = 0;
    for vector in printed {
        assert!(stored.contains(&vector), "not among the vectors: {vector}");
        count += 1;
    }
    assert!(count >= 10, "the specification prints {count} vectors");
}
