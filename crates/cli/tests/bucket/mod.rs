//! An S3 server with the empty bucket `bucket`, on the folder `s3` of a temporary folder, and commands that run in that folder
//! and reach the server.
#![allow(dead_code, reason = "each suite uses a part")]

use shardtool_store_server::{Options, Server};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

pub(crate) struct Bucket {
    folder: TempDir,
    pub(crate) server: Server,
    anonymous: bool,
}

impl Bucket {
    pub(crate) fn new(options: Options) -> Self {
        // On a disk: the cache needs a file system with holes, and room.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::create_dir_all(folder.path().join("s3/bucket")).unwrap();
        let anonymous = options.anonymous;
        let server = Server::start(&folder.path().join("s3"), options).unwrap();
        Bucket { folder, server, anonymous }
    }

    /// Returns a path in the temporary folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a program with the environment that leads to the server.
    pub(crate) fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("HOME", self.folder.path());
        for name in ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CA_BUNDLE"] {
            command.env_remove(name);
        }
        command.envs(self.server.environment());
        if self.anonymous {
            command.env("AWS_SKIP_SIGNATURE", "true");
        }
        command
    }

    /// Returns `shardtool` with arguments.
    pub(crate) fn shardtool<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_shardtool"));
        command.args(arguments);
        command
    }

    /// Runs `shardtool`.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.shardtool(arguments.iter().copied()).output().unwrap()
    }

    /// Runs a command that must succeed, and returns what it prints.
    pub(crate) fn good(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output));
        text(&output)
    }

    /// Runs a command that must fail with status 2 and one message.
    pub(crate) fn refused(&self, arguments: &[&str], message: &str) {
        self.refused_with(arguments, &[], message);
    }

    /// As [`Bucket::refused`], with more environment variables.
    pub(crate) fn refused_with(&self, arguments: &[&str], environment: &[(&str, &str)], message: &str) {
        let mut command = self.shardtool(arguments.iter().copied());
        let output = command.envs(environment.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains(message), "{arguments:?}: {}", text(&output));
    }
}

/// Returns how many sequences of faults a test tries; `scripts/campaign stores` tries more.
pub(crate) fn seeds() -> u64 {
    std::env::var("SHARDTOOL_NETWORK_SEEDS").map_or(1, |count| count.parse().unwrap())
}

/// Returns what a command printed.
pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Returns every file below a folder, also hidden ones, by its path in it.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let (path, name) = (entry.as_ref().unwrap().path(), entry.unwrap().file_name().into_string().unwrap());
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(inside, bytes)| (format!("{name}/{inside}"), bytes)));
        } else {
            found.insert(name, fs::read(path).unwrap());
        }
    }
    found
}

/// Asserts that two folders have the same files, and some, of those whose names are `compared`.
pub(crate) fn same_files(a: &Path, b: &Path, compared: impl Fn(&str) -> bool) {
    let [a, b] = [a, b].map(files).map(|mut files| {
        files.retain(|name, _| compared(name));
        files
    });
    assert!(!a.is_empty() && a.keys().eq(b.keys()), "{:?}\n{:?}", a.keys(), b.keys());
    let different: Vec<_> = a.iter().filter(|(name, bytes)| b[*name] != **bytes).map(|(name, _)| name).collect();
    assert!(different.is_empty(), "{different:?}");
}
