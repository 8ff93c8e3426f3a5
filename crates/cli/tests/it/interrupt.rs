//! Ctrl-C (SIGINT) and SIGTERM: what commands say, how they exit, and that the same command then completes.

use crate::made;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn shardtool(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shardtool"));
    command.args(arguments.split_whitespace()).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn document(folder: &Path, arguments: &str) -> Value {
    let output = shardtool(folder, arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn send(signal: &str, child: &Child) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
}

/// Waits until a file exists. Panics if the process ends before.
fn wait_for(file: &Path, child: &mut Child) {
    let since = Instant::now();
    while !file.exists() {
        assert!(child.try_wait().unwrap().is_none(), "ended before {} existed", file.display());
        assert!(since.elapsed() < Duration::from_secs(60), "no {}", file.display());
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn an_interrupted_pack_leaves_nothing_unfinished_and_the_same_command_continues() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    made::photos(folder, 2, 100, (640, 480));
    let options = "--shards 50 --jobs 1 --resize-shorter 240 --json";
    let expected = document(folder, &format!("pack photos expected {options}"));
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let name = format!("set{signal}");
        let command = format!("pack photos {name} {options}");
        let mut child = shardtool(folder, &command).spawn().unwrap();
        wait_for(&folder.join(&name).join("train-00002.tfrecord"), &mut child);
        send(signal, &child);
        let Output { status: ended, stdout, stderr } = child.wait_with_output().unwrap();
        let message = String::from_utf8(stderr).unwrap();
        assert_eq!(ended.code(), Some(status), "{message}");
        assert_eq!(
            message.lines().last(),
            Some("interrupted: finished shards are kept; the same command continues after them")
        );
        assert_eq!(String::from_utf8(stdout).unwrap(), "", "no result is printed");
        let cleaned = document(folder, &format!("clean {name} --json"));
        assert_eq!(cleaned["removed"], Value::Array(vec![]), "an unfinished file was left");

        let packed = document(folder, &command);
        // The third shard was in place when the signal was sent; its index may have come after it.
        assert!(packed["resumed_shards"].as_u64().unwrap() >= 2, "{packed}");
        assert_eq!(packed["fingerprint"], expected["fingerprint"]);
        document(folder, &format!("verify {name} --json"));
    }
}

/// A command may end before the signal arrives, or receive it before it has begun.
#[test]
fn other_commands_complete_after_an_interruption() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    made::photos(folder, 2, 60, (320, 240));
    document(folder, "pack photos set --shards 20 --json");
    std::fs::create_dir(folder.join("bare")).unwrap();
    for shard in 0..20 {
        let name = format!("train-{shard:05}.tfrecord");
        std::fs::copy(folder.join("set").join(&name), folder.join("bare").join(&name)).unwrap();
    }
    let index = (0..20).map(|shard| format!("bare/train-{shard:05}.tfrecord ")).collect::<String>();
    for (command, message) in [
        ("export set tars --to webdataset --jobs 1".to_owned(), "no file is in OUT; the same command starts again"),
        ("export set files --to folder --jobs 1".to_owned(), "no file is in OUT; the same command starts again"),
        ("extract set images".to_owned(), "no image is in OUT; the same command starts again"),
        ("reshard set resharded --shards 40 --jobs 1".to_owned(), "the sources are unchanged"),
        ("copy set copied --jobs 1".to_owned(), "copied shards are kept; the same command continues"),
        (format!("index {index} --jobs 1"), "the files are unchanged; the same command starts again"),
        ("verify set --decode --jobs 1".to_owned(), "nothing was written; the same command starts again"),
    ] {
        let mut interrupted = 0;
        for delay in [4, 8, 12, 16, 24, 32, 48, 64] {
            let child = shardtool(folder, &command).spawn().unwrap();
            std::thread::sleep(Duration::from_millis(delay));
            send("-INT", &child);
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            match output.status.code() {
                Some(130) => {
                    assert!(said.contains(message), "{command}: {said}");
                    interrupted += 1;
                }
                Some(0) => break,
                // The handlers were not installed yet.
                None => assert_eq!(said, "", "{command}"),
                Some(_) => panic!("{command}: {said}"),
            }
        }
        println!("{command}: {interrupted} interrupted");
        document(folder, &format!("{command} --json"));
    }
    for dataset in ["resharded", "copied", "bare"] {
        assert_eq!(document(folder, &format!("verify {dataset} --json"))["good_records"], 120);
    }
}
