//! A split written by tasks: one attempt of each is in the manifest, and the files of the others are removed, wherever a
//! commit stops.

use crate::support::{chain, check, names, snapshot};
use shardtool_format::manifest::DType;
use shardtool_pack::{
    ChosenRecords, DeleteOptions, DestinationError, Error, GcOptions, Options, Progress, PurgeOptions, Sample, Shards,
    Step, TaskOptions, TaskShard, TaskWrite, TaskWriter, Value, WriterError, WriterOptions, clean, delete, gc,
    new_write_id, pack, purge,
};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

fn options(set: &Path, split: &str, id: &str) -> TaskOptions {
    let mut options = WriterOptions::new(set, split);
    options.images = false;
    options.features = vec![("n".to_owned(), DType::Int64)];
    TaskOptions::new(options, id)
}

/// Writes an attempt of a task with the rows of this range, and a rejected one.
fn attempt(options: &TaskOptions, task: u64, rows: std::ops::Range<i64>) -> TaskShard {
    let mut writer = TaskWriter::open(options, task).unwrap();
    for row in rows {
        let sample =
            Sample { key: &format!("{row}"), image: None, label: None, values: vec![("n", Value::Int64(vec![row]))] };
        writer.write(&sample).unwrap();
        assert!(chain(&writer.write(&sample).unwrap_err()).contains("its key was written before"));
    }
    writer.reject(&format!("row of {task}"), "no \"n\"");
    writer.finish().unwrap()
}

/// Stops a commit after a step.
struct StopAfter(Step);

