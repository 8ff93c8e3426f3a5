//! A dataset of files that stay where they are makes no command open what its user did not mean: the system reports every opening of a
//! file (inotify), and servers every connection.

use crate::corpus::{limited, put, status, text};
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use shardtool_format::manifest::Manifest;
use std::fs;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// What nobody may open: the same images as those of the dataset, so that a command that opens them succeeds.
struct Secret {
    folder: PathBuf,
    events: OwnedFd,
    /// A service inside the network, with IPv4 and IPv6.
    servers: Vec<TcpListener>,
}

impl Secret {
    fn new(folder: &Path) -> Self {
        let events = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
        photos(folder);
        for folder in [folder.to_owned(), folder.join("cat"), folder.join("dog")] {
            let watched = WatchFlags::OPEN | WatchFlags::ACCESS | WatchFlags::MODIFY | WatchFlags::CREATE;
            add_watch(&events, &folder, watched).unwrap();
        }
        let servers = ["127.0.0.1:0", "[::1]:0"].into_iter().filter_map(|address| TcpListener::bind(address).ok());
        let servers: Vec<_> = servers.inspect(|server| server.set_nonblocking(true).unwrap()).collect();
        Secret { folder: folder.to_owned(), events, servers }
    }

    /// Returns the URLs of the servers.
    fn urls(&self) -> Vec<String> {
        self.servers.iter().map(|server| format!("http://{}", server.local_addr().unwrap())).collect()
    }

    /// Returns what was opened or asked for.
    fn noticed(&self) -> Vec<String> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.events, &mut buffer);
        let mut found = vec![];
        while let Ok(event) = reader.next() {
            found.push(format!("{:?} {:?}", event.events(), event.file_name()));
        }
        found.extend(self.servers.iter().filter_map(|server| server.accept().ok()).map(|(_, peer)| peer.to_string()));
        found
    }
}

fn photos(folder: &Path) {
    let image = |name: &str| fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sources").join(name));
    for (at, name) in [("cat/0.jpg", "colour.jpg"), ("cat/1.jpg", "grey.jpg"), ("dog/0.jpg", "progressive-turned.jpg")]
    {
        put(&folder.join(at), &image(name).unwrap());
    }
}

/// Lets all shards of a dataset have their files in another folder.
fn lead(set: &Path, manifest: &Manifest, source: &str) {
    let mut manifest = manifest.clone();
    for shard in &mut manifest.splits[0].shards {
        shard.foreign.source = Some(source.to_owned());
    }
    put(&set.join("dataset.json"), manifest.to_json().as_bytes());
}

/// Runs each command that reads records; none succeeds, takes long, or says less than what is missing.
fn refused(set: &Path, out: &Path, word: &str) {
    let out = text(out);
    for arguments in [
        &["verify", text(set)][..],
        &["show", text(set), "0"],
        &["extract", text(set), out],
        &["export", text(set), out, "--to", "tfrecord"],
        &["export", text(set), out, "--to", "folder"],
        &["export", text(set), out, "--to", "webdataset"],
        &["reshard", text(set), out],
        &["diff", text(set), text(set)],
        &["bench", text(set), "--work", "read", "--batch", "1", "--epochs", "1"],
        &["bench", text(set), "--work", "train", "--batch", "1", "--epochs", "1", "--order", "shuffled"],
        &["report", text(set), "--out", out],
        &["compact", text(set)],
    ] {
        let _ = fs::remove_dir_all(out);
        let output = limited(1024, arguments);
        let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{arguments:?} {:?}: {printed}", output.status);
        assert!(printed.contains(word), "{arguments:?}: {printed}");
    }
    // What needs no record is shown; nothing is opened for it.
    for arguments in [&["info", text(set)][..], &["ls", text(set)]] {
        assert!(limited(1024, arguments).status.code().is_some(), "{arguments:?}");
    }
}

