//! The folder that `shardtool demo --keep demo` makes: generated once, copied for each test.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

/// Copies the demo's photographs and datasets into the new folder `folder/demo`.
pub(crate) fn copy_into(folder: &Path) {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let made = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_shardtool"));
        let output = command.args(["demo", "--keep"]).arg(made.path().join("demo")).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        made
    });
    let copied = Command::new("cp").arg("-r").arg(made.path().join("demo")).arg(folder).status();
    assert!(copied.is_ok_and(|status| status.success()), "{}", folder.display());
}
