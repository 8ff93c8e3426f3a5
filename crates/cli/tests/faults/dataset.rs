//! A dataset that is changed, in a folder or in a store, and its versions.

use crate::bucket::Bucket;
use crate::commands::{set, shardtool};
use crate::tree::copy;
use serde_json::Value;
use shardtool_store_server::Options;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const BUCKET: &str = "s3://bucket";

/// The contents of a version, or the message of the command that cannot read it.
pub(crate) type Contents = Result<String, String>;

/// Whether the dataset that is changed has its own shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shards {
    Own,
    /// It is a clone of another dataset.
    Cloned,
}

/// A folder of inputs and, there or in a store, the dataset `set`, and a clone of it, `mine`.
pub(crate) struct Place {
    folder: PathBuf,
    bucket: Option<Bucket>,
}

impl Place {
    pub(crate) fn in_folder(folder: &Path) -> Self {
        Place { folder: folder.to_owned(), bucket: None }
    }

    /// Starts a server, whose bucket has the dataset.
    pub(crate) fn in_store() -> Self {
        let bucket = Bucket::new(Options::default());
        Place { folder: bucket.path(""), bucket: Some(bucket) }
    }

    /// Returns the folder in which commands run.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder of the files of the dataset; in a store, with what the server remembers of them.
    pub(crate) fn files(&self) -> PathBuf {
        self.folder.join(if self.is_store() { "s3" } else { "set" })
    }

    /// Keeps the files of the dataset, for [`Place::restore`].
    pub(crate) fn keep(&self) {
        copy(&self.files(), &self.folder.join("template")).unwrap();
    }

    /// Makes the files of the dataset those that were kept, and removes a clone. No command runs.
    pub(crate) fn restore(&self) {
        if let Some(bucket) = &self.bucket {
            bucket.server.release().unwrap();
        }
        copy(&self.folder.join("template"), &self.files()).unwrap();
        let clone = self.folder.join("mine");
        if clone.exists() {
            fs::remove_dir_all(clone).unwrap();
        }
    }

    /// Waits until requests of killed commands are carried out.
    pub(crate) fn settle(&self) {
        if let Some(bucket) = &self.bucket {
            bucket.server.release().unwrap();
        }
    }

    pub(crate) fn is_store(&self) -> bool {
        self.bucket.is_some()
    }

    /// Returns a command. An argument `set`, or `set@VERSION`, names the dataset, and `mine` its clone.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let Some(bucket) = &self.bucket else {
            let mut command = shardtool(arguments, &self.folder);
            // A copy of a clone names the folder that the clone named.
            command.env("SHARDTOOL_SOURCES", self.folder.parent().expect("a folder in another one"));
            return command;
        };
        let named = arguments.iter().map(|argument| match argument.split_once('@').unwrap_or((*argument, "")).0 {
            "set" | "mine" => format!("{BUCKET}/{argument}"),
            _ => (*argument).to_owned(),
        });
        let named: Vec<_> = named.collect();
        let mut command = bucket.shardtool(named.iter().map(String::as_str));
        command.env("SHARDTOOL_SOURCES", BUCKET);
        command
    }

    /// Runs a command that must succeed. Returns what it prints.
    pub(crate) fn good(&self, arguments: &[&str]) -> String {
        self.text(arguments).unwrap_or_else(|message| panic!("{message}"))
    }

    fn text(&self, arguments: &[&str]) -> Contents {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        match status.success() {
            true => Ok(String::from_utf8_lossy(&stdout).into_owned()),
            false => Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&[stdout, stderr].concat()))),
        }
    }

    fn json(&self, arguments: &[&str]) -> Result<Value, String> {
        Ok(serde_json::from_str(&self.text(&[arguments, &["--json"]].concat())?).expect("JSON"))
    }

    /// Returns the records of a version with their features, and those of its views, after a verification.
    pub(crate) fn contents(&self, dataset: &str) -> Contents {
        self.text(&["verify", dataset])?;
        let info = self.json(&["info", dataset])?;
        let names = info["features"].as_array().unwrap().iter().map(|feature| feature["name"].as_str().unwrap());
        let columns: Vec<_> =
            names.filter(|name| ["note", "score"].contains(name)).map(|name| format!("--column={name}")).collect();
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let mut text = String::new();
        let views = info["views"].as_array().into_iter().flatten().map(|view| view["name"].as_str().unwrap());
        for split in std::iter::once("train").chain(views) {
            let mut rows = self.json(&[&["ls", dataset, "--split", split], &columns[..]].concat())?;
            // The names of new shards are random, and who writes them decides how many there are.
            let listed = rows["listed"].as_array_mut().unwrap();
            listed.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("shard")));
            text += &format!("{split}: {}; ", rows["listed"]);
        }
        Ok(format!("{text}{}", info["features"]))
    }

    /// As [`Self::contents`] of the newest version, with its tags and the number of purged versions.
    pub(crate) fn newest(&self) -> Contents {
        let log = self.log()?;
        let tags: Vec<_> = log.iter().flat_map(|version| version["tags"].as_array().unwrap()).collect();
        let purged = log.iter().filter(|version| version["purged"] == true).count();
        let shards = &log[0]["splits"][0]["shards"];
        Ok(format!("{} tags {tags:?} purged {purged} shards {shards}", self.contents("set")?))
    }

    /// Returns the versions, the newest first.
    pub(crate) fn log(&self) -> Result<Vec<Value>, String> {
        Ok(self.json(&["log", "set"])?["versions"].as_array().unwrap().clone())
    }

    /// Makes a dataset with a column and a view, of which a record is deleted, versions 1 to 4; and inputs of changes.
    pub(crate) fn make(&self, shards: Shards) {
        let folder = &self.folder;
        set(folder);
        let rows = |value: fn(usize) -> String| -> String {
            let keys = (0..3).flat_map(|n| ["cat", "dog"].map(|class| format!("{class}/{n}.jpg")));
            keys.enumerate().map(|(at, key)| format!("{key},{}\n", value(at))).collect()
        };
        let notes = rows(|at| ["a", "b"][at % 2].to_owned());
        let scores = rows(|at| at.to_string());
        fs::write(folder.join("first.csv"), format!("key,note\n{notes}")).unwrap();
        // Rows of records that are deleted are unknown.
        fs::write(folder.join("scores.csv"), format!("key,score\n{}", scores.replace("cat/0.jpg,0\n", ""))).unwrap();
        fs::write(folder.join("notes.csv"), "key,note\ncat/1.jpg,c\n").unwrap();
        fs::write(folder.join("gone.txt"), "cat/0.jpg\n").unwrap();
        fs::create_dir_all(folder.join("further/dog")).unwrap();
        fs::copy(folder.join("photos/dog/0.jpg"), folder.join("further/dog/9.jpg")).unwrap();
        if shards == Shards::Cloned {
            fs::rename(folder.join("set"), folder.join("base")).unwrap();
            self.good(&["clone", "base", "--out", "set"]);
        }
        if self.is_store() {
            let local = shardtool(&["copy", "set", &format!("{BUCKET}/set")], folder);
            let mut copy = self.bucket.as_ref().unwrap().program(local.get_program().to_str().unwrap());
            assert!(copy.args(local.get_args()).output().unwrap().status.success());
        }
        self.good(&["column", "add", "set", "first.csv"]);
        self.good(&["delete", "set", "--keys=gone.txt"]);
        self.good(&["select", "set", "some", "--where=note=a"]);
    }
}
