//! Random sequences of changes, compared with a model: a list of records for each version. After each change, every version that is
//! kept is read back completely. Some changes are killed, and some datasets lie in a store.
//!
//! `SHARDTOOL_VERSION_SEQUENCES` is the number of sequences, `SHARDTOOL_VERSION_SEED` the first seed.

mod checks;
mod inputs;
mod kills;
mod model;
mod sequences;
mod steps;

use checks::{read, train};
use inputs::{Rng, all_names, list};
use sequences::{Place, sequence};
use shardtool_format::manifest::DType;
use shardtool_pack::{
    ChosenRecords, ColumnChange, ColumnOptions, ColumnRows, ColumnValues, DeleteOptions, DestinationError, Error,
    Options, ShardError, Shards, Value, change_columns, delete, pack,
};
use shardtool_read::Dataset;
use shardtool_store_server::Server;
use std::path::{Path, PathBuf};
use std::process::Command;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_changes_are_those_of_the_model() {
    let (sequences, seed) = (number("SHARDTOOL_VERSION_SEQUENCES", 60), number("SHARDTOOL_VERSION_SEED", 0));
    for seed in seed..seed + sequences {
        let temp = tempfile::tempdir().unwrap();
        sequence(seed, 12, &Place::in_folder(temp.path()));
    }
}

/// Names the folder of the server whose bucket [`sequences_in_a_store`] changes.
const STORE: &str = "SHARDTOOL_TEST_STORE";

#[test]
fn random_changes_in_a_store_are_those_of_the_model() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::create_dir(temp.path().join("bucket")).unwrap();
    let server = Server::start(temp.path(), shardtool_store_server::Options::default()).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "sequences_in_a_store", "--nocapture"]);
    let output = command.envs(server.environment()).env(STORE, temp.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Not a test by itself: it needs the environment of a server.
#[test]
fn sequences_in_a_store() {
    let Ok(server) = std::env::var(STORE) else { return };
    let (sequences, seed) = (number("SHARDTOOL_VERSION_STORE_SEQUENCES", 4), number("SHARDTOOL_VERSION_SEED", 0));
    for seed in seed..seed + sequences {
        let temp = tempfile::tempdir().unwrap();
        sequence(seed, 12, &Place::in_store(Path::new(&server), &seed.to_string(), temp.path()));
    }
}

/// Returns a dataset of four records in two shards.
fn four(folder: &Path) -> PathBuf {
    let keys: Vec<String> = (0..4).map(|i| format!("k{i}")).collect();
    let (source, _) = list(folder, "four.jsonl", &mut Rng(1), &keys, &all_names());
    let path = folder.join("dataset");
    let mut options = Options::new(&source, &path);
    (options.seed, options.shards) = (None, Shards::Count(2));
    pack(&options, &()).unwrap();
    path
}

fn column(kind: ColumnChange, path: &Path, name: &str, keys: &[&str]) -> Result<(), Error> {
    let rows = keys.iter().map(|_| Some(Value::Int64(vec![1]))).collect();
    let columns = vec![ColumnValues { name: name.to_owned(), dtype: DType::Int64, rows }];
    let keys = Some(keys.iter().map(|key| key.as_bytes().to_vec()).collect());
    let rows = ColumnRows { source: "rows".into(), keys, columns };
    change_columns(path, &rows, &ColumnOptions::new(kind), &()).map(drop)
}

#[test]
fn each_row_belongs_to_one_record_and_each_record_has_a_row() {
    let temp = tempfile::tempdir().unwrap();
    let path = four(temp.path());
    let refused = |keys: &[&str]| column(ColumnChange::Add, &path, "n", keys).unwrap_err().to_string();
    assert!(refused(&["k0", "k1", "k2", "k3", "k9"]).contains("1 of 5 rows with the key of no record (k9)"));
    assert!(refused(&["k0", "k1", "k2", "k0"]).contains("`k0` occurs twice, in rows 1 and 4"));
    assert!(refused(&["k0", "k1", "k2"]).contains("1 record has no row (k3)"));
    column(ColumnChange::Add, &path, "n", &["k3", "k1", "k2", "k0"]).unwrap();
    let again = column(ColumnChange::Add, &path, "n", &["k3", "k1", "k2", "k0"]).unwrap_err();
    assert!(again.to_string().contains("`column replace`"), "{again}");
    let other = column(ColumnChange::Replace, &path, "text", &["k3", "k1", "k2", "k0"]).unwrap_err();
    assert!(other.to_string().contains("bytes in the dataset and int64"), "{other}");
    for fixed in ["image/key", "image/encoded", "image/width"] {
        let fixed = column(ColumnChange::Add, &path, fixed, &["k3", "k1", "k2", "k0"]).unwrap_err();
        assert!(matches!(fixed, Error::Shard(ShardError::Column { .. })), "{fixed}");
    }
    assert_eq!(Dataset::open(&path).unwrap().version(), 2);
}

#[test]
fn a_change_is_refused_if_what_it_is_based_on_was_changed() {
    let temp = tempfile::tempdir().unwrap();
    let path = four(temp.path());
    column(ColumnChange::Add, &path, "n", &["k3", "k1", "k2", "k0"]).unwrap();
    // The second of two deletions of one shard, both of which read version 2, is refused; one of another shard is not.
    let read = std::fs::read(path.join("dataset.json")).unwrap();
    let keys = |keys: &[&str]| ChosenRecords::Keys(keys.iter().map(|key| key.as_bytes().to_vec()).collect());
    delete(&path, &DeleteOptions::new(keys(&["k0"])), &()).unwrap();
    let newest = std::fs::read(path.join("dataset.json")).unwrap();
    let raced = |records: ChosenRecords| {
        // Between reading and committing, the other change commits.
        struct Swap<'a>(&'a Path, &'a [u8]);
        impl shardtool_pack::Progress for Swap<'_> {
            fn stopped(&self) -> bool {
                std::fs::write(self.0.join("dataset.json"), self.1).unwrap();
                false
            }
        }
        std::fs::write(path.join("dataset.json"), &read).unwrap();
        delete(&path, &DeleteOptions::new(records), &Swap(&path, &newest))
    };
    let refused = raced(keys(&["k1"]));
    assert!(matches!(&refused, Err(Error::Destination(DestinationError::CameFirst { version: 3, .. }))), "{refused:?}");
    assert_eq!(std::fs::read(path.join("dataset.json")).unwrap(), newest);
    let both = raced(keys(&["k3"])).unwrap();
    assert_eq!(both.version.unwrap().number, 4);
    let left: Vec<_> = read_keys(&path);
    assert_eq!(left, ["k1", "k2"]);
    // The file of the refused change is gone.
    assert_eq!(std::fs::read_dir(path.join("_columns")).unwrap().count(), 3);
}