#[test]
fn a_manifest_that_leads_elsewhere_opens_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    photos(&at("photos"));
    let secret = Secret::new(&at("secret"));
    let (code, errors) = status(&["index", text(&at("photos")), "--out", text(&at("set"))]);
    assert_eq!(code, Some(0), "{errors}");
    let manifest = Manifest::parse(&fs::read(at("set/dataset.json")).unwrap()).unwrap();
    // The watch works: with the user's word, the same files are read.
    lead(&at("set"), &manifest, text(&secret.folder));
    let (code, errors) = status(&["verify", text(&at("set")), "--source", text(&secret.folder)]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(!secret.noticed().is_empty());
    let more = ["https://169.254.169.254/latest", "s3://other/photos", "gs://other/photos", "hf://datasets/a/b/photos"];
    let dev = ["/dev", "/proc/self", "/etc"].map(str::to_owned);
    let own = text(&secret.folder).to_owned();
    for source in [own].into_iter().chain(secret.urls()).chain(more.map(str::to_owned)).chain(dev) {
        lead(&at("set"), &manifest, &source);
        refused(&at("set"), &at("out"), "--source");
        assert_eq!(secret.noticed(), [""; 0], "{source}");
        assert!(!at("out").join("dataset.json").exists(), "{source}");
    }
    // Names that a manifest cannot have.
    for source in ["../secret", "photos/../../secret", "http://user:password@127.0.0.1/x", "http://127.0.0.1/x?token=1"]
    {
        lead(&at("set"), &manifest, source);
        refused(&at("set"), &at("out"), "the manifest's source");
        assert_eq!(secret.noticed(), [""; 0], "{source}");
    }
}

#[test]
fn files_that_become_links_pipes_or_devices_open_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    photos(&at("photos"));
    let secret = Secret::new(&at("secret"));
    let (code, errors) = status(&["index", text(&at("photos"))]);
    assert_eq!(code, Some(0), "{errors}");
    for class in ["photos/cat", "photos/dog"] {
        fs::remove_dir_all(at(class)).unwrap();
        symlink(secret.folder.join(class.trim_start_matches("photos/")), at(class)).unwrap();
    }
    refused(&at("photos"), &at("out"), "--source");
    assert_eq!(secret.noticed(), [""; 0], "folders that became links");
    for class in ["photos/cat", "photos/dog"] {
        fs::remove_file(at(class)).unwrap();
    }
    photos(&at("photos"));
    let file = at("photos/cat/0.jpg");
    let made: [(&str, &dyn Fn()); 4] = [
        ("a link", &|| symlink(secret.folder.join("cat/0.jpg"), &file).unwrap()),
        ("a link over links", &|| {
            symlink(&secret.folder, at("photos/.way")).unwrap();
            symlink("../.way/cat/0.jpg", &file).unwrap();
        }),
        ("a FIFO, which would wait for ever", &|| {
            let mode = rustix::fs::Mode::RWXU;
            rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }),
        ("a device, which never ends", &|| symlink("/dev/zero", &file).unwrap()),
    ];
    for (what, make) in made {
        fs::remove_file(&file).unwrap();
        photos(&at("photos"));
        let (code, errors) = status(&["index", text(&at("photos"))]);
        assert_eq!(code, Some(0), "{errors}");
        fs::remove_file(&file).unwrap();
        make();
        for arguments in [
            &["verify", text(&at("photos"))][..],
            &["extract", text(&at("photos")), text(&at("out"))],
            &["bench", text(&at("photos")), "--work", "train", "--batch", "1", "--epochs", "1"],
            &["index", text(&at("photos"))],
            &["pack", text(&at("photos")), text(&at("packed")), "--jobs", "1"],
        ] {
            // These read the folder as a source, and follow the links in it, as their user wants. `index` then rejects them.
            if ["index", "pack"].contains(&arguments[0]) && what.starts_with("a link") {
                continue;
            }
            let output = limited(1024, arguments);
            assert!(matches!(output.status.code(), Some(1 | 2)), "{what} {arguments:?}: {:?}", output.status);
            let _ = fs::remove_dir_all(at("out"));
        }
        assert_eq!(secret.noticed(), [""; 0], "{what}");
    }
}
