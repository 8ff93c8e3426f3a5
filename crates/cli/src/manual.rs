//! `completions` and `man`: what a shell and `man` show of the command line.

use crate::exit::Exit;
use crate::output::Output;
use anyhow::Context;
use clap_complete::{Generator, Shell};
use std::path::PathBuf;

/// Print a script that completes commands, options and their values in a shell
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  shardtool completions bash > ~/.local/share/bash-completion/completions/shardtool
  shardtool completions zsh > \"${fpath[1]}/_shardtool\"
  shardtool completions fish > ~/.config/fish/completions/shardtool.fish")]
pub(crate) struct CompletionsArguments {
    /// The shell
    shell: Shell,
}

/// Print the manual page, or write a page for each command
#[derive(clap::Args)]
pub(crate) struct ManArguments {
    /// Writes `shardtool.1` and a page for each command into this folder, instead of printing the first one
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

/// Runs `completions` for the program's command line.
pub(crate) fn completions(
    arguments: &CompletionsArguments,
    mut program: clap::Command,
    out: &mut Output,
) -> anyhow::Result<Exit> {
    program.set_bin_name("shardtool");
    program.build();
    arguments.shell.try_generate(&program, out)?;
    Ok(Exit::Success)
}

/// Runs `man` for the program's command line.
pub(crate) fn man(arguments: &ManArguments, program: clap::Command, out: &mut Output) -> anyhow::Result<Exit> {
    let program = program.disable_help_subcommand(true);
    match &arguments.out {
        Some(folder) => {
            let failed = || format!("cannot write manual pages to {}", folder.display());
            std::fs::create_dir_all(folder).with_context(failed)?;
            clap_mangen::generate_to(program, folder).with_context(failed)?;
        }
        None => clap_mangen::Man::new(program).render(out)?,
    }
    Ok(Exit::Success)
}
