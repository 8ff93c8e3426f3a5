//! The commands that write, each with a folder of inputs.

use crate::dataset::{Place, Shards};
use shardtool_decode::{Pixels, encode_jpeg};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A command that writes.
pub(crate) struct Writing {
    /// Its name in reports.
    pub(crate) name: &'static str,
    /// Its arguments; paths are relative to the folder of inputs.
    pub(crate) arguments: &'static [&'static str],
    /// Makes the inputs.
    pub(crate) inputs: fn(&Path),
}

/// The command that writes what it can read, and lists the rest.
pub(crate) const READS_AROUND: &str = "extract";

/// The commands that leave unfinished files of other attempts to `commit`: those may be running on another machine.
pub(crate) const ATTEMPTS: [&str; 2] = ["pack --plan-only", "pack --part"];

const ONE: &str = "--jobs=1";

/// All of them. One job where that is an option, so that runs are alike.
pub(crate) const COMMANDS: &[Writing] = &[
    Writing { name: "pack", arguments: &["pack", "photos", "set", "--shards=2", "--sha256", ONE], inputs: photos },
    Writing { name: "pack a list", arguments: &["pack", "photos/list.jsonl", "set", ONE], inputs: list },
    Writing {
        name: "pack clips",
        arguments: &["pack", "photos", "set", "--from=clips", "--fps=25", ONE],
        inputs: clips,
    },
    Writing {
        name: "pack arrays",
        arguments: &["pack", "waves.jsonl", "set", "--array=wave:*x16", "--array=raw:8:raw", ONE],
        inputs: arrays,
    },
    Writing { name: "pack a tar", arguments: &["pack", "web/*.tar", "set", ONE], inputs: web },
    Writing { name: "pack Parquet", arguments: &["pack", "hf/*.parquet", "set", ONE], inputs: parquet },
    Writing { name: "pack a split", arguments: &["pack", "photos", "set", "--split=validation", ONE], inputs: set },
    Writing { name: "pack --force", arguments: &["pack", "photos", "set", "--force", "--seed=1", ONE], inputs: set },
    Writing {
        name: "pack --plan-only",
        arguments: &["pack", "photos", "set", "--shards=2", "--plan-only"],
        inputs: photos,
    },
    Writing {
        name: "pack --part",
        arguments: &["pack", "photos", "set", "--shards=2", "--part=1/2", ONE],
        inputs: first_part,
    },
    Writing { name: "commit", arguments: &["commit", "set"], inputs: all_parts },
    Writing {
        name: "index",
        arguments: &["index", "bare/a-00000.tfrecord", "bare/a-00001.tfrecord", ONE],
        inputs: bare,
    },
    Writing {
        name: "index --out",
        arguments: &["index", "bare/a-00000.tfrecord", "bare/a-00001.tfrecord", "--out=set", ONE],
        inputs: bare,
    },
    Writing { name: "repair", arguments: &["repair", "set", ONE], inputs: without_indexes },
    Writing { name: "repair damage", arguments: &["repair", "set", ONE], inputs: damaged },
    Writing { name: "repair --reseal", arguments: &["repair", "set", "--reseal"], inputs: edited },
    Writing { name: "reshard", arguments: &["reshard", "set", "out", "--shards=3", ONE], inputs: set },
    Writing { name: "merge", arguments: &["merge", "out", "set", "second", ONE], inputs: two_sets },
    Writing { name: "export webdataset", arguments: &["export", "set", "out", "--to=webdataset", ONE], inputs: set },
    Writing { name: "export parquet", arguments: &["export", "set", "out", "--to=parquet", ONE], inputs: set },
    Writing { name: "export folder", arguments: &["export", "set", "out", "--to=folder", ONE], inputs: set },
    Writing {
        name: "export tfrecord",
        arguments: &["export", "set", "out", "--to=tfrecord", "--dali-index", ONE],
        inputs: set,
    },
    Writing {
        name: "export --force",
        arguments: &["export", "set", "out", "--to=webdataset", "--force", ONE],
        inputs: set_and_output,
    },
    Writing { name: "extract", arguments: &["extract", "set", "out"], inputs: set },
    Writing { name: "copy", arguments: &["copy", "set", "out", "--all-versions"], inputs: changed },
    Writing { name: "clone", arguments: &["clone", "set", "--out", "out"], inputs: changed },
];

