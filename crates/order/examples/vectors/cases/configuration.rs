//! Sources, orders and plans from the JSON members that describe them in vectors.

use std::num::NonZeroU32;

use serde_json::Value;
use shardtool_order::{
    Balanced, Error, List, Member, Mixture, Order, Plan, Policy, Remainder, Replicas, Scheduled, Source, StageWeights,
    Weighted,
};

pub(super) fn int(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}: expected a u64"))
}

pub(super) fn ints(value: &Value) -> Vec<u64> {
    value.as_array().unwrap_or_else(|| panic!("{value}: expected an array")).iter().map(int).collect()
}

pub(super) fn number(value: &Value) -> NonZeroU32 {
    u32::try_from(int(value))
        .ok()
        .and_then(NonZeroU32::new)
        .unwrap_or_else(|| panic!("{value}: expected 1 to 2^32 - 1"))
}

fn pairs(value: &Value) -> impl Iterator<Item = (&Value, &Value)> + Clone {
    value.as_array().into_iter().flatten().map(|pair| (&pair[0], &pair[1]))
}

/// Makes the source that the member `source` describes; without it, everything.
pub(super) fn source(given: &Value) -> Result<Source, Error> {
    let source = &given["source"];
    let draws = source["draws"].as_u64();
    Ok(match source["kind"].as_str() {
        None => Source::All(ints(&given["records"]).iter().sum()),
        Some("all") => Source::All(int(&source["split"])),
        Some("list") => Source::List(List::new(ints(&source["ids"]), int(&source["split"]))?),
        // More samples than fit in memory: only the number of source positions is computed.
        Some("balanced") if source["count"].is_u64() => {
            Source::All(Balanced::source_positions(int(&source["classes"]), int(&source["count"]))?)
        }
        Some("balanced") => {
            let samples = pairs(&source["samples"]).map(|(id, label)| (int(id), label.as_i64().expect("a label")));
            Source::Balanced(Balanced::new(samples))
        }
        Some("weighted") => Source::Weighted(Weighted::new(ints(&source["weights"]), draws)?),
        Some("mixture") => {
            let datasets: Vec<_> = pairs(&source["datasets"]).map(|(size, share)| (int(size), int(share))).collect();
            Source::Mixture(Mixture::new(&datasets, draws)?)
        }
        Some("scheduled") => Source::Scheduled(scheduled(source)?),
        Some(kind) => panic!("source {kind}"),
    })
}

/// Makes the scheduled source that a vector's member `source` describes.
pub(super) fn scheduled(source: &Value) -> Result<Scheduled, Error> {
    let member = |member: &Value| match member.get("ids") {
        Some(ids) => Member::List(ints(ids).into()),
        None => Member::Range { first: int(&member[0]), len: int(&member[1]) },
    };
    let stage = |stage: &Value| StageWeights { start: int(&stage["start"]), weights: ints(&stage["weights"]) };
    let list = |name: &str| source[name].as_array().unwrap_or_else(|| panic!("{name}: expected an array")).iter();
    let stages: Vec<StageWeights> = list("stages").map(stage).collect();
    Scheduled::new(list("members").map(member).collect(), &stages, int(&source["draws"]), int(&source["split"]))
}

/// Makes the order that the members `order`, `run` and `window` describe.
pub(super) fn order(given: &Value) -> Order {
    match given["order"].as_str() {
        Some("sequential") => Order::Sequential,
        Some("shuffled") => Order::Shuffled,
        _ => Order::Interleaved { run: number(&given["run"]), window: number(&given["window"]) },
    }
}

/// Makes the plan that a vector's members describe.
pub(super) fn plan(given: &Value) -> Result<Plan, Error> {
    let (source, replicas) = (source(given)?, replicas(given, number(&given["batch"])));
    Plan::new(source, order(given), int(&given["seed"]), replicas, &ints(&given["records"]))
}

/// Makes the replicas that a vector's members describe. Without a remainder, the order's default.
pub(super) fn replicas(given: &Value, batch: NonZeroU32) -> Replicas {
    Replicas {
        world: number(&given["world"]),
        batch,
        policy: match given["policy"].as_str() {
            Some("sample") => Policy::Sample,
            Some("shard") => Policy::Shard,
            _ => Policy::Off,
        },
        remainder: match given["remainder"].as_str() {
            None => None,
            Some("drop") => Some(Remainder::Drop),
            Some("pad") => Some(Remainder::Pad),
            Some(_) => Some(Remainder::Mask),
        },
    }
}
