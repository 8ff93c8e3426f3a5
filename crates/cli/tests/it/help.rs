//! Help at 80 columns: every option has a heading, no line is too long, and `-h` has one line per option.

use std::process::{Command, Stdio};

/// Commands with many options.
const COMMANDS: [&str; 9] = ["pack", "bench", "plan", "export", "index", "ls", "verify", "reshard", "merge"];

/// Returns what a command prints for `-h` or `--help` in a terminal of 80 columns.
fn help(command: &str, flag: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_shardtool"))
        .args([command, flag])
        .env("COLUMNS", "80")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{command} {flag}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the options under each heading.
fn options(help: &str) -> Vec<(String, String)> {
    let mut heading = String::new();
    let mut found = vec![];
    for line in help.lines() {
        if !line.starts_with(' ') && line.ends_with(':') {
            heading = line.to_owned();
        } else if let Some(name) = line.strip_prefix("      --") {
            let name = name.split([' ', '.']).next().unwrap();
            found.push((heading.clone(), name.to_owned()));
        }
    }
    found
}

#[test]
fn every_option_has_a_heading() {
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let found = options(&help(command, flag));
            assert!(found.len() >= 3, "{command} {flag}: {found:?}");
            for (heading, name) in found {
                assert!(heading != "Options:", "{command} {flag}: --{name} has no heading");
            }
        }
    }
}

#[test]
fn no_line_is_longer_than_80_columns() {
    for command in COMMANDS {
        for flag in ["-h", "--help"] {
            let long: Vec<_> =
                help(command, flag).lines().filter(|line| line.chars().count() > 80).map(str::to_owned).collect();
            assert!(long.is_empty(), "{command} {flag}: {long:#?}");
        }
    }
}

#[test]
fn short_help_has_one_line_per_option_and_says_where_the_others_are() {
    for command in COMMANDS {
        let (short, long) = (help(command, "-h"), help(command, "--help"));
        let (of_short, of_long) = (options(&short), options(&long));
        assert!(of_short.iter().all(|option| of_long.contains(option)), "{command}: {of_short:?} {of_long:?}");
        let (_, listed) = short.split_once("\n\n").unwrap();
        let continued: Vec<_> = listed
            .split_once(":\n  -")
            .map_or("", |(_, options)| options)
            .lines()
            .filter(|line| line.starts_with("   ") && !line.trim_start().starts_with('-'))
            .collect();
        assert!(continued.is_empty(), "{command}: options of several lines: {continued:#?}");
        let hidden = of_long.len() - of_short.len();
        let noun = if hidden == 1 { "option" } else { "options" };
        let hint = format!("{hidden} more {noun} and details: shardtool {command} --help");
        assert_eq!(short.contains(&hint), hidden > 0, "{command}: {hint}\n{short}");
    }
    let lines = help("pack", "-h").lines().count();
    assert!(lines <= 60, "`pack -h` has {lines} lines");
}
