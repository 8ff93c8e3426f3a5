//! If any command that writes is killed at any step, no incomplete file has a final name, and running the command again
//! produces the same bytes.

use crate::adopt::{example, framed};
use crate::support::{chain, check, class_folders, jpeg, manifest, put, records, snapshot, unlocked};
use shardtool_format::example::Column;
use shardtool_format::names;
use shardtool_pack::{
    AdoptOptions, DestinationError, Error, ExportKind, ExportOptions, ExtractOptions, Image, Label, Options, Progress,
    Rejection, RepairOptions, ReshardOptions, Sample, Shards, Step, Writer, WriterOptions, adopt, commit_parts, export,
    extract, index_source, pack, repair, reshard,
};
use shardtool_read::Dataset;
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The task of [`a_child`]: when to abort, the command, the folder that it writes, its other folders.
const CHILD: &str = "SHARDTOOL_TEST_KILL";

/// Aborts the process at the n-th step or increment.
struct Dying(AtomicUsize);

impl Dying {
    fn count(&self) {
        if self.0.fetch_sub(1, SeqCst) == 0 {
            std::process::abort();
        }
    }
}

impl Progress for Dying {
    fn done(&self, _: u64, _: u64) {
        self.count();
    }
    fn after(&self, _: Step) -> ControlFlow<()> {
        self.count();
        ControlFlow::Continue(())
    }
}

/// Runs a command. Returns whether it lost or refused records.
fn run(command: &str, out: &Path, inputs: &[&Path], progress: &dyn Progress) -> Result<bool, Error> {
    let splits = |path: &Path| Dataset::open(path).map(|set| set.splits().to_vec());
    let jobs = 2.try_into().unwrap();
    Ok(match command {
        "pack" => pack(&with!(Options::new(inputs[0], out), shards = Shards::Count(2)), progress)?.rejected > 0,
        "force" => {
            pack(&with!(Options::new(inputs[0], out), shards = Shards::Count(2), force = true), progress)?.rejected > 0
        }
        "writer" => {
            write(out, None, progress)?;
            false
        }
        "parts" => {
            // A program runs again from its beginning, or only its last step.
            for part in if out.join("dataset.json").exists() { 0..0 } else { 0..2 } {
                write(out, Some((part, 2)), progress)?;
            }
            commit_parts(out, "train", false, progress)?;
            false
        }
        "index" => {
            let files: Vec<_> = shard_files(out).into_iter().map(|name| out.join(name)).collect();
            adopt(&files, &with!(AdoptOptions::default(), jobs = jobs), progress)?;
            false
        }
        "index source" => {
            let options = with!(Options::new(out, ""), shards = Shards::Count(2), ignore_times = true);
            index_source(&options, &[], progress)?.splits.iter().any(|split| split.rejected > 0)
        }
        "index --out" => {
            let files: Vec<_> = shard_files(inputs[0]).into_iter().map(|name| inputs[0].join(name)).collect();
            adopt(&files, &with!(AdoptOptions::default(), out = Some(out.to_owned())), progress)?;
            false
        }
        "repair" => {
            let done = repair(out, &with!(RepairOptions::default(), jobs = jobs), progress)?;
            done.shards.iter().any(|shard| !shard.lost.is_empty())
        }
        "reshard" => {
            let options = with!(ReshardOptions::default(), shards = Shards::Count(3), jobs = jobs);
            let sources: Vec<_> = inputs.iter().flat_map(|set| splits(set).unwrap()).collect();
            reshard(&sources, out, &options, progress)?;
            false
        }
        "extract" => !extract(&splits(inputs[0])?[0], out, &ExtractOptions::default(), progress)?.refused.is_empty(),
        export_to => {
            let kind = match export_to {
                "tfrecord" => ExportKind::Tfrecord { dali_index: true, allow_damage: false },
                "webdataset" => ExportKind::Webdataset,
                #[cfg(feature = "parquet")]
                "parquet" => ExportKind::Parquet,
                _ => ExportKind::Folder,
            };
            let options = with!(ExportOptions::new(kind), jobs = jobs, force = export_to == "folder --force");
            !export(&splits(inputs[0])?, out, &options, progress)?.refused.is_empty()
        }
    })
}

