//! Runs `info --device` and `bench --device` with the stand-in driver and without a driver.

#[path = "../../../cuda/tests/standin/mod.rs"]
mod standin;

use serde_json::Value;
use standin::{Report, driver};
use std::path::Path;
use std::process::{Command, Output};

fn shardtool(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shardtool"));
    command.args(arguments).current_dir(folder).envs(environment.iter().copied());
    for name in ["RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"] {
        command.env_remove(name);
    }
    command.output().unwrap()
}

/// Runs `shardtool` with the stand-in driver; returns the output and the report of the driver.
fn with_driver(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> (Output, Report) {
    let report = folder.join("report.json");
    let mut all = vec![("LD_LIBRARY_PATH", driver().to_str().unwrap()), ("STANDIN_REPORT", report.to_str().unwrap())];
    all.extend(environment);
    let output = shardtool(folder, arguments, &all);
    let report = Report::read(&report);
    (output, report)
}

/// Runs `shardtool` with a file in place of the driver that cannot be loaded, on machines with a driver too.
fn without_driver(folder: &Path, arguments: &[&str]) -> Output {
    std::fs::create_dir_all(folder.join("none")).unwrap();
    std::fs::write(folder.join("none/libcuda.so.1"), "no library").unwrap();
    shardtool(folder, arguments, &[("LD_LIBRARY_PATH", folder.join("none").to_str().unwrap())])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn demo() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    crate::demo::copy_into(folder.path());
    folder
}

#[test]
fn info_lists_devices() {
    let folder = tempfile::tempdir().unwrap();
    let (output, report) = with_driver(folder.path(), &["info", "--device"], &[("STANDIN_DEVICES", "2")]);
    assert_eq!(output.status.code(), Some(0));
    let shown = text(&output.stdout);
    assert!(shown.starts_with("CUDA 12.2\ncuda:0 ") && shown.contains("\ncuda:1 "), "{shown}");
    assert!(shown.contains("compute 9.0, 1.1 GB"), "{shown}");
    report.assert_clean();

    let (output, _) = with_driver(folder.path(), &["info", "--device", "--json"], &[]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&document["usable"], &document["reason"]), (&true.into(), &Value::Null));
    assert_eq!(document["probe"]["devices"][0]["total_bytes"], 1 << 30);

    let (output, _) = with_driver(folder.path(), &["info", "--device"], &[("STANDIN_BUSY", "1")]);
    assert!(text(&output.stdout).contains("another process has it for its exclusive use"), "{}", text(&output.stdout));
}

#[test]
fn info_without_a_driver_reports_it_and_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let output = without_driver(folder.path(), &["info", "--device"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).starts_with("no CUDA driver: "), "{}", text(&output.stdout));
    let output = without_driver(folder.path(), &["info", "--device", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["usable"], false);
    assert!(document["reason"].as_str().unwrap().starts_with("no CUDA driver"));
    // Exactly one of a dataset and --device.
    for arguments in [&["info"] as &[&str], &["info", "demo", "--device"]] {
        assert_eq!(without_driver(folder.path(), arguments).status.code(), Some(2));
    }
}

#[test]
fn bench_without_the_device_reports_the_reason_and_the_remedy() {
    let folder = demo();
    let bench = ["bench", "demo/dataset", "--device", "cuda"];
    let output = without_driver(folder.path(), &bench);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.starts_with("error: no CUDA driver: ") && message.contains("shardtool info --device"), "{message}");
    assert!(output.stdout.is_empty());

    for (device, environment, expected) in [
        ("cuda:3", ("STANDIN_DEVICES", "2"), "no device cuda:3: there are 2"),
        ("cuda:0", ("STANDIN_VERSION", "11080"), "install driver 525 or newer"),
        ("cuda:0", ("STANDIN_BUSY", "1"), "cuda:0 cannot be used"),
        ("cuda:+1", ("STANDIN_DEVICES", "2"), "names no device"),
        ("gpu", ("STANDIN_DEVICES", "2"), "names no device"),
    ] {
        let output = shardtool(
            folder.path(),
            &["bench", "demo/dataset", "--device", device],
            &[("LD_LIBRARY_PATH", driver().to_str().unwrap()), environment],
        );
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(expected), "{device}: {}", text(&output.stderr));
    }
}

#[test]
fn bench_counts_uploaded_bytes_and_memory() {
    let folder = demo();
    for (dtype, layout, bytes) in [("float32", "NHWC", 4), ("float16", "NCHW", 2), ("bfloat16", "nchw", 2)] {
        let arguments = [
            &["bench", "demo/dataset", "--device", "cuda:0", "--dtype", dtype, "--layout", layout] as &[&str],
            &["--size", "32", "--batch", "16", "--epochs", "2", "--order", "sequential", "--json"],
        ]
        .concat();
        let (output, report) = with_driver(folder.path(), &arguments, &[]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let samples = document["samples"].as_u64().unwrap();
        let batches = 2 * (samples / 2).div_ceil(16);
        let device = &document["device"];
        assert_eq!((&device["dtype"], &device["layout"]), (&dtype.into(), &layout.to_uppercase().into()));
        assert_eq!(device["uploaded_bytes"], batches * 16 * 32 * 32 * 3);
        // At least two staging buffers of u8 and one batch of the output type.
        let (pixels, peak) = (16 * 32 * 32 * 3, report.number("device_peak"));
        assert!(peak >= 2 * pixels + bytes * pixels && device["most_device_bytes"] == peak, "{peak} {device}");
        assert!(device["most_pinned_bytes"].as_i64().unwrap() >= 2 * pixels);
        assert_eq!(document["stats"]["stages"].as_array().unwrap().len(), 8);
        report.assert_clean();
    }
    let arguments = ["bench", "demo/dataset", "--device", "cuda", "--size", "32", "--batch", "16", "--epochs", "1"];
    let (output, _) = with_driver(folder.path(), &arguments, &[]);
    let shown = text(&output.stdout);
    assert!(shown.contains("\ncuda:0 as float16 NCHW: ") && shown.contains("\n  decode "), "{shown}");

    // If no batch fits the limit, the message shows the sum.
    let (output, report) =
        with_driver(folder.path(), &[&arguments[..], &["--device-memory-limit", "64KiB"]].concat(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("of a limit of 65536"), "{}", text(&output.stderr));
    report.assert_clean();
}