fn read_keys(path: &Path) -> Vec<String> {
    read(train(&Dataset::open(path).unwrap())).into_iter().map(|sample| sample.key).collect()
}

/// Every command that writes, the old ones included, leaves the versions before readable.
#[test]
fn no_command_breaks_a_version_that_is_kept() {
    let temp = tempfile::tempdir().unwrap();
    let path = four(temp.path());
    column(ColumnChange::Add, &path, "n", &["k3", "k1", "k2", "k0"]).unwrap();
    delete(&path, &DeleteOptions::new(ChosenRecords::Ids(vec![1])), &()).unwrap();
    let before: Vec<_> =
        (1..=3).map(|n| read(train(&Dataset::open(format!("{}@{n}", path.display())).unwrap()))).collect();
    let source = temp.path().join("four.jsonl");
    let mut options = Options::new(&source, &path);
    (options.seed, options.shards, options.force) = (None, Shards::Count(3), true);
    assert!(matches!(pack(&options, &()), Err(Error::Destination(DestinationError::HasVersions { .. }))));
    let repaired = shardtool_pack::repair(&path, &shardtool_pack::RepairOptions::default(), &());
    assert!(matches!(repaired, Err(Error::Destination(DestinationError::HasVersions { .. }))));
    let shard = path.join("train-00000.tfrecord");
    let indexed = shardtool_pack::adopt(&[shard], &shardtool_pack::AdoptOptions::default(), &());
    assert!(matches!(indexed, Err(Error::Destination(DestinationError::HasVersions { .. }))), "{indexed:?}");
    let mut other = Options::new(&source, &path);
    (other.split, other.seed) = (Some("validation".to_owned()), None);
    pack(&other, &()).unwrap();
    shardtool_pack::clean(&path, false).unwrap();
    assert!(!shardtool_pack::reseal(&path).unwrap());
    let now = Dataset::open(&path).unwrap();
    assert_eq!((now.version(), now.splits().len()), (4, 2));
    for (number, before) in (1..).zip(&before) {
        assert_eq!(
            &read(train(&Dataset::open(format!("{}@{number}", path.display())).unwrap())),
            before,
            "version {number}"
        );
    }
}

/// A dataset without versions is written as before, to the byte; a version keeps the manifest before it, to the byte.
#[test]
fn manifests_of_versions_keep_their_bytes() {
    let temp = tempfile::tempdir().unwrap();
    let path = four(temp.path());
    let mut manifests = vec![std::fs::read(path.join("dataset.json")).unwrap()];
    assert!(String::from_utf8_lossy(&manifests[0]).contains("\"version\": \"1.0\""));
    for name in ["n", "m", "o"] {
        column(ColumnChange::Add, &path, name, &["k3", "k1", "k2", "k0"]).unwrap();
        manifests.push(std::fs::read(path.join("dataset.json")).unwrap());
    }
    for (number, json) in (1..).zip(&manifests[..3]) {
        assert_eq!(&std::fs::read(path.join(format!("_versions/{number:06}.json"))).unwrap(), json);
        let crc = format!("{:08x}", shardtool_format::manifest::own_crc(json).unwrap());
        let opened = Dataset::open(format!("{}@{crc}", path.display())).unwrap();
        assert_eq!(opened.version(), number);
    }
    assert!(Dataset::open(format!("{}@5", path.display())).is_err());
    assert!(Dataset::open(format!("{}@nowhere", path.display())).is_err());
    // A folder whose name is the whole text is opened; if both exist, the text is refused.
    std::fs::create_dir(temp.path().join("dataset@2")).unwrap();
    let both = Dataset::open(format!("{}@2", path.display())).unwrap_err().to_string();
    assert!(both.contains("may also mean version `2`"), "{both}");
}
