//! Output of `shardtool pack`.

use super::Arguments;
use crate::exit::Exit;
use crate::output::Output;
use crate::text;
use serde_json::{Value, json};
use shardtool_format::Chain;
use shardtool_format::manifest::FeatureType;
use shardtool_pack::{Optimized, PackedPart, Part, Plan, PlannedShard, Rejection, Summary};
use std::io::Write;

/// Names of files that a line lists, at most.
const LISTED: usize = 8;

/// Writes one document: that of the only split, else all of them.
fn documents(arguments: &Arguments, mut splits: Vec<Value>, out: &mut Output) -> anyhow::Result<()> {
    match splits.len() {
        1 => out.json(&splits.swap_remove(0)),
        _ => out.json(&json!({ "destination": arguments.destination.to_string_lossy(), "splits": splits })),
    }
}

/// Prints the files and folders of the source that no split takes.
pub(crate) fn print_left_out(left_out: &[String], out: &mut Output) -> std::io::Result<()> {
    for text in left_out {
        writeln!(out, "  left out: {}", text::printable(text.as_bytes()))?;
    }
    Ok(())
}

/// Prints what `--dry-run` found, and returns whether there are rejected inputs.
pub(super) fn print_plans(arguments: &Arguments, plans: &[Plan], out: &mut Output) -> anyhow::Result<Exit> {
    match arguments.json {
        true => documents(arguments, plans.iter().map(plan_json).collect(), out)?,
        false => {
            plans.iter().try_for_each(|plan| print_plan(plan, out))?;
            print_left_out(plans[0].left_out(), out)?;
            writeln!(out, "Nothing was written.")?;
        }
    }
    Ok(if plans.iter().all(|plan| plan.rejected().is_empty()) { Exit::Success } else { Exit::Finding })
}

fn plan_json(plan: &Plan) -> Value {
    let shard = |s: PlannedShard| json!({"file": s.file, "images": s.images, "source_bytes": s.source_bytes});
    let feature = |f: FeatureType| json!({"name": f.name, "type": f.dtype.name()});
    let reject = |r: &Rejection| json!({"input": r.input, "reason": Chain(&r.reason).to_string()});
    json!({
        "split": plan.split(), "inputs": plan.inputs(), "left_out": plan.left_out(), "samples": plan.samples(),
        "images": plan.images(), "source_bytes": plan.source_bytes(), "classes": plan.classes(),
        "features": plan.features().into_iter().map(feature).collect::<Vec<_>>(),
        "shards": plan.shards().map(shard).collect::<Vec<_>>(),
        "rejected": plan.rejected().iter().map(reject).collect::<Vec<_>>(),
    })
}

fn print_plan(plan: &Plan, out: &mut Output) -> std::io::Result<()> {
    let (images, bytes) = (text::plural(plan.images(), "image"), text::bytes(plan.source_bytes()));
    let classes = text::plural_irregular(plan.classes().len() as u64, "class", "classes");
    writeln!(out, "would pack {images} of {classes}, {bytes}, as split {}:", plan.split())?;
    for input in plan.inputs() {
        writeln!(out, "  from {}", text::printable(input.as_bytes()))?;
    }
    for shard in plan.shards() {
        let bytes = text::bytes(shard.source_bytes);
        writeln!(out, "  {:<28} {:>12}  {bytes:>9}", shard.file, text::plural(shard.images, "image"))?;
    }
    for rejected in plan.rejected() {
        let (input, reason) = (text::printable(rejected.input.as_bytes()), Chain(&rejected.reason));
        writeln!(out, "  rejected: {input}: {reason}")?;
    }
    Ok(())
}

/// Prints what `--plan-only` wrote.
pub(super) fn print_written_plans(
    arguments: &Arguments,
    plans: &[(Plan, bool)],
    out: &mut Output,
) -> anyhow::Result<Exit> {
    let destination = arguments.destination.display();
    if arguments.json {
        let document = |(plan, complete): &(Plan, bool)| {
            json!({
                "destination": arguments.destination.to_string_lossy(), "split": plan.split(), "images": plan.images(),
                "source_bytes": plan.source_bytes(), "shards": plan.shards().count(), "rejected": plan.rejected().len(),
                "already_complete": complete,
            })
        };
        documents(arguments, plans.iter().map(document).collect(), out)?;
    } else {
        for (plan, complete) in plans {
            let split = plan.split();
            if *complete {
                writeln!(out, "already complete: split {split} of {destination}")?;
                continue;
            }
            let shards = text::plural(plan.shards().count() as u64, "shard");
            writeln!(
                out,
                "planned {} in {shards} of {destination}, split {split}",
                text::plural(plan.images(), "image")
            )?;
        }
        print_left_out(plans[0].0.left_out(), out)?;
        if plans.iter().any(|(_, complete)| !complete) {
            let split = if plans.len() > 1 { ", for each split with --split NAME" } else { "" };
            writeln!(
                out,
                "  next: the same command with --part I/N instead of --plan-only, for each I from 0 to N - 1{split}"
            )?;
        }
    }
    Ok(if plans.iter().all(|(plan, _)| plan.rejected().is_empty()) { Exit::Success } else { Exit::Finding })
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
            "destination": arguments.destination.to_string_lossy(), "split": packed.split, "part": part.to_string(),
            "planned_shards": packed.planned_shards, "shards": packed.shards, "resumed_shards": packed.resumed_shards,
            "images": packed.records, "bytes": packed.bytes, "rejected": packed.rejected,
            "already_complete": packed.already_complete, "seconds": seconds,
            "jpeg": packed.optimized.as_ref().map(optimized_json), "converted_to_png": packed.converted,
            "truncated": packed.truncated, "metadata_removed": packed.stripped, "reduced_to_rgb8": packed.reduced,
        }))?;
    } else if packed.already_complete {
        writeln!(out, "already complete: split {} of {destination}", packed.split)?;
    } else {
        let shards = text::plural(packed.shards, "shard");
        let (planned, bytes) = (text::count(packed.planned_shards), text::bytes(packed.bytes));
        writeln!(
            out,
            "part {part}: packed {} into {shards} of {planned} ({bytes}) of {destination}, split {}",
            text::plural(packed.records, "record"),
            packed.split
        )?;
        if packed.resumed_shards > 0 {
            let resumed = text::count(packed.resumed_shards);
            writeln!(out, "  {resumed} of these shards were already finished by other attempts")?;
        }
        if packed.rejected > 0 {
            writeln!(out, "  {} rejected; `shardtool commit` lists them", text::plural(packed.rejected, "input"))?;
        }
        print_converted(out, packed.converted)?;
        print_truncated(out, packed.truncated)?;
        print_stripped(arguments, packed.stripped, out)?;
        print_reduced(out, packed.reduced)?;
        writeln!(out, "  {seconds:.2} s; next, when all parts are packed: shardtool commit {destination}")?;
    }
    Ok(if packed.rejected > 0 { Exit::Finding } else { Exit::Success })
}

