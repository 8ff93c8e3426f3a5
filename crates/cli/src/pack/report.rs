//! Output of `shardtool pack`.

use super::Arguments;
use crate::exit::Exit;
use crate::output::Output;
use crate::text;
use serde_json::json;
use shardtool_format::Chain;
use shardtool_pack::{Optimized, PackedPart, Part, Plan, PlannedShard, Summary};
use std::io::Write;

/// Prints what `--dry-run` found, and returns whether there are rejected inputs.
pub(super) fn print_plan(arguments: &Arguments, plan: &Plan, out: &mut Output) -> anyhow::Result<Exit> {
    let features: Vec<_> = plan.features().iter().map(|f| (f.name.clone(), f.dtype.name())).collect();
    let rejected: Vec<_> = plan.rejected().iter().map(|r| (r.input.clone(), Chain(&r.reason).to_string())).collect();
    if arguments.json {
        let shard = |s: PlannedShard| json!({"file": s.file, "images": s.images, "source_bytes": s.source_bytes});
        let shards: Vec<_> = plan.shards(&arguments.split).map(shard).collect();
        let feature = |(name, kind): &(String, &str)| json!({"name": name, "type": kind});
        let reject = |(input, reason): &(String, String)| json!({"input": input, "reason": reason});
        let document = json!({
            "split": arguments.split, "images": plan.images(), "source_bytes": plan.source_bytes(),
            "classes": plan.classes(), "features": features.iter().map(feature).collect::<Vec<_>>(), "shards": shards,
            "rejected": rejected.iter().map(reject).collect::<Vec<_>>(),
        });
        out.json(&document)?;
    } else {
        let (images, bytes) = (text::plural(plan.images(), "image"), text::bytes(plan.source_bytes()));
        let classes = text::plural_irregular(plan.classes().len() as u64, "class", "classes");
        writeln!(out, "would pack {images} of {classes}, {bytes}, as split {}:", arguments.split)?;
        for shard in plan.shards(&arguments.split) {
            let bytes = text::bytes(shard.source_bytes);
            writeln!(out, "  {:<28} {:>12}  {bytes:>9}", shard.file, text::plural(shard.images, "image"))?;
        }
        for (input, reason) in &rejected {
            writeln!(out, "  rejected: {}: {reason}", text::printable(input.as_bytes()))?;
        }
        writeln!(out, "Nothing was written.")?;
    }
    Ok(if rejected.is_empty() { Exit::Success } else { Exit::Finding })
}

/// Prints what `--plan-only` wrote.
pub(super) fn print_written_plan(
    arguments: &Arguments,
    plan: &Plan,
    complete: bool,
    out: &mut Output,
) -> anyhow::Result<Exit> {
    let (shards, destination) = (plan.shards(&arguments.split).count() as u64, arguments.destination.display());
    if arguments.json {
        out.json(&json!({
            "destination": arguments.destination.to_string_lossy(), "split": arguments.split, "images": plan.images(),
            "source_bytes": plan.source_bytes(), "shards": shards, "rejected": plan.rejected().len(),
            "already_complete": complete,
        }))?;
    } else if complete {
        writeln!(out, "already complete: split {} of {destination}", arguments.split)?;
    } else {
        let (images, shards) = (text::plural(plan.images(), "image"), text::plural(shards, "shard"));
        writeln!(out, "planned {images} in {shards} of {destination}, split {}", arguments.split)?;
        writeln!(out, "  next: the same command with --part I/N instead of --plan-only, for each I from 0 to N - 1")?;
    }
    Ok(if plan.rejected().is_empty() { Exit::Success } else { Exit::Finding })
}

/// Prints what a part packed.
pub(super) fn print_part(
    arguments: &Arguments,
    part: Part,
    packed: &PackedPart,
    seconds: f64,
    out: &mut Output,
) -> anyhow::Result<Exit> {
    let destination = arguments.destination.display();
    if arguments.json {
        out.json(&json!({
            "destination": arguments.destination.to_string_lossy(), "split": arguments.split, "part": part.to_string(),
            "planned_shards": packed.planned_shards, "shards": packed.shards, "resumed_shards": packed.resumed_shards,
            "images": packed.records, "bytes": packed.bytes, "rejected": packed.rejected,
            "already_complete": packed.already_complete, "seconds": seconds,
            "jpeg": packed.optimized.as_ref().map(optimized_json),
        }))?;
    } else if packed.already_complete {
        writeln!(out, "already complete: split {} of {destination}", arguments.split)?;
    } else {
        let shards = text::plural(packed.shards, "shard");
        let (planned, bytes) = (text::count(packed.planned_shards), text::bytes(packed.bytes));
        writeln!(
            out,
            "part {part}: packed {} into {shards} of {planned} ({bytes}) of {destination}, split {}",
            text::plural(packed.records, "record"),
            arguments.split
        )?;
        if packed.resumed_shards > 0 {
            let resumed = text::count(packed.resumed_shards);
            writeln!(out, "  {resumed} of these shards were already finished by other attempts")?;
        }
        if packed.rejected > 0 {
            writeln!(out, "  {} rejected; `shardtool commit` lists them", text::plural(packed.rejected, "input"))?;
        }
        writeln!(out, "  {seconds:.2} s; next, when all parts are packed: shardtool commit {destination}")?;
    }
    Ok(if packed.rejected > 0 { Exit::Finding } else { Exit::Success })
}

