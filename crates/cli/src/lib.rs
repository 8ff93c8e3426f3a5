//! The command line. Each subcommand is a file that turns flags into calls of the library crates and prints the results;
//! `src/main.rs` only calls [`run`].
//!
//! | module | contents |
//! |---|---|
//! | `pack` | packs images into a split of a dataset |
//! | `parts` | `commit`, `status`, `clean`: a pack in parts |
//! | `index`, `repair` | rebuild indexes and manifests from records |
//! | `info`, `ls`, `show` | describe a dataset, its records, one record |
//! | `spec` | what of the specification a dataset uses, for `info` |
//! | `condition` | conditions on features: which records a command shows |
//! | `extract` | writes images back into folders |
//! | `export` | writes a dataset in another format |
//! | `reshard` | `reshard`, `merge`: write the same records into other shards |
//! | `copy`, `clone` | copy a dataset to another place, or make another one of its shards |
//! | `change` | `append`, `delete`, `column`, `tag`, `rollback`, `compact`, `gc`, `log`: versions of a dataset |
//! | `diff` | compares the samples of two datasets |
//! | `verify` | checks every record, index and file |
//! | `store_memory` | how many shards of a store are read at once, and with how much memory |
//! | `plan`, `bench` | show what a loader would do; measure a loader |
//! | `plan_requests` | what an epoch costs from an object store, for `plan` |
//! | `device` | CUDA devices, for `info` and `bench` |
//! | `view`, `report` | show a dataset in a browser; write a report of it (feature `view`) |
//! | `demo` | generates photographs, packs, verifies and reads them |
//! | `manual` | `completions`, `man`: what a shell and `man` show of the command line |
//! | `open`, `load`, `schedule`, `entries`, `choice`, `float_range`, `several_values` | arguments that several subcommands share |
//! | `headings` | headings of the options in `--help` |
//! | `exit` | exit statuses, and how errors are printed |
//! | `interrupt` | Ctrl-C and SIGTERM |
//! | `output` | standard output and standard error, escaped |
//! | `progress`, `text` | progress, numbers and text in a terminal |
//!
//! `unsafe` occurs only in `interrupt`.
#![deny(unsafe_code)]

mod bench;
mod change;
mod choice;
mod clone;
mod condition;
mod copy;
mod demo;
mod device;
mod diff;
mod entries;
mod exit;
mod export;
mod extract;
mod float_range;
mod headings;
mod index;
mod info;
mod interrupt;
mod load;
mod ls;
mod manual;
mod open;
mod output;
mod pack;
mod parts;
mod plan;
mod plan_requests;
mod progress;
mod repair;
#[cfg(feature = "view")]
mod report;
mod reshard;
mod schedule;
mod several_values;
mod show;
mod spec;
mod store_memory;
mod text;
mod verify;
#[cfg(feature = "view")]
mod view;

pub use progress::{Images, Progress};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use exit::Exit;
use output::Output;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Packs images into checksummed, sharded datasets (TFRecord), verifies them, and loads them for training.
#[derive(Parser)]
#[command(name = "shardtool", version, max_term_width = 100)]
#[command(after_help = "Exit status: 0 success, 1 a finding (damage, rejected inputs), 2 could not run, 130 Ctrl-C.")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Pack(pack::Arguments),
    Append(change::append::Arguments),
    Delete(change::delete::Arguments),
    Select(change::select::Arguments),
    Column(change::column::Arguments),
    Compact(change::compact::Arguments),
    Log(change::log::Arguments),
    Tag(change::tag::Arguments),
    Rollback(change::rollback::Arguments),
    Gc(change::gc::Arguments),
    Purge(change::purge::Arguments),
    Info(info::Arguments),
    Ls(ls::Arguments),
    Show(show::Arguments),
    Extract(extract::Arguments),
    Export(export::Arguments),
    Reshard(reshard::Arguments),
    Merge(reshard::MergeArguments),
    Commit(parts::CommitArguments),
    Status(parts::StatusArguments),
    Clean(parts::CleanArguments),
    Copy(copy::Arguments),
    Clone(clone::Arguments),
    Diff(diff::Arguments),
    Verify(verify::Arguments),
    Repair(repair::Arguments),
    Index(index::Arguments),
    Plan(plan::Arguments),
    Bench(bench::Arguments),
    #[cfg(feature = "view")]
    View(view::Arguments),
    #[cfg(feature = "view")]
    Report(report::Arguments),
    Demo(demo::Arguments),
    Completions(manual::CompletionsArguments),
    Man(manual::ManArguments),
}