/// Writes eight samples, or those of a part.
fn write(out: &Path, part: Option<(u32, u32)>, progress: &dyn Progress) -> Result<(), Error> {
    let classes = vec!["a".to_owned()];
    let options = with!(WriterOptions::new(out, "train"), shard_size = 4000, classes = classes, part = part);
    let writer = Writer::open(&options)?;
    for number in (0..8).filter(|number| part.is_none_or(|(part, parts)| number % parts == part)) {
        let image = jpeg(number, 40, 40);
        let (key, image) = (format!("{number}"), Some(Image::File(&image)));
        writer.write(&Sample { key: &key, image, label: Some(Label::Name("a")), values: vec![] })?;
    }
    writer.finish_with(progress)?;
    Ok(())
}

fn shard_files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".tfrecord")).collect();
    names.sort();
    names
}

/// Not a test by itself: the tests below run it in a separate process.
#[test]
fn a_child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let task: Vec<_> = task.split('\n').collect();
    let progress = Dying(AtomicUsize::new(task[0].parse().unwrap()));
    let inputs: Vec<_> = task[3..].iter().map(Path::new).collect();
    if let Err(error) = run(task[1], Path::new(task[2]), &inputs, &progress) {
        eprintln!("{}", chain(&error));
        std::process::exit(2);
    }
}

/// Runs a command in a process that aborts at the n-th step or increment. Returns whether it aborted.
fn dies(n: usize, command: &str, out: &Path, inputs: &[&Path]) -> bool {
    let paths = [out].into_iter().chain(inputs.iter().copied()).map(|path| path.to_str().unwrap().to_owned());
    let task: Vec<_> = [n.to_string(), command.to_owned()].into_iter().chain(paths).collect();
    let output = Command::new("bash")
        .args(["-c", "ulimit -c 0; exec \"$0\" --exact kills::a_child --nocapture"])
        .arg(std::env::current_exe().unwrap())
        .env(CHILD, task.join("\n"))
        .output()
        .unwrap();
    assert!(output.status.success() || output.status.code().is_none(), "{}", String::from_utf8_lossy(&output.stderr));
    !output.status.success()
}

/// Checks that every file under a final name is complete, and that the manifest names only files that exist.
fn whole(out: &Path, expected: &BTreeMap<PathBuf, Vec<u8>>, before: &BTreeMap<PathBuf, Vec<u8>>, n: usize) {
    for (path, bytes) in snapshot(out) {
        let hidden = path.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
        if !hidden && path != Path::new("dataset.json") {
            let known = [expected, before].iter().any(|files| files.get(&path) == Some(&bytes));
            assert!(known, "killed at {n}: {path:?} is neither as before nor as at the end");
        }
    }
    if out.join("dataset.json").exists() {
        for split in manifest(out).splits {
            for shard in split.shards {
                let file = if shard.foreign.is_virtual {
                    names::index_path(Path::new(&shard.file))
                } else {
                    PathBuf::from(&shard.file)
                };
                let shard = out.join(file);
                assert!(shard.exists(), "killed at {n}: {shard:?}");
            }
        }
    }
}

/// Kills a command everywhere, and runs it again each time. Returns the number of kills, and of those after which the
/// command lost or refused nothing, unlike the command that is not killed.
fn kill_everywhere(command: &str, inputs: &[&Path], prepare: impl Fn(&Path)) -> (usize, usize) {
    let temp = tempfile::tempdir().unwrap();
    let out = temp.path().join("out");
    prepare(&out);
    let finding = run(command, &out, inputs, &()).unwrap();
    let expected = snapshot(&out);
    let mut silent = 0;
    for n in 0.. {
        fs::remove_dir_all(&out).unwrap();
        prepare(&out);
        let before = if out.exists() { snapshot(&out) } else { BTreeMap::new() };
        if !dies(n, command, &out, inputs) {
            return (n, silent);
        }
        whole(&out, &expected, &before, n);
        let again = run(command, &out, inputs, &());
        let again = again.unwrap_or_else(|e| panic!("{command} after a kill at {n}: {}", chain(&e)));
        let found = unlocked(&out);
        let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert!(found == expected, "{command} killed at {n}: {:?}, not {:?}", names(&found), names(&expected));
        silent += usize::from(again != finding);
    }
    unreachable!()
}