/// Prints what was packed.
pub(super) fn print_summary(
    arguments: &Arguments,
    summary: &Summary,
    seconds: f64,
    out: &mut Output,
) -> anyhow::Result<()> {
    let split = &summary.split;
    let (images, rate) = (split.records() as f64 / seconds.max(1e-6), summary.source_bytes as f64 / seconds.max(1e-6));
    if arguments.json {
        let document = json!({
            "destination": arguments.destination.to_string_lossy(), "split": split.name, "images": split.records(),
            "shards": split.shards.len(), "bytes": split.bytes(), "classes": summary.classes,
            "fingerprint": format!("{:08x}", split.fingerprint()), "rejected": summary.rejected,
            "rejected_file": summary.rejected_file, "resumed_shards": summary.resumed_shards,
            "already_complete": summary.already_complete,
            "source_bytes": summary.source_bytes, "seconds": seconds,
            "jpeg": summary.optimized.as_ref().map(optimized_json),
        });
        out.json(&document)?;
        return Ok(());
    }
    let verb = if summary.already_complete { "already complete:" } else { "packed" };
    writeln!(
        out,
        "{verb} {} of {} {} {} ({}) of {}, split {}",
        text::plural(split.records(), if summary.with_images { "image" } else { "record" }),
        text::plural_irregular(summary.classes, "class", "classes"),
        if summary.already_complete { "in" } else { "into" },
        text::plural(split.shards.len() as u64, "shard"),
        text::bytes(split.bytes()),
        arguments.destination.display(),
        split.name
    )?;
    if !summary.with_images {
        writeln!(out, "  the source has no images: records hold its other values")?;
    }
    if summary.resumed_shards > 0 {
        let shards = text::plural(summary.resumed_shards, "shard");
        writeln!(out, "  {shards} were already finished by an interrupted run")?;
    }
    let fingerprint = split.fingerprint();
    if summary.already_complete {
        writeln!(out, "  same source and options: nothing was written; fingerprint {fingerprint:08x}")?;
    } else {
        writeln!(
            out,
            "  {seconds:.2} s, {} images/s, {:.0} MB/s; fingerprint {fingerprint:08x}",
            text::count(images as u64),
            rate / 1e6
        )?;
    }
    if let Some(optimized) = &summary.optimized {
        print_optimized(out, optimized)?;
    }
    if let Some(file) = &summary.rejected_file {
        let rejected = text::plural(summary.rejected, "input");
        writeln!(out, "  {rejected} rejected; each is listed with its reason in {}", file.display())?;
    }
    Ok(())
}

fn optimized_json(o: &Optimized) -> serde_json::Value {
    json!({
        "optimized": o.images, "opened": o.opened, "bytes_before": o.bytes_before, "bytes_after": o.bytes_after,
        "kept": o.kept, "refused": o.refused,
    })
}

fn print_optimized(out: &mut Output, o: &Optimized) -> std::io::Result<()> {
    let share = 100.0 * o.bytes_after.abs_diff(o.bytes_before) as f64 / o.bytes_before.max(1) as f64;
    let change = if o.bytes_after > o.bytes_before { "more" } else { "saved" };
    let bytes = text::bytes(o.bytes_after.abs_diff(o.bytes_before));
    writeln!(out, "  {} transcoded, {bytes} ({share:.1} %) {change}", text::plural(o.images, "JPEG"))?;
    if o.opened > 0 {
        writeln!(out, "  {} of these were progressive: a crop now decodes only its rows", text::count(o.opened))?;
    }
    if o.kept > 0 {
        writeln!(out, "  {} unchanged: already smallest", text::plural(o.kept, "JPEG"))?;
    }
    for (name, images) in &o.refused {
        writeln!(out, "  {} unchanged: {name}", text::plural(*images, "JPEG"))?;
    }
    Ok(())
}
