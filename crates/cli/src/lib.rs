//! Last in the data's way: the command line. Each subcommand is a file that turns flags into calls of the crates before
//! it and prints what they answer; `src/main.rs` only calls [`run`].
//!
//! | module | subcommands |
//! |---|---|
//! | `pack` | images become a split of a dataset |
//! | `index`, `repair` | what can be made from records: indexes and manifests |
//! | `info`, `ls`, `show` | look at a dataset |
//! | `extract` | images back into folders |
//! | `export` | a dataset in another format |
//! | `reshard` | `reshard`, `merge`: the same records in other shards |
//! | `diff` | whether two datasets hold the same samples |
//! | `verify` | check everything |
//! | `plan`, `bench` | what a loader would do, and how fast it is |
//! | `device` | what `info` and `bench` do with CUDA devices |
//! | `demo` | all of the above on photographs of its own making |
//! | `status` | exit statuses, errors as a person reads them |
//! | `progress`, `text` | how things look in a terminal |
#![forbid(unsafe_code)]

mod bench;
mod demo;
mod device;
mod diff;
mod entries;
mod export;
mod extract;
mod index;
mod info;
mod load;
mod ls;
mod open;
mod pack;
mod plan;
mod progress;
mod repair;
mod reshard;
mod show;
mod size;
mod status;
mod text;
mod verify;

pub use progress::{Images, Progress};
pub use size::parse as parse_size;

use clap::{Parser, Subcommand};
use status::Status;
use std::ffi::OsString;
use std::process::ExitCode;

/// Packs images into checksummed, sharded datasets (TFRecord), proves them, and reads them back.
#[derive(Parser)]
#[command(name = "shardtool", version, max_term_width = 100)]
#[command(after_help = "Exit status: 0 good, 1 a finding (damage, rejected inputs), 2 could not run.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Pack(pack::Arguments),
    Info(info::Arguments),
    Ls(ls::Arguments),
    Show(show::Arguments),
    Extract(extract::Arguments),
    Export(export::Arguments),
    Reshard(reshard::Arguments),
    Merge(reshard::MergeArguments),
    Diff(diff::Arguments),
    Verify(verify::Arguments),
    Repair(repair::Arguments),
    Index(index::Arguments),
    Plan(plan::Arguments),
    Bench(bench::Arguments),
    Demo(demo::Arguments),
}

/// Runs the command line; the exit status is 0 for good, 1 for a finding, 2 where it could not run.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let result = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => dispatch(arguments.command),
        Err(error) => {
            // Help and version are answers, not errors; clap knows which stream each belongs on.
            let _ = error.print();
            return if error.use_stderr() { Status::CouldNotRun.into() } else { ExitCode::SUCCESS };
        }
    };
    status::finish(result)
}

fn dispatch(command: Command) -> anyhow::Result<Status> {
    match command {
        Command::Pack(arguments) => pack::run(&arguments),
        Command::Info(arguments) => info::run(&arguments),
        Command::Ls(arguments) => ls::run(&arguments),
        Command::Show(arguments) => show::run(&arguments),
        Command::Extract(arguments) => extract::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Reshard(arguments) => reshard::run(&arguments),
        Command::Merge(arguments) => reshard::merge(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Repair(arguments) => repair::run(&arguments),
        Command::Index(arguments) => index::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Demo(arguments) => demo::run(&arguments),
    }
}