/// A packed dataset with two splits.
fn packed(temp: &Path, name: &str, each: u32) -> PathBuf {
    let set = temp.join(name);
    for split in ["train", "validation"] {
        let photos = temp.join(format!("{name}-{split}"));
        class_folders(&photos, each);
        for class in ["cat", "dog", "emu"] {
            fs::rename(photos.join(class).join("0000.jpg"), photos.join(class).join(format!("{name}.jpg"))).unwrap();
        }
        let options = with!(Options::new(&photos, &set), split = Some(split.to_owned()), shards = Shards::Count(2));
        pack(&options, &()).unwrap();
    }
    set
}

fn copy(from: &Path, to: &Path) {
    for (path, bytes) in snapshot(from) {
        put(&to.join(path), &bytes);
    }
}

#[test]
fn pack_and_writers_continue() {
    let temp = tempfile::tempdir().unwrap();
    let photos = temp.path().join("photos");
    class_folders(&photos, 4);
    assert!(kill_everywhere("pack", &[&photos], |_| ()).0 > 12 + 6);
    let old = packed(temp.path(), "old", 2);
    assert!(kill_everywhere("force", &[&photos], |out| copy(&old, out)).0 > 12 + 8);
    assert!(kill_everywhere("writer", &[], |_| ()).0 > 6);
    assert!(kill_everywhere("parts", &[], |_| ()).0 > 6);
}

#[test]
fn index_continues() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path(), "set", 3);
    let bare = temp.path().join("bare");
    for name in shard_files(&set) {
        put(&bare.join(&name), &fs::read(set.join(&name)).unwrap());
    }
    assert!(kill_everywhere("index", &[], |out| copy(&bare, out)).0 > 4);
    assert!(kill_everywhere("index source", &[], |out| class_folders(out, 4)).0 > 12 + 4);
    // One that describes a changed source again.
    let described = temp.path().join("described");
    class_folders(&described, 4);
    run("index source", &described, &[], &()).unwrap();
    put(&described.join("zebra/1.jpg"), &jpeg(3, 20, 20));
    assert!(kill_everywhere("index source", &[], |out| copy(&described, out)).0 > 12 + 4);
    assert!(kill_everywhere("index --out", &[&bare], |out| fs::create_dir_all(out).unwrap()).0 > 4);
}

/// A dataset with a damaged shard, one that was cut, and a damaged index.
fn damaged(temp: &Path) -> PathBuf {
    let set = packed(temp, "set", 6);
    let shard = set.join("train-00001.tfrecord");
    let mut bytes = fs::read(&shard).unwrap();
    let at = records(&bytes)[2].0 as usize;
    bytes[at + 100] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let shard = set.join("validation-00000.tfrecord");
    let bytes = fs::read(&shard).unwrap();
    let at = records(&bytes)[3].0 as usize;
    fs::write(&shard, &bytes[..at]).unwrap();
    fs::write(set.join("_index/train-00000.tfrecord.index"), "damaged").unwrap();
    set
}

#[test]
fn repair_continues_and_reports_the_loss_until_it_is_complete() {
    let temp = tempfile::tempdir().unwrap();
    let set = damaged(temp.path());
    let (kills, silent) = kill_everywhere("repair", &[], |out| copy(&set, out));
    // After the last file is in place, the repair is complete.
    assert!(kills > 4 + 4 && silent <= 1, "{kills} {silent}");
    let (kills, silent) = kill_everywhere("repair", &[], |out| {
        copy(&set, out);
        fs::remove_file(out.join("dataset.json")).unwrap();
    });
    assert!(kills > 4 + 4 && silent <= 1, "{kills} {silent}");
}

#[test]
fn repair_of_records_that_are_no_examples_continues() {
    let temp = tempfile::tempdir().unwrap();
    let shard = temp.path().join("set/train-00000.tfrecord");
    let good = |key: &[u8]| framed(&example(vec![("image/key", Column::Bytes(&[key]))]));
    put(&shard, &[good(b"a"), framed(b"\xff\xff\xff"), good(b"b")].concat());
    let (kills, silent) = kill_everywhere("repair", &[], |out| copy(&temp.path().join("set"), out));
    assert!(kills > 2 && silent <= 1, "{kills} {silent}");
}

