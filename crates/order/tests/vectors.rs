//! The vectors in `fixtures/vectors/order/` are what this code computes, what the Python reading of the specification
//! computes, and what the specification prints.

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
fn code_and_files_agree() {
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
fn an_independent_reading_of_the_specification_agrees() {
    let Ok(out) = Command::new("python3").arg(folder().join("check.py")).output() else {
        println!("skipped: no python3");
        return;
    };
    assert!(out.status.success(), "{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
}

#[test]
fn the_specification_prints_vectors_of_the_files() {
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
