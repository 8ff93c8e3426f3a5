//! `shardtool plan`.

use crate::load::LoadArguments;
use crate::status::Status;
use crate::text;
use serde_json::json;
use shardtool_load::Loader;
use std::io::Write;

/// Show what a loader would do, from the index alone: steps, samples of each replica, memory
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    load: LoadArguments,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Status> {
    let config = arguments.load.config()?;
    let plan = Loader::plan(&config)?;
    let (schedule, memory) = (&plan.schedule, &plan.memory);
    let (rank, world) = (config.replica.rank(), config.replica.world());
    let mut out = std::io::stdout().lock();
    if arguments.json {
        let document = json!({
            "rank": rank, "world": world, "batch": schedule.batch(), "steps": schedule.steps(0),
            "samples_of_this_replica": schedule.samples(0, rank), "dropped": schedule.dropped(0),
            "batch_bytes": memory.batch, "scratch_bytes": memory.scratch, "workers": memory.workers,
            "depth": memory.depth, "budget_bytes": memory.budget, "memory": memory.to_string(),
        });
        writeln!(out, "{document:#}")?;
        return Ok(Status::Good);
    }
    let (steps, samples) = (text::plural(schedule.steps(0), "step"), text::plural(schedule.samples(0, rank), "sample"));
    writeln!(out, "replica {rank} of {world}: {steps} an epoch of batch {}, {samples}", schedule.batch())?;
    let dropped = schedule.dropped(0);
    if dropped > 0 {
        writeln!(
            out,
            "{} of all replicas dropped at the epoch's end (--remainder pad or mask keeps them)",
            text::plural(dropped, "sample")
        )?;
    }
    writeln!(out, "order {}; {} workers, depth {}", config.order, memory.workers, memory.depth)?;
    writeln!(out, "budget {}: {memory}", text::bytes(memory.budget))?;
    Ok(Status::Good)
}
