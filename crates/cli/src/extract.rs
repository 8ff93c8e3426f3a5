//! `shardtool extract`.

use crate::exit::Exit;
use crate::open::SplitArguments;
use crate::output::Output;
use crate::progress::Progress;
use crate::text;
use anyhow::{Context, bail};
use rayon::prelude::*;
use serde_json::json;
use shardtool_format::Chain;
use shardtool_read::{Record, Split};
use std::ffi::OsStr;
use std::io::Write;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

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
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let (_, split) = arguments.split.open()?;
    split.check_counts()?;
    let folder = &arguments.out;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    if std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?.next().is_some() {
        bail!("{} is not empty; choose a folder that does not exist yet", folder.display());
    }
    let progress = Progress::new("extracted", "images", split.len());
    let refused = Mutex::new(vec![]);
    let refuse = |ids: Range<u64>, error: &(dyn std::error::Error + 'static)| {
        let why = Chain(error).to_string();
        refused.lock().expect("no thread panics with the list").push((ids.start, ids.end - ids.start, why));
    };
    (0..split.entry().shards.len()).into_par_iter().for_each(|number| {
        let ids = split.starts()[number]..split.starts()[number + 1];
        // A shard that cannot be opened is one line, however many records it has.
        match split.shard(number) {
            Ok(_) => ids.into_par_iter().for_each(|id| match extract(&split, id, folder) {
                Ok(bytes) => progress.advance(1, bytes),
                Err(error) => refuse(id..id + 1, error.as_ref()),
            }),
            Err(error) => refuse(ids, &error),
        }
    });
    progress.finish();
    let mut refused = refused.into_inner().expect("no thread panics with the list");
    refused.sort();
    let written = split.len() - refused.iter().map(|(_, records, _)| records).sum::<u64>();
    if arguments.json {
        let refused = refused.iter().map(|(id, records, why)| json!({"id": id, "records": records, "reason": why}));
        let refused: Vec<_> = refused.collect();
        out.json(&json!({"written": written, "out": folder.to_string_lossy(), "refused": refused}))?;
    } else {
        for (id, records, why) in &refused {
            match records {
                1 => writeln!(out, "record {id} not written: {why}")?,
                _ => writeln!(out, "records {id} to {} not written: {why}", id + records.saturating_sub(1))?,
            }
        }
        writeln!(out, "{} written to {}", text::plural(written, "image"), folder.display())?;
    }
    Ok(if refused.is_empty() { Exit::Success } else { Exit::Finding })
}

fn extract(split: &Split, id: u64, out: &Path) -> anyhow::Result<u64> {
    let record = split.get(id)?;
    let image = record.image()?.context("the record has no image")?;
    let path = out.join(path_in_out(split, &record)?);
    let folder = path.parent().context("a path inside OUT has a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut file = std::fs::File::create_new(&path).with_context(|| format!("cannot create {}", path.display()))?;
    file.write_all(image).with_context(|| format!("cannot write {}", path.display()))?;
    if let Err(error) = record.check_readable() {
        // What was written may be wrong.
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        return Err(error.into());
    }
    Ok(image.len() as u64)
}

/// Returns the path of an image relative to OUT.
fn path_in_out(split: &Split, record: &Record) -> anyhow::Result<PathBuf> {
    let key = record.key()?;
    let key = Path::new(OsStr::from_bytes(&key));
    let is_plain = |path: &Path| path.components().all(|c| matches!(c, Component::Normal(_)));
    if key.as_os_str().is_empty() || !is_plain(key) || key.as_os_str().as_bytes().contains(&0) {
        bail!("key `{}` is not a relative path inside OUT", key.display());
    }
    if key.components().count() > 1 {
        return Ok(key.to_owned());
    }
    Ok(match class(split, record)? {
        Some(class) => Path::new(&class).join(key),
        None => key.to_owned(),
    })
}

/// Returns the folder of the record's class: its name, or its id if the name is not a plain folder name.
fn class(split: &Split, record: &Record) -> anyhow::Result<Option<String>> {
    let manifest = split.manifest();
    let Some(name) = manifest.label.as_deref() else { return Ok(None) };
    let Some(label) = record.example()?.int64(name) else { return Ok(None) };
    let label = label.saturating_sub(manifest.label_offset);
    let class = usize::try_from(label).ok().and_then(|l| manifest.classes.get(l)).cloned();
    let class = class.unwrap_or_else(|| label.to_string());
    let plain = !class.is_empty() && !class.contains(['/', '\0']) && !matches!(class.as_str(), "." | "..");
    Ok(Some(if plain { class } else { label.to_string() }))
}
