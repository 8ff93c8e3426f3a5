//! `shardtool plan`.

use crate::exit::Exit;
use crate::headings;
use crate::load::LoadArguments;
use crate::output::Output;
use crate::plan_requests::Requests;
use crate::text;
use serde_json::json;
use shardtool_load::{Loader, MAX_COUNTED_ROWS, PlannedStage, ReplicaShare};
use std::io::Write;

/// Show what a loader would do: steps, reads of each replica, memory, and requests to an object store in each order
///
/// Reads the manifest, and the indexes of datasets with up to 256 shards, whose requests it counts exactly. The requests of
/// larger datasets are estimated.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    load: LoadArguments,
    /// Print one JSON document
    #[arg(long, help_heading = headings::OUTPUT)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let config = arguments.load.config()?;
    let plan = Loader::plan(&config)?;
    let (schedule, memory) = (&plan.schedule, &plan.memory);
    let shares = Loader::shares(&config)?;
    let world = config.replica.world();
    let rank = config.replica.rank();
    let requests = Requests::count(&config, arguments.load.interleaved(), &shares[rank as usize])?;
    if arguments.json {
        let document = json!({
            "world": world, "batch": schedule.batch(), "steps": schedule.steps(0),
            "replicas": shares.iter().map(replica).collect::<Vec<_>>(), "dropped": schedule.dropped(0),
            "batch_bytes": memory.batch, "scratch_bytes": memory.scratch, "workers": memory.workers,
            "depth": memory.prefetch, "budget_bytes": memory.budget, "memory": memory.to_string(),
            "store": requests.document(), "stages": plan.stages.iter().map(stage).collect::<Vec<_>>(),
        });
        out.json(&document)?;
        return Ok(Exit::Success);
    }
    let (steps, replicas) = (text::plural(schedule.steps(0), "step"), text::plural(world.into(), "replica"));
    writeln!(out, "{replicas}, each with {steps} per epoch, batch {}", schedule.batch())?;
    writeln!(out, "  {:>7} {:>13} {:>11} {:>9} {:>11}", "replica", "samples", "padding", "shards", "reads")?;
    for share in &shares {
        let (shards, bytes) = (text::count(share.reads.shards), text::bytes(share.reads.bytes));
        let (samples, padding) = (text::count(share.samples), text::count(share.padding));
        writeln!(out, "  {:>7} {samples:>13} {padding:>11} {shards:>9} {bytes:>11}", share.rank)?;
    }
    if shares.iter().any(|share| share.reads.estimated) {
        let counted = text::count(MAX_COUNTED_ROWS);
        let note = format!("shards and reads are estimated for a random order: they are counted up to {counted} rows");
        writeln!(out, "{}", text::wrapped(&note, "  "))?;
    }
    print_stages(&plan.stages, out)?;
    requests.print(rank, out)?;
    let dropped = schedule.dropped(0);
    if dropped > 0 {
        let samples = text::plural(dropped, "sample");
        let note =
            format!("{samples} of all replicas dropped at the end of the epoch (--remainder pad or mask keeps them)");
        writeln!(out, "{}", text::wrapped(&note, "  "))?;
    }
    writeln!(
        out,
        "order {}; {} workers, {} prefetched",
        config.order,
        memory.workers,
        text::plural_irregular(memory.prefetch, "batch", "batches")
    )?;
    writeln!(out, "memory budget {}:", text::bytes(memory.budget))?;
    let parts = memory.to_string().replace("; ", ";\n");
    parts.lines().try_for_each(|part| writeln!(out, "{}", text::wrapped(&format!("  {part}"), "    ")))?;
    Ok(Exit::Success)
}

/// Prints where each stage of a schedule begins, and the shares of its members.
fn print_stages(stages: &[PlannedStage], out: &mut Output) -> anyhow::Result<()> {
    for (number, stage) in stages.iter().enumerate() {
        let (epoch, position) = stage.at;
        let after = if position == 0 { String::new() } else { format!(" after {}", text::plural(position, "sample")) };
        let shares: Vec<String> = stage
            .shares
            .iter()
            .map(|(name, share)| format!("{} {}", text::printable(name.as_bytes()), text::percent(*share)))
            .collect();
        let line = format!("stage {number} from epoch {epoch}{after}: {}", shares.join(", "));
        writeln!(out, "{}", text::wrapped(&line, "  "))?;
    }
    if stages.len() > 1 {
        writeln!(out, "{}", text::wrapped("reads and requests are those of epoch 0; later stages read others", "  "))?;
    }
    Ok(())
}

fn stage(stage: &PlannedStage) -> serde_json::Value {
    let shares = stage.shares.iter().map(|(name, share)| json!({"member": name, "share": share}));
    json!({"start": stage.start, "epoch": stage.at.0, "position": stage.at.1, "shares": shares.collect::<Vec<_>>()})
}

fn replica(share: &ReplicaShare) -> serde_json::Value {
    json!({
        "rank": share.rank, "samples": share.samples, "padding": share.padding,
        "shards": share.reads.shards, "bytes_estimated": share.reads.bytes, "shards_estimated": share.reads.estimated,
    })
}
