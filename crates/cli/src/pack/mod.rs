//! `shardtool pack`.

mod arguments;
mod keypoints;
mod report;
mod source_arguments;

pub(crate) use arguments::{Arguments, NamesArgument};
pub(crate) use report::print_left_out;
pub(crate) use source_arguments::SourceArguments;

use crate::exit::{self, Exit};
use crate::interrupt::{self, Interrupted};
use crate::output::Output;
use crate::progress::Images;
use shardtool_pack as pack;

pub(crate) fn run(arguments: &Arguments, out: &mut Output) -> anyhow::Result<Exit> {
    let options = arguments.options();
    if arguments.dry_run {
        return match pack::plan_splits(&options) {
            Ok(plans) => report::print_plans(arguments, &plans, out),
            Err(error) => failed(error),
        };
    }
    if arguments.plan_only {
        return match pack::write_plans(&options, &()) {
            Ok(plans) => report::print_written_plans(arguments, &plans, out),
            Err(error) => failed(error),
        };
    }
    interrupt::declare(Interrupted::Stops(
        "interrupted: finished shards are kept; the same command continues after them",
    ));
    let progress = Images::new("packed");
    if let Some(part) = arguments.part {
        let packed = pack::pack_part(&options, part, &progress);
        progress.finish();
        return match packed {
            Ok(packed) => report::print_part(arguments, part, &packed, progress.seconds(), out),
            Err(error) => failed(error),
        };
    }
    let packed = pack::pack_splits(&options, &progress);
    progress.finish();
    match packed {
        Ok(summaries) => {
            report::print_summaries(arguments, &summaries, progress.seconds(), out)?;
            Ok(if summaries.iter().any(|split| split.rejected > 0) { Exit::Finding } else { Exit::Success })
        }
        Err(error) => failed(error),
    }
}

/// Exits with a finding if `--on-error fail` stopped at a rejected input.
pub(crate) fn failed(error: pack::Error) -> anyhow::Result<Exit> {
    match error {
        pack::Error::Rejected(_) | pack::Error::RejectedBefore { .. } => {
            exit::print_error(&error);
            Ok(Exit::Finding)
        }
        error => Err(error.into()),
    }
}