/// Commands that use the same dataset.
pub(crate) struct Neighbours {
    /// Makes the inputs.
    pub(crate) inputs: fn(&Path),
    /// Their arguments.
    pub(crate) commands: &'static [&'static [&'static str]],
}

/// Groups of commands, any two of which may run at once.
pub(crate) const NEIGHBOURS: &[Neighbours] = &[
    Neighbours {
        inputs: set,
        commands: &[
            &["verify", "set"],
            &["pack", "photos", "set", "--split=validation"],
            &["pack", "photos", "set", "--force", "--seed=1"],
            &["repair", "set"],
            &["reshard", "set", "out", "--shards=3"],
            &["merge", "out", "set", "set"],
            &["export", "set", "web", "--to=webdataset"],
            &["extract", "set", "files"],
        ],
    },
    Neighbours {
        inputs: without_an_index,
        commands: &[
            &["verify", "set"],
            &["pack", "photos", "set", "--split=validation"],
            &["pack", "photos", "set", "--split=test"],
            &["repair", "set"],
            &["repair", "set", "--reseal"],
            &["reshard", "set", "out"],
        ],
    },
];

impl Writing {
    /// Returns the command, which runs in `folder`.
    pub(crate) fn command(&self, folder: &Path) -> Command {
        shardtool(self.arguments, folder)
    }