/// Runs the command line and returns its exit status: 0 for success, 1 for a finding, 2 if the command could not run.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.collect();
    let command = if arguments.iter().any(|a| a == "-h") { short_help() } else { Arguments::command() };
    let parsed = command.try_get_matches_from(arguments).and_then(|matches| Arguments::from_arg_matches(&matches));
    let result = match parsed {
        Ok(arguments) => {
            let mut out = Output::stdout();
            output::print_warnings();
            let simd = shardtool_host::simd::check_simd().map_err(anyhow::Error::from);
            simd.and_then(|_| dispatch(arguments.command, &mut out)).and_then(|exit| Ok(out.flush().map(|()| exit)?))
        }
        Err(error) => {
            // clap reports `--help` and `--version` as errors too, for standard output.
            let _ = error.print();
            return if error.use_stderr() { Exit::CouldNotRun.into() } else { ExitCode::SUCCESS };
        }
    };
    interrupt::finish(result)
}

/// Returns the command line as `-h` shows it: one line for each of the most used options, and where the others are.
fn short_help() -> clap::Command {
    Arguments::command().mut_subcommands(|command| {
        let hidden = command.get_arguments().filter(|option| option.is_hide_short_help_set()).count();
        let more = match hidden {
            0 => String::new(),
            n => format!(
                "{} and details: shardtool {} --help",
                text::plural(n as u64, "more option"),
                command.get_name()
            ),
        };
        let short = |option: clap::Arg| match option.get_action().takes_values() {
            true => option.hide_possible_values(true),
            false => option,
        };
        command.mut_args(short).after_help(more)
    })
}

fn dispatch(command: Command, out: &mut Output) -> anyhow::Result<Exit> {
    match command {
        Command::Pack(arguments) => pack::run(&arguments, out),
        Command::Append(arguments) => change::append::run(&arguments, out),
        Command::Delete(arguments) => change::delete::run(&arguments, out),
        Command::Select(arguments) => change::select::run(&arguments, out),
        Command::Column(arguments) => change::column::run(&arguments, out),
        Command::Compact(arguments) => change::compact::run(&arguments, out),
        Command::Log(arguments) => change::log::run(&arguments, out),
        Command::Tag(arguments) => change::tag::run(&arguments, out),
        Command::Rollback(arguments) => change::rollback::run(&arguments, out),
        Command::Gc(arguments) => change::gc::run(&arguments, out),
        Command::Purge(arguments) => change::purge::run(&arguments, out),
        Command::Info(arguments) => info::run(&arguments, out),
        Command::Ls(arguments) => ls::run(&arguments, out),
        Command::Show(arguments) => show::run(&arguments, out),
        Command::Extract(arguments) => extract::run(&arguments, out),
        Command::Export(arguments) => export::run(&arguments, out),
        Command::Reshard(arguments) => reshard::run(&arguments, out),
        Command::Merge(arguments) => reshard::merge(&arguments, out),
        Command::Commit(arguments) => parts::commit(&arguments, out),
        Command::Status(arguments) => parts::status(&arguments, out),
        Command::Clean(arguments) => parts::clean(&arguments, out),
        Command::Copy(arguments) => copy::run(&arguments, out),
        Command::Clone(arguments) => clone::run(&arguments, out),
        Command::Diff(arguments) => diff::run(&arguments, out),
        Command::Verify(arguments) => verify::run(&arguments, out),
        Command::Repair(arguments) => repair::run(&arguments, out),
        Command::Index(arguments) => index::run(&arguments, out),
        Command::Plan(arguments) => plan::run(&arguments, out),
        Command::Bench(arguments) => bench::run(&arguments, out),
        #[cfg(feature = "view")]
        Command::View(arguments) => view::run(&arguments, out),
        #[cfg(feature = "view")]
        Command::Report(arguments) => report::run(&arguments, out),
        Command::Demo(arguments) => demo::run(&arguments, out),
        Command::Completions(arguments) => manual::completions(&arguments, Arguments::command(), out),
        Command::Man(arguments) => manual::man(&arguments, Arguments::command(), out),
    }
}