#[test]
fn reshard_and_merge_start_again() {
    let temp = tempfile::tempdir().unwrap();
    let (a, b) = (packed(temp.path(), "a", 3), packed(temp.path(), "b", 1));
    assert!(kill_everywhere("reshard", &[&a], |_| ()).0 > 2 * 9 + 6 + 3);
    assert!(kill_everywhere("reshard", &[&a], |out| fs::create_dir(out).unwrap()).0 > 2 * 9 + 6 + 3);
    assert!(kill_everywhere("reshard", &[&a, &b], |_| ()).0 > 2 * 12 + 6 + 3);
}

#[test]
fn exports_and_extractions_start_again() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path(), "set", 2);
    let mut commands = vec!["tfrecord", "webdataset", "folder", "extract"];
    if cfg!(feature = "parquet") {
        commands.push("parquet");
    }
    for command in commands {
        assert!(kill_everywhere(command, &[&set], |_| ()).0 > 4, "{command}");
        assert!(kill_everywhere(command, &[&set], |out| fs::create_dir(out).unwrap()).0 > 4, "{command}");
    }
    let mine = |out: &Path| {
        put(&out.join("train/cat/mine.jpg"), b"mine");
        put(&out.join("train/cat/set.jpg"), b"replaced");
    };
    assert!(kill_everywhere("folder --force", &[&set], mine).0 > 4);
}

/// What could not be written is reported again by the run that finds the files complete.
#[test]
fn exports_and_extractions_with_damage_report_it_after_a_kill() {
    let temp = tempfile::tempdir().unwrap();
    let set = packed(temp.path(), "set", 3);
    let shard = set.join("train-00001.tfrecord");
    let mut bytes = fs::read(&shard).unwrap();
    let at = records(&bytes)[2].0 as usize;
    bytes[at + 100] ^= 1;
    fs::write(&shard, bytes).unwrap();
    for command in ["tfrecord", "webdataset", "folder", "extract"] {
        assert!(run(command, &temp.path().join(command), &[&set], &()).unwrap(), "{command} reports the damage");
        let (kills, silent) = kill_everywhere(command, &[&set], |_| ());
        assert!(kills > 4 && silent == 0, "{command}: {kills}, {silent}");
    }
    let again = |out: &str| {
        let splits = Dataset::open(&set).unwrap().splits().to_vec();
        let options = ExportOptions::new(ExportKind::Webdataset);
        export(&splits, &temp.path().join(out), &options, &()).unwrap()
    };
    let texts = |list: &[Rejection]| list.iter().map(|r| (r.input.clone(), chain(&r.reason))).collect::<Vec<_>>();
    let (first, complete) = (again("new"), again("new"));
    assert!(!first.already_complete && complete.already_complete);
    assert_eq!(texts(&first.refused), texts(&complete.refused));
}

/// The next command neither takes a half-moved dataset for a complete one nor the other way round.
#[test]
fn a_killed_reshard_is_no_dataset_for_repair() {
    let temp = tempfile::tempdir().unwrap();
    let (set, out) = (packed(temp.path(), "set", 3), temp.path().join("out"));
    let refused = (0..).take_while(|n| {
        fs::remove_dir_all(&out).ok();
        dies(*n, "reshard", &out, &[&set])
    });
    let mut kinds = (0, 0, 0);
    for n in refused {
        let repaired = repair(&out, &RepairOptions::default(), &());
        let again = reshard(Dataset::open(&set).unwrap().splits(), &out, &ReshardOptions::default(), &());
        match (repaired, again) {
            (Err(Error::Shard(_)), Ok(_)) => kinds.0 += 1,
            (Err(Error::Destination(_)), Ok(_)) => kinds.1 += 1,
            // Killed after the last step. The dataset is complete, and has other shards.
            (Ok(_), Err(Error::Destination(DestinationError::FilledOtherwise { .. }))) => kinds.2 += 1,
            other => panic!("killed at {n}: {other:?}"),
        }
        check(&out, "train");
    }
    assert!(kinds.0 > 10 && kinds.1 > 5 && kinds.2 == 1, "{kinds:?}");
}