impl Progress for StopAfter {
    fn after(&self, step: Step) -> ControlFlow<()> {
        if step == self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn one_attempt_of_each_task_is_named_in_task_order() {
    let temp = tempfile::tempdir().unwrap();
    let options = options(temp.path(), "train", &new_write_id());
    let write = TaskWrite::begin(&options).unwrap();
    let (late, first) = (attempt(&options, 1, 10..20), attempt(&options, 0, 0..10));
    let lost = attempt(&options, 1, 10..20);
    assert_eq!((lost.shard.crc32c, lost.rejected), (late.shard.crc32c, 1));
    // An attempt that is dropped leaves nothing.
    drop(TaskWriter::open(&options, 2).unwrap());
    let done = write.commit(&options, vec![late.clone(), first.clone()], &()).unwrap();
    drop(write);
    let files: Vec<_> = done.split.shards.iter().map(|shard| shard.file.clone()).collect();
    assert_eq!(files, [first.shard.file, late.shard.file]);
    assert!(files[0] < files[1] && files[0].starts_with("train-") && files[0].contains("-00000-"));
    let keys = check(temp.path(), "train");
    assert_eq!(keys.len(), 20);
    let list = fs::read_to_string(temp.path().join("rejected-train.jsonl")).unwrap();
    let expected = "{\"input\": \"row of 0\", \"reason\": \"no \\\"n\\\"\"}\n{\"input\": \"row of 1\", \"reason\": \"no \\\"n\\\"\"}\n";
    assert_eq!((list.as_str(), done.rejected), (expected, 2));
    let mut left: Vec<_> = files.iter().map(|file| format!("_index/{file}.index")).collect();
    left.extend(["dataset.json", "rejected-train.jsonl"].map(str::to_owned));
    left.extend(files);
    assert_eq!(names(temp.path()), left);
    // The split is taken.
    let again = TaskWrite::begin(&options).err().unwrap();
    assert!(matches!(again, Error::Destination(DestinationError::SplitExists { .. })), "{}", chain(&again));
}

#[test]
fn a_stopped_commit_and_a_late_attempt_leave_what_clean_removes() {
    for (step, named) in [(Step::Rejected, false), (Step::Manifest, true)] {
        let temp = tempfile::tempdir().unwrap();
        let options = options(temp.path(), "train", &new_write_id());
        let write = TaskWrite::begin(&options).unwrap();
        let shards = vec![attempt(&options, 0, 0..10), attempt(&options, 1, 10..20)];
        attempt(&options, 1, 10..20);
        assert!(matches!(clean(temp.path(), false), Err(Error::Destination(DestinationError::Locked { .. }))));
        assert!(matches!(write.commit(&options, shards, &StopAfter(step)), Err(Error::Stopped)));
        drop(write);
        attempt(&options, 2, 20..30);
        // A file that was being written when its process was killed.
        let killed = format!(".train-{}-00003-0123abcd.tfrecord.0123456789abcdef.tmp", options.write);
        fs::write(temp.path().join(killed), "half").unwrap();
        clean(temp.path(), false).unwrap();
        let files = names(temp.path()).into_iter().filter(|name| name.contains(".tfrecord")).count();
        // Shards and indexes.
        assert_eq!(files, if named { 4 } else { 0 }, "{step:?}");
        if named {
            assert_eq!(check(temp.path(), "train").len(), 20);
        }
    }
}

/// Attempts may be named, until the process that began their write ends: `gc` and `purge` wait for it. Then those that no version names
/// are removed, and so are purged shards that tasks wrote.
#[test]
fn gc_and_purge_wait_for_a_write_of_tasks_and_remove_its_files() {
    let temp = tempfile::tempdir().unwrap();
    let written = options(temp.path(), "train", &new_write_id());
    let write = TaskWrite::begin(&written).unwrap();
    let shards = vec![attempt(&written, 0, 0..10), attempt(&written, 1, 10..20)];
    write.commit(&written, shards.clone(), &()).unwrap();
    drop(write);
    let gone = ChosenRecords::Keys(vec![b"3".to_vec()]);
    delete(temp.path(), &DeleteOptions::new(gone), &()).unwrap();
    let other = options(temp.path(), "val", &new_write_id());
    let write = TaskWrite::begin(&other).unwrap();
    let lost = attempt(&other, 0, 30..40);
    // One of 43 names of attempts ends in decimal digits alone, as those of other shards.
    let decimal = format!("{}-12345678.tfrecord", lost.shard.file.rsplit_once('-').unwrap().0);
    fs::copy(temp.path().join(&lost.shard.file), temp.path().join(&decimal)).unwrap();
    let mut collecting = GcOptions::default();
    collecting.remove = true;
    let refused =
        |error: Error| assert!(matches!(error, Error::Destination(DestinationError::Locked { .. })), "{error}");
    refused(gc(temp.path(), &collecting).unwrap_err());
    refused(purge(temp.path(), &PurgeOptions::default(), &()).unwrap_err());
    drop(write);
    let collected = gc(temp.path(), &GcOptions::default()).unwrap().files;
    assert!(
        [&lost.shard.file, &decimal].iter().all(|file| collected.contains(&Path::new(file).into())),
        "{collected:?}"
    );
    let purged = purge(temp.path(), &PurgeOptions::default(), &()).unwrap();
    for file in [&shards[0].shard.file, &lost.shard.file, &decimal] {
        assert!(purged.removed.contains(&Path::new(file).into()), "{file} of {purged:?}");
        assert!(!temp.path().join(file).exists() && !temp.path().join(format!("_index/{file}.index")).exists());
    }
    assert!(purged.others.is_empty() && temp.path().join(&shards[1].shard.file).exists(), "{purged:?}");
    assert_eq!(check(temp.path(), "train").len(), 19);
    assert_eq!(gc(temp.path(), &collecting).unwrap().files, [""; 0].map(std::path::PathBuf::from));
}

#[test]
fn abandoned_writes_leave_other_splits_and_writes() {
    let temp = tempfile::tempdir().unwrap();
    let (mine, other) =
        (options(temp.path(), "train", &new_write_id()), options(temp.path(), "train", &new_write_id()));
    let begun = TaskWrite::begin(&other).unwrap();
    let kept = attempt(&other, 0, 0..5);
    let write = TaskWrite::begin(&mine).unwrap();
    attempt(&mine, 0, 0..5);
    write.abandon().unwrap();
    drop(write);
    begun.commit(&other, vec![kept], &()).unwrap();
    assert_eq!(check(temp.path(), "train").len(), 5);
}

#[test]
fn missing_and_changed_shards_and_common_keys_are_refused_by_name() {
    let temp = tempfile::tempdir().unwrap();
    let options = options(temp.path(), "train", &new_write_id());
    let write = TaskWrite::begin(&options).unwrap();
    let (first, same) = (attempt(&options, 0, 0..10), attempt(&options, 1, 9..12));
    let error = write.commit(&options, vec![first.clone(), same.clone()], &()).unwrap_err();
    let text = chain(&error);
    assert!(matches!(error, Error::Writer(WriterError::TasksKey { .. })), "{text}");
    assert!(text.contains("`9`") && text.contains(&first.shard.file) && text.contains(&same.shard.file), "{text}");
    let path = temp.path().join("_index").join(format!("{}.index", first.shard.file));
    let mut index = fs::read(&path).unwrap();
    *index.last_mut().unwrap() ^= 1;
    fs::write(&path, index).unwrap();
    let error = write.commit(&options, vec![first], &()).unwrap_err();
    assert!(matches!(&error, Error::Writer(WriterError::TaskShard { task: 0, .. })), "{}", chain(&error));
    assert!(chain(&error).contains(&path.display().to_string()), "{}", chain(&error));
    fs::remove_file(temp.path().join(&same.shard.file)).unwrap();
    let error = write.commit(&options, vec![same], &()).unwrap_err();
    assert!(matches!(&error, Error::Writer(WriterError::TaskShard { task: 1, .. })), "{}", chain(&error));
    write.abandon().unwrap();
    drop(write);
    assert!(names(temp.path()).is_empty());
}

#[test]
fn a_pack_replaces_the_split_of_tasks_and_is_not_disturbed_by_their_files() {
    let temp = tempfile::tempdir().unwrap();
    let set = temp.path().join("set");
    let packed = temp.path().join("one");
    crate::support::class_folders(&temp.path().join("photos"), 3);
    let pack_to = |set: &Path, force: bool| {
        let options = Options::new(temp.path().join("photos"), set);
        pack(&with!(options, shards = Shards::Count(2), force = force), &())
    };
    let options = options(&set, "train", &new_write_id());
    let write = TaskWrite::begin(&options).unwrap();
    assert!(matches!(pack_to(&set, false), Err(Error::Destination(DestinationError::Locked { .. }))));
    write.commit(&options, vec![attempt(&options, 0, 0..10)], &()).unwrap();
    drop(write);
    // A late attempt.
    attempt(&options, 1, 10..20);
    pack_to(&set, true).unwrap();
    pack_to(&packed, false).unwrap();
    let without_list = |folder: &Path| {
        let mut files = snapshot(folder);
        files.retain(|path, _| !path.ends_with("rejected-train.jsonl"));
        files
    };
    assert_eq!(without_list(&set), without_list(&packed));
}