/// Prints what was packed.
pub(super) fn print_summaries(
    arguments: &Arguments,
    summaries: &[Summary],
    seconds: f64,
    out: &mut Output,
) -> anyhow::Result<()> {
    if arguments.json {
        return documents(arguments, summaries.iter().map(|one| summary_json(arguments, one, seconds)).collect(), out);
    }
    let several = summaries.len() > 1;
    for summary in summaries {
        print_summary(arguments, summary, several, seconds, out)?;
    }
    print_left_out(&summaries[0].left_out, out)?;
    Ok(())
}

fn summary_json(arguments: &Arguments, summary: &Summary, seconds: f64) -> Value {
    let split = &summary.split;
    json!({
        "destination": arguments.destination.to_string_lossy(), "split": split.name, "inputs": summary.inputs,
        "left_out": summary.left_out, "samples": summary.samples, "images": split.records(),
        "shards": split.shards.len(), "bytes": split.bytes(), "classes": summary.classes,
        "fingerprint": format!("{:08x}", split.fingerprint()), "rejected": summary.rejected,
        "rejected_file": summary.rejected_file, "resumed_shards": summary.resumed_shards,
        "already_complete": summary.already_complete,
        "source_bytes": summary.source_bytes, "seconds": seconds,
        "jpeg": summary.optimized.as_ref().map(optimized_json), "converted_to_png": summary.converted,
        "truncated": summary.truncated, "metadata_removed": summary.stripped, "reduced_to_rgb8": summary.reduced,
    })
}

fn print_summary(
    arguments: &Arguments,
    summary: &Summary,
    several: bool,
    seconds: f64,
    out: &mut Output,
) -> anyhow::Result<()> {
    let split = &summary.split;
    let (images, rate) = (split.records() as f64 / seconds.max(1e-6), summary.source_bytes as f64 / seconds.max(1e-6));
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
    if several || summary.inputs.len() > 1 || split.name != "train" {
        let (names, all) = (&summary.inputs[..summary.inputs.len().min(LISTED)], summary.inputs.len());
        let more =
            if all > LISTED { format!(" and {} more", text::count((all - LISTED) as u64)) } else { String::new() };
        writeln!(out, "  from {}{more}", text::printable(names.join(", ").as_bytes()))?;
    }
    let (samples, records, rejected) = (
        text::plural(summary.samples, "sample"),
        text::plural(split.records(), "record"),
        text::count(summary.rejected),
    );
    writeln!(out, "  {samples} = {records} + {rejected} rejected")?;
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
    print_converted(out, summary.converted)?;
    if let Some(optimized) = &summary.optimized {
        print_optimized(out, optimized)?;
    }
    print_truncated(out, summary.truncated)?;
    if !summary.already_complete {
        print_stripped(arguments, summary.stripped, out)?;
        print_reduced(out, summary.reduced)?;
    }
    if let Some(file) = &summary.rejected_file {
        let rejected = text::plural(summary.rejected, "input");
        writeln!(out, "  {rejected} rejected; each is listed with its reason in {}", file.display())?;
    }
    Ok(())
}

/// Prints how many records have images that were converted because their format is not stored.
fn print_converted(out: &mut Output, records: u64) -> std::io::Result<()> {
    match records {
        0 => Ok(()),
        _ => writeln!(out, "  {} with images of other formats, converted to PNG", text::plural(records, "record")),
    }
}

/// Prints how many records have images whose metadata was removed, if that was asked for.
fn print_stripped(arguments: &Arguments, records: u64, out: &mut Output) -> std::io::Result<()> {
    match arguments.strip_metadata {
        true => writeln!(out, "  metadata removed from the images of {}", text::plural(records, "record")),
        false => Ok(()),
    }
}

/// Prints how many records have images that hold less than their files, because they were resized or stored as pixels.
fn print_reduced(out: &mut Output, records: u64) -> std::io::Result<()> {
    match records {
        0 => Ok(()),
        _ => writeln!(
            out,
            "  {} with images of 16 bits or with alpha, stored as RGB of 8 bits without it",
            text::plural(records, "record")
        ),
    }
}

fn print_truncated(out: &mut Output, truncated: u64) -> std::io::Result<()> {
    if truncated > 0 {
        let records = text::plural(truncated, "record");
        writeln!(
            out,
            "  {records} with cut or damaged images, packed as --truncated fill says; loaders need the same option"
        )?;
    }
    Ok(())
}

fn optimized_json(o: &Optimized) -> Value {
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
