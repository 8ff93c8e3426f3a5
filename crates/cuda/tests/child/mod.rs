//! Runs tests in child processes, whose library path has the stand-in driver.

#[path = "../standin/mod.rs"]
mod standin;

use standin::{Report, driver};
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs the test `name` in a child process under the stand-in driver, with `environment`, and returns the driver's
/// report. In that child, runs `body` and returns `None`. Fails if the child fails or takes more than 120 s.
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
    Some(Report::read(&report))
}
