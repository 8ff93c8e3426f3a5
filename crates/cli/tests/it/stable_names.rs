//! Compares every name that other programs parse with the committed list `stable_names.txt`: members of `--json` documents,
//! metrics of `bench --prometheus`, members of the manifest, of plan files and of resume states.

use serde_json::Value;
use shardtool_decode::{PixelsRef, encode_jpeg};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Runs `shardtool` in `folder` and returns its standard output; both 0 and 1 are statuses of a command that ran.
fn shardtool(folder: &Path, arguments: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shardtool"));
    command.args(arguments.split_whitespace()).current_dir(folder);
    for name in ["RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments}: {message}");
    String::from_utf8(output.stdout).unwrap()
}

/// Adds the path of every member below `value`, such as `splits[].name`.
fn members(value: &Value, path: &str, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                members(value, &path, names);
                names.insert(path);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| members(value, &format!("{path}[]"), names)),
        _ => {}
    }
}

/// Returns the members of one or several JSON documents, one per line, under a heading.
fn section(heading: &str, documents: &[&str]) -> String {
    let mut names = BTreeSet::new();
    for document in documents {
        members(&serde_json::from_str(document).expect(document), "", &mut names);
    }
    format!("# {heading}\n{}\n", names.into_iter().map(|name| name + "\n").collect::<String>())
}

/// Returns metrics and their labels, one per line.
fn metrics(text: &str) -> String {
    let is_metric = |line: &&str| line.starts_with("shardtool_load_");
    let names: BTreeSet<_> = text.lines().filter(is_metric).filter_map(|line| line.rsplit_once(' ')).collect();
    names.into_iter().map(|(name, _)| format!("{name}\n")).collect()
}

/// Makes a folder `photos` of two classes, one file of which is not an image.
fn sources(folder: &Path) {
    for (class, value) in [("cat", 90), ("dog", 180)] {
        std::fs::create_dir_all(folder.join("photos").join(class)).unwrap();
        let data = vec![value; 64 * 48 * 3];
        let jpeg = encode_jpeg(PixelsRef::new(64, 48, &data).unwrap(), 90).unwrap();
        for i in 0..8 {
            std::fs::write(folder.join(format!("photos/{class}/{i}.jpg")), &jpeg).unwrap();
        }
    }
    std::fs::write(folder.join("photos/dog/broken.jpg"), b"\xff\xd8\xff and no more").unwrap();
}

/// Flips a bit in the middle of a file.
fn damage(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file, bytes).unwrap();
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").args([from, to]).status().unwrap();
    assert!(status.success());
}

