//! Python's classes of options and the reference page are made from the definitions in Rust.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

#[test]
fn generated_files_are_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut script = Command::new("python3")
        .arg(root.join("scripts/options"))
        .arg("--check")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    script.stdin.take().unwrap().write_all(shardtool_load::option_schemas().to_string().as_bytes()).unwrap();
    let found = script.wait_with_output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stdout));
}