    /// As [`Writing::command`], with two jobs.
    pub(crate) fn parallel(&self, folder: &Path) -> Command {
        let two = |argument: &&'static str| if *argument == ONE { "--jobs=2" } else { argument };
        shardtool(&self.arguments.iter().map(two).collect::<Vec<_>>(), folder)
    }
}

pub(crate) fn shardtool(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shardtool"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str], folder: &Path) {
    let output = shardtool(arguments, folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Two classes of three photographs, and a file that is not an image.
fn photos(folder: &Path) {
    for class in ["cat", "dog"] {
        fs::create_dir_all(folder.join("photos").join(class)).unwrap();
        for n in 0..3u32 {
            let value = |i: u32| (i * (n + 3) / 7) as u8 ^ class.as_bytes()[0];
            let pixels = Pixels { width: 40, height: 24, data: (0..40 * 24 * 3).map(value).collect() };
            let jpeg = encode_jpeg(pixels.view().unwrap(), 80).unwrap();
            fs::write(folder.join("photos").join(class).join(format!("{n}.jpg")), jpeg).unwrap();
        }
    }
    fs::write(folder.join("photos/cat/broken.jpg"), "not a photograph").unwrap();
}

/// A dataset of four versions, in `set`.
fn changed(folder: &Path) {
    Place::in_folder(folder).make(Shards::Own);
}

fn list(folder: &Path) {
    photos(folder);
    let line =
        |n: u32| format!("{{\"path\": \"dog/{n}.jpg\", \"label\": {n}, \"score\": 0.5, \"text\": \"dog {n}\"}}\n");
    fs::write(folder.join("photos/list.jsonl"), (0..3).map(line).collect::<String>()).unwrap();
}

/// Two clips of three frames; in a third folder, a frame of another size.
fn clips(folder: &Path) {
    photos(folder);
    fs::remove_file(folder.join("photos/cat/broken.jpg")).unwrap();
    let mixed = folder.join("photos/mixed");
    fs::create_dir(&mixed).unwrap();
    fs::copy(folder.join("photos/cat/0.jpg"), mixed.join("0.jpg")).unwrap();
    let small = Pixels { width: 8, height: 8, data: vec![7; 8 * 8 * 3] };
    fs::write(mixed.join("1.jpg"), encode_jpeg(small.view().unwrap(), 80).unwrap()).unwrap();
}

/// A list of `.npy` files, of which one is not such a file.
fn arrays(folder: &Path) {
    let npy = |shape: &str, data: Vec<u8>| {
        let header = format!("{{'descr': '<i2', 'fortran_order': False, 'shape': {shape}, }}");
        let header = format!("{header:<117}\n");
        [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), &data].concat()
    };
    let mut lines = String::new();
    for n in 0..4u8 {
        let wave = npy("(2, 40)", (0..160).map(|i| i ^ n).collect());
        fs::write(folder.join(format!("wave{n}.npy")), if n == 2 { b"no array".to_vec() } else { wave }).unwrap();
        fs::write(folder.join(format!("raw{n}.npy")), npy("(20,)", vec![n; 40])).unwrap();
        lines += &format!("{{\"key\": \"{n}\", \"wave\": \"wave{n}.npy\", \"raw\": \"raw{n}.npy\"}}\n");
    }
    fs::write(folder.join("waves.jsonl"), lines).unwrap();
}

/// A dataset of two shards.
pub(crate) fn set(folder: &Path) {
    photos(folder);
    fs::remove_file(folder.join("photos/cat/broken.jpg")).unwrap();
    run(&["pack", "photos", "set", "--shards=2"], folder);
}

/// The first of two parts of a pack.
fn first_part(folder: &Path) {
    photos(folder);
    part(folder, "0/2");
}

fn all_parts(folder: &Path) {
    first_part(folder);
    part(folder, "1/2");
}

/// Packs a part, whose status is 1 if it has the file that is not an image.
fn part(folder: &Path, part: &str) {
    let output = shardtool(&["pack", "photos", "set", "--shards=2", "--part", part], folder).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
}

fn two_sets(folder: &Path) {
    set(folder);
    run(&["pack", "photos", "second", "--split=validation"], folder);
}

fn set_and_output(folder: &Path) {
    set(folder);
    run(&["export", "set", "out", "--to=webdataset"], folder);
    fs::write(folder.join("out/train-00000.tar"), "an older export").unwrap();
    fs::write(folder.join("out/notes.txt"), "a file of the user").unwrap();
}

fn web(folder: &Path) {
    set(folder);
    run(&["export", "set", "web", "--to=webdataset"], folder);
    fs::remove_dir_all(folder.join("set")).unwrap();
}

fn parquet(folder: &Path) {
    set(folder);
    run(&["export", "set", "hf", "--to=parquet"], folder);
    fs::remove_dir_all(folder.join("set")).unwrap();
}

fn bare(folder: &Path) {
    set(folder);
    fs::create_dir(folder.join("bare")).unwrap();
    for n in 0..2 {
        let (from, to) = (format!("set/train-{n:05}.tfrecord"), format!("bare/a-{n:05}.tfrecord"));
        fs::rename(folder.join(from), folder.join(to)).unwrap();
    }
    fs::remove_dir_all(folder.join("set")).unwrap();
}

fn without_indexes(folder: &Path) {
    set(folder);
    fs::remove_dir_all(folder.join("set/_index")).unwrap();
    fs::remove_file(folder.join("set/dataset.json")).unwrap();
}

/// An edited manifest, and no index of the second shard.
fn without_an_index(folder: &Path) {
    edited(folder);
    fs::remove_file(folder.join("set/_index/train-00001.tfrecord.index")).unwrap();
}

/// A record of the first shard is damaged, and the index of the second shard.
fn damaged(folder: &Path) {
    set(folder);
    for (file, at) in [("set/train-00000.tfrecord", 60), ("set/_index/train-00001.tfrecord.index", 300)] {
        let mut bytes = fs::read(folder.join(file)).unwrap();
        bytes[at] ^= 1;
        fs::write(folder.join(file), bytes).unwrap();
    }
}

/// A manifest that was edited by hand.
fn edited(folder: &Path) {
    set(folder);
    let path = folder.join("set/dataset.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"cat\""));
    fs::write(path, text.replace("\"cat\"", "\"tabby\"")).unwrap();
}