#[test]
fn names_that_other_programs_parse_are_unchanged() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let run = |arguments: &str| shardtool(folder, arguments);
    sources(folder);
    let mut found = String::new();

    let dry_run = run("pack photos dataset --dry-run --json");
    let packed = run("pack photos dataset --shards 2 --jpeg optimize --json");
    found += &section("pack --dry-run --json", &[&dry_run]);
    found += &section("pack --json", &[&packed]);
    let run_part = |options: &str| run(&format!("pack photos parts --shards 2 {options} --json"));
    found += &section("pack --plan-only --json", &[&run_part("--plan-only")]);
    found += &section("pack --part --json", &[&run_part("--part 0/2 --jpeg keep")]);
    found += &section("status --json", &[&run("status parts --json")]);
    run_part("--part 1/2");
    found += &section("commit --json", &[&run("commit parts --json")]);
    found += &section("clean --json", &[&run("clean parts --json")]);
    found += &section("dataset.json", &[&read("dataset/dataset.json")]);
    found += &section(".packed-train.json", &[&read("dataset/.packed-train.json")]);
    found +=
        &section("a line of rejected-train.jsonl", &[read("dataset/rejected-train.jsonl").lines().next().unwrap()]);

    // The same shard under two names, so that keys occur twice.
    std::fs::create_dir(folder.join("twice")).unwrap();
    for name in ["twice/a.tfrecord", "twice/b.tfrecord"] {
        std::fs::copy(folder.join("dataset/train-00000.tfrecord"), folder.join(name)).unwrap();
    }
    found += &section("index --json", &[&run("index twice/a.tfrecord twice/b.tfrecord --split train --json")]);
    found += &section("extract --json", &[&run("extract twice extracted --json")]);
    found += &section("export --json", &[&run("export twice exported --to webdataset --json")]);
    found += &section("info --json", &[&run("info dataset --json")]);
    found += &section("ls --json", &[&run("ls dataset --json")]);
    found += &section("show --json", &[&run("show dataset 0 --json")]);
    found += &section("report --json", &[&run("report dataset --json")]);
    found += &section("reshard --json", &[&run("reshard dataset resharded --shards 3 --json")]);
    found += &section("diff --json", &[&run("diff dataset twice --json")]);

    copy(&folder.join("dataset"), &folder.join("damaged"));
    damage(&folder.join("damaged/train-00001.tfrecord"));
    found += &section("verify --json", &[&run("verify damaged --json"), &run("verify damaged --quick --json")]);
    found += &section("repair --json", &[&run("repair damaged --json")]);

    // One with an interleaved order that needs many requests, the other without.
    let (few, many) =
        (run("plan dataset --size 32 --batch 4 --json"), run("plan dataset --run 1 --window 1 --json --batch 4"));
    let scheduled = "--size 32 --batch 4 --schedule 0:1,1;2:1,2 --by-class";
    found += &section("plan --json", &[&few, &many, &run(&format!("plan dataset --json {scheduled}"))]);
    let bench = run("bench dataset --size 32 --batch 4 --epochs 1 --json");
    found += &section("bench --json", &[&bench, &run(&format!("bench dataset --epochs 1 --json {scheduled}"))]);
    let bench: Value = serde_json::from_str(&bench).unwrap();
    let stages = bench["stats"]["stages"].as_array().unwrap().iter();
    let stages: String = stages.map(|stage| format!("{}\n", stage["stage"].as_str().unwrap())).collect();
    found += &format!("# values of stats.stages[].stage\n{stages}\n");
    let prometheus = run("bench dataset --size 32 --batch 4 --epochs 1 --prometheus");
    found += &format!("# bench --prometheus\n{}\n", metrics(&prometheus));
    let prometheus = run(&format!("bench dataset --epochs 1 --prometheus {scheduled}"));
    let members: Vec<_> = prometheus.lines().filter(|line| line.contains("member_")).collect();
    found += &format!("# bench --prometheus of a schedule\n{}\n", metrics(&members.join("\n")));

    found += &section("copy --json", &[&run("copy dataset copied --json")]);
    found += &section("clone --json", &[&run("clone dataset --out cloned --json")]);
    found += &section("dataset.json of a clone", &[&read("cloned/dataset.json")]);

    let keys = ["cat", "dog"].iter().flat_map(|class| (0..8).map(move |i| format!("{class}/{i}.jpg,{i}\n")));
    std::fs::write(folder.join("rows.csv"), format!("key,row\n{}", keys.collect::<String>())).unwrap();
    found += &section("column --json", &[&run("column add copied rows.csv --json")]);
    found += &section("delete --json", &[&run("delete copied --where image/class/label=0 --json")]);
    found += &section("select --json", &[&run("select copied some --split train --where image/class/label=1 --json")]);
    found += &section("append --json", &[&run("append photos copied --replace --json")]);
    found += &section("tag --json", &[&run("tag copied paper --json")]);
    found += &section("dataset.json of a version", &[&read("copied/dataset.json")]);
    found += &section("purge --json", &[&run("purge copied --yes --search --json")]);
    found += &section("dataset.json after a purge", &[&read("copied/dataset.json")]);
    found += &section("rollback --json", &[&run("rollback copied 2 --json")]);
    found += &section("column drop --json", &[&run("column drop copied row --json")]);
    found += &section("compact --json", &[&run("compact copied --json")]);
    found += &section("log --json", &[&run("log copied --json")]);
    found += &section("gc --json", &[&run("gc copied --keep 1 --json")]);
    found += &section("index of a folder --json", &[&run("index photos --json")]);
    found += &section("dataset.json of an indexed folder", &[&read("photos/dataset.json")]);

    let split = shardtool_read::Dataset::open(folder.join("dataset")).unwrap().split("train").unwrap().clone();
    let config = shardtool_load::Config::new(split, [shardtool_load::Field::Record], 4);
    let state = shardtool_load::Loader::new(&config).unwrap().state().to_string();
    let stages = "0: 1".parse().unwrap();
    let scheduled = shardtool_load::Loader::new(&config.with_stages(stages)).unwrap().state().to_string();
    found += &section("resume state", &[&state, &scheduled]);

    // Flags by their former names.
    let plan: Value =
        serde_json::from_str(&run("plan dataset --size 32 --batch 4 --threads 1 --depth 3 --json")).unwrap();
    assert_eq!((&plan["workers"], &plan["depth"]), (&1.into(), &3.into()));

    let expected = include_str!("stable_names.txt");
    assert!(found == expected, "names differ from tests/stable_names.txt; found:\n{found}");
}
