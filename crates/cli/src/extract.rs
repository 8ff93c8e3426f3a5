//! `shardtool extract`.

use crate::exit::Exit;
use crate::headings;
use crate::interrupt::{self, Interrupted};
use crate::open::SplitArguments;
use crate::output::Output;
use crate::progress::Images;
use crate::text;
use serde_json::json;
use shardtool_format::Chain;
use shardtool_pack::{ExtractOptions, Refused, extract};
use std::io::Write;
use std::path::PathBuf;

/// Write the images back into folders, byte for byte
///
/// The key of an image is its path inside OUT; if the key has no folder, the image goes into a folder of its class. A key
/// that leads outside OUT and the second of two equal keys are refused and listed (exit status 1).
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    split: SplitArguments,
    /// A folder that does not exist yet, or is empty
    out: PathBuf,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let (dataset, split) = arguments.split.open()?;
    dataset.check_source_folders()?;
    let folder = &arguments.out;
    interrupt::declare(Interrupted::Exits("interrupted: no image is in OUT; the same command starts again"));
    let progress = Images::new("extracted");
    let extracted = extract(&split, folder, &ExtractOptions::default(), &progress);
    progress.finish();
    let extracted = extracted?;
    let refused = &extracted.refused;
    if arguments.json {
        let refused = |Refused { ids, reason, .. }: &Refused| json!({"id": ids.start, "records": ids.end - ids.start, "reason": Chain(reason).to_string()});
        let refused: Vec<_> = extracted.refused.iter().map(refused).collect();
        out.json(&json!({
            "written": extracted.written, "out": folder.to_string_lossy(), "refused": refused,
            "already_complete": extracted.already_complete,
        }))?;
    } else {
        for Refused { ids, reason, .. } in refused {
            match ids.end - ids.start {
                1 => writeln!(out, "record {} not written: {}", ids.start, Chain(reason))?,
                _ => writeln!(
                    out,
                    "records {} to {} not written: {}",
                    ids.start,
                    ids.end.saturating_sub(1),
                    Chain(reason)
                )?,
            }
        }
        let verb = if extracted.already_complete { "already complete: " } else { "" };
        writeln!(out, "{verb}{} written to {}", text::plural(extracted.written, "image"), folder.display())?;
    }
    Ok(if refused.is_empty() { Exit::Success } else { Exit::Finding })
}
