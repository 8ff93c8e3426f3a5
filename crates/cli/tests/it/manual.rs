//! Completions and manual pages of all commands.

use std::process::{Command, Stdio};

/// Returns what the program prints.
fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_shardtool")).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the commands that the help lists.
fn commands() -> Vec<String> {
    let help = run(&["--help"]);
    let lines = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
    let all: Vec<_> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty() && *name != "help")
        .map(str::to_owned)
        .collect();
    assert!(all.len() > 30, "{all:?}");
    all
}

#[test]
fn completions_know_all_commands() {
    // What a script has for a command, before and after its name.
    for (shell, before, after) in [
        ("bash", "            shardtool,", ")\n"),
        ("zsh", "\n'", ":"),
        ("fish", "\"__fish_shardtool_needs_command\" -f -a \"", "\" "),
    ] {
        let script = run(&["completions", shell]);
        let is_missing = |name: &String| !script.contains(&format!("{before}{name}{after}"));
        let missing: Vec<_> = commands().into_iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "{shell}: {missing:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    for arguments in [&["completions", "bash"][..], &["completions", "zsh"], &["man"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ended =
            Command::new(env!("CARGO_BIN_EXE_shardtool")).args(arguments).stdout(full).stderr(Stdio::piped()).output();
        let ended = ended.unwrap();
        assert_eq!(ended.status.code(), Some(2), "{arguments:?}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

#[test]
fn bash_completes_commands_and_options() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("completions");
    std::fs::write(&script, run(&["completions", "bash"])).unwrap();
    for (words, current, expected) in [
        ("shardtool pa", "pa", "pack"),
        ("shardtool pack --max", "--max", "--max-side"),
        ("shardtool export --to w", "w", "webdataset"),
    ] {
        let (count, previous) = (words.split(' ').count(), words.split(' ').rev().nth(1).unwrap());
        let complete = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={}; _shardtool shardtool '{current}' '{previous}'; echo ${{COMPREPLY[@]}}",
            script.display(),
            count - 1
        );
        let done = Command::new("bash").args(["--norc", "-c", &complete]).output().unwrap();
        let found = String::from_utf8(done.stdout).unwrap();
        assert!(found.split_whitespace().any(|word| word == expected), "{words}: {found}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    run(&["man", "--out", pages.to_str().unwrap()]);
    for command in commands() {
        let page = std::fs::read_to_string(pages.join(format!("shardtool-{command}.1"))).unwrap();
        assert!(page.contains(&format!(".TH shardtool-{command} 1")) && page.contains(".SH DESCRIPTION"), "{command}");
    }
    let first = run(&["man"]);
    assert!(commands().iter().all(|command| first.contains(&format!("shardtool\\-{command}(1)"))), "{first}");
}
