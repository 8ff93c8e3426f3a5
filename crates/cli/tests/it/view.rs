//! `shardtool view` and `shardtool report` as a user runs them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn shardtool(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_shardtool")).args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn view(folder: &Path, arguments: &[&str]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_shardtool"))
        .arg("view")
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    (child, url.trim().to_owned())
}

fn get(url: &str) -> String {
    let address = url.trim_start_matches("http://").split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /train HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn ctrl_c_ends_the_server_with_0() {
    let folder = tempfile::tempdir().unwrap();
    crate::demo::copy_into(folder.path());
    for signal in ["-INT", "-TERM"] {
        let (mut child, url) = view(folder.path(), &["demo/dataset", "--port", "0"]);
        assert!(url.starts_with("http://127.0.0.1:"), "{url}");
        let page = get(&url);
        assert!(page.starts_with("HTTP/1.1 200 OK") && page.contains("badger"), "{page}");
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
    }
}

#[test]
fn what_cannot_be_served_is_an_error_that_says_why() {
    let folder = tempfile::tempdir().unwrap();
    crate::demo::copy_into(folder.path());
    let (status, _, message) = shardtool(folder.path(), &["view", "nothing"]);
    assert!(status == 2 && message.contains("nothing"), "{message}");
    let (status, _, message) = shardtool(folder.path(), &["view", "demo/dataset", "--split", "other"]);
    assert!(status == 2 && message.contains("other") && message.contains("train"), "{message}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (status, _, message) = shardtool(folder.path(), &["view", "demo/dataset", "--port", &port]);
    assert!(status == 2 && message.contains(&format!("cannot listen on 127.0.0.1, port {port}")), "{message}");
}

#[test]
fn a_report_is_one_file_that_loads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    crate::demo::copy_into(folder.path());
    let run = |arguments: &[&str]| shardtool(folder.path(), &[&["report"], arguments].concat());
    let (status, _, message) = run(&["demo/dataset", "--out", "report.html", "--verify"]);
    assert_eq!(status, 0, "{message}");
    let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert_eq!(html.matches("src=\"data:image/jpeg;base64,").count(), 36);
    assert!(html.contains("No damage found in 360 records"), "{html}");
    for loaded in ["href=\"/", "src=\"/", "<script", "url("] {
        assert!(!html.contains(loaded), "{loaded}");
    }
    let (status, _, message) = run(&["demo/dataset", "--out", "report.html"]);
    assert!(status == 2 && message.contains("--force"), "{message}");
    assert_eq!(run(&["demo/dataset", "--out", "report.html", "--force"]).0, 0);

    let (status, html, _) = run(&["demo/damaged", "--verify"]);
    assert!(status == 1 && html.contains("DataCrc") && html.contains("shardtool repair"), "{html}");
    let (status, card, _) = run(&["demo/dataset", "--markdown"]);
    assert_eq!(status, 0);
    for line in ["| train | 360 | 4 |", "6 classes: badger 60, heron 60", "| `image/class/label` | int64 | 0 % |"] {
        assert!(card.contains(line), "{line}: {card}");
    }
}
