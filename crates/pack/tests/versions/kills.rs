//! Kills a change, and compares what it leaves with the model before the change and after it.

use crate::checks::{check, read, train};
use crate::inputs::Rng;
use crate::model::{Model, Version};
use crate::sequences::{Place, files};
use crate::steps::step;
use serde::{Deserialize, Serialize};
use shardtool_pack::{PurgeOptions, purge};
use shardtool_read::Dataset;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Names the file with the task of [`a_change`].
const CHILD: &str = "SHARDTOOL_TEST_CHANGE";
/// How long a process takes at least to begin.
const BEGINNING: Duration = Duration::from_millis(3);

/// A change that a separate process makes.
#[derive(Serialize, Deserialize)]
struct Task {
    rng: Rng,
    temp: PathBuf,
    path: PathBuf,
    model: Model,
}

/// Not a test by itself: [`killed_step`] runs it in a separate process.
#[test]
fn a_change() {
    let Ok(file) = std::env::var(CHILD) else { return };
    let mut task: Task = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    step(&mut task.rng, &task.temp, &task.path, &mut task.model);
}

/// Makes a random change: first in a process that is killed at a random time, and again if the dataset is as before.
pub(crate) fn killed_step(rng: &mut Rng, place: &Place, model: &mut Model, context: &str) -> String {
    let (before, first) = (model.clone(), rng.clone());
    let backup = files(&place.files);
    let started = Instant::now();
    let text = step(rng, &place.temp, &place.path, model);
    let took = started.elapsed();
    fs::remove_dir_all(&place.files).unwrap();
    for (path, bytes) in backup {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
    let wait = BEGINNING + took.mul_f64(rng.below(1300) as f64 / 1000.0);
    let context = format!("{context}; {text}, killed after {wait:?}");
    kill(
        place,
        &Task { rng: first.clone(), temp: place.temp.clone(), path: place.path.clone(), model: before.clone() },
        wait,
    );
    let newest = Dataset::open(&place.path).unwrap_or_else(|e| panic!("{context}: {e}")).version();
    let (old, new) = (before.newest().0, model.newest().0);
    assert!(newest == old || newest == new, "{context}: version {newest}");
    let numbers: BTreeSet<u64> = before.versions.keys().chain(model.versions.keys()).copied().collect();
    for number in numbers {
        check_either(&place.path, number, [before.versions.get(&number), model.versions.get(&number)], &context);
    }
    if newest == old {
        let mut again = before;
        assert_eq!(step(&mut first.clone(), &place.temp, &place.path, &mut again), text, "{context}");
        assert!(again.versions.keys().eq(model.versions.keys()), "{context}");
        *model = again;
    } else if text == "purge" {
        // Versions that a purge has not written again are purged by the next one.
        if purge(&place.path, &PurgeOptions::default(), &()).unwrap().version.is_some() {
            model.push(model.newest().1.clone());
        }
    }
    format!("{text} (killed)")
}

/// Starts a process that makes the change, and kills it. One that ends before must have succeeded.
fn kill(place: &Place, task: &Task, wait: Duration) {
    let file = place.temp.join("task.json");
    fs::write(&file, serde_json::to_vec(task).unwrap()).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kills::a_change", "--nocapture"]).env(CHILD, &file);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(wait);
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.code().is_none_or(|code| code == 0), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Checks that a version is that before the change, or that after it; it may be gone if one of both does not have it.
fn check_either(path: &Path, number: u64, expected: [Option<&Version>; 2], context: &str) {
    let Ok(dataset) = Dataset::open(format!("{}@{number}", path.display())) else {
        return assert!(expected.iter().any(Option::is_none), "{context}: version {number} is gone");
    };
    let found = read(train(&dataset));
    let version = expected.into_iter().flatten().find(|version| version.records == found);
    let version = version.unwrap_or_else(|| panic!("{context}: version {number} is {found:?}"));
    check(path, number, version, context);
}
