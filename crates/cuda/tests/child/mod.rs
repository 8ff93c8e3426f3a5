//! Runs tests in child processes that find the stand-in driver where the real one would be.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What the stand-in reported at the child's end.
pub(crate) struct Report(pub(crate) Value);

impl Report {
    pub(crate) fn number(&self, name: &str) -> i64 {
        self.0[name].as_i64().unwrap_or_else(|| panic!("{name} in {}", self.0))
    }

    /// Nothing that a real device would punish, and nothing left behind.
    pub(crate) fn assert_clean(&self) {
        assert_eq!(self.number("violations"), 0, "{}", self.0);
        for left in ["device_memory", "pinned_memory", "events", "streams", "modules", "contexts"] {
            assert_eq!(self.number(left), 0, "{left} left behind: {}", self.0);
        }
    }
}

/// The folder with the stand-in `libcuda.so.1`, built once a process.
fn driver() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("standin-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/standin/cuda.c");
        let made = Command::new(std::env::var_os("CC").unwrap_or("cc".into()))
            .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
            .arg(folder.join("libcuda.so.1"))
            .arg(source)
            .args(["-lpthread", "-lm"])
            .status()
            .expect("a C compiler, as `cc` or in CC");
        assert!(made.success());
        folder
    })
}

/// In the child that runs the test `name`: does `body`, and returns `None`. Otherwise runs that child under the stand-in, with the
/// environment given, and returns its report; fails when the child does, or when it hangs.
pub(crate) fn with_standin(name: &str, environment: &[(&str, &str)], body: impl FnOnce()) -> Option<Report> {
    if std::env::var_os("STANDIN_REPORT").is_some() {
        body();
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env("LD_LIBRARY_PATH", driver())
        .env("STANDIN_REPORT", &report)
        .envs(environment.iter().copied())
        .spawn()
        .unwrap();
    let end = Instant::now() + Duration::from_secs(120);
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() > end => {
                child.kill().unwrap();
                panic!("{name} hangs with {environment:?}");
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    assert!(status.success(), "{name} with {environment:?}: {status}");
    Some(Report(serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap()))
}
