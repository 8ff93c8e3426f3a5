//! Results of the vectors of `order-spec.md`.

#[path = "../../../order/examples/vectors/cases/configuration.rs"]
mod configuration;

use configuration::{int, ints, order, plan, source};
use serde_json::{Value, json};
use shardtool_order::{
    Domain, EpochOrder, Error, Identity, Order, Permutation, Plan, ResumeState, Rng, Row, Walk, key,
    mixture_fingerprint, substitutes,
};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file of vectors");
    text.lines().map(|line| answer(&serde_json::from_str(line).expect("a line of JSON"))).collect()
}

fn answer(given: &Value) -> Value {
    match given["vector"].as_str() {
        Some("keys") => keys(given),
        Some("permutations") => permutation(given),
        Some("orders") => positions(given),
        Some("sources") => ids(given),
        Some("steps") => step(given),
        Some("substitutes") => candidates(given),
        Some("refusals") => json!({"refused": plan(given).err().map(|error| reason(&error))}),
        Some("states") => state(given),
        Some("resumes") => match resume(given) {
            Ok((epoch, p)) => json!({"resume": [epoch, p], "refused": null}),
            Err(error) => json!({"resume": null, "refused": reason(&error)}),
        },
        _ => json!({"unsupported": true}),
    }
}

/// Returns the name of a reason in the specification: that of the error's variant.
fn reason(error: &Error) -> String {
    format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}

fn text<'a>(given: &'a Value, name: &str) -> &'a str {
    given[name].as_str().unwrap_or_else(|| panic!("{name}: expected a string"))
}

fn hex(value: u64) -> String {
    format!("{value:016x}")
}

fn keys(given: &Value) -> Value {
    let domain = match text(given, "domain") {
        "shuffled" => Domain::Shuffled,
        "blocks" => Domain::Blocks,
        "window" => Domain::Window,
        "pack" => Domain::Pack,
        "shard" => Domain::Shard,
        "spare" => Domain::Substitute,
        "weighted" => Domain::Weighted,
        "augment" => Domain::Augment,
        other => panic!("domain {other}"),
    };
    let [seed, epoch, tweak] = ["seed", "epoch", "tweak"].map(|name| int(&given[name]));
    let k = key(domain, seed, epoch, tweak);
    let draws = || Rng::new(k);
    let (mut words, mut floats, mut dice, mut bounded) = (draws(), draws(), draws(), draws());
    let mut answer = json!({
        "key": hex(k),
        "words": (0..4).map(|_| hex(words.next_u64())).collect::<Vec<_>>(),
        "floats_times_2_53": (0..4).map(|_| (floats.next_f64() * (1u64 << 53) as f64) as u64).collect::<Vec<_>>(),
        "below_1000": (0..4).map(|_| dice.below(1000)).collect::<Vec<_>>(),
    });
    if given["bounds"].is_array() {
        let below: Vec<u32> = ints(&given["bounds"]).into_iter().map(|n| bounded.below(n as u32)).collect();
        answer["below"] = json!(below);
    }
    answer
}

fn permutation(given: &Value) -> Value {
    match Permutation::new(int(&given["len"]), u64::from_str_radix(text(given, "key"), 16).expect("hex digits")) {
        Ok(permutation) => {
            json!({"y": ints(&given["x"]).into_iter().map(|x| permutation.forward(x)).collect::<Vec<_>>()})
        }
        Err(error) => json!({"refused": reason(&error)}),
    }
}

fn positions(given: &Value) -> Value {
    match EpochOrder::new(order(given), int(&given["len"]), int(&given["seed"]), int(&given["epoch"])) {
        Ok(order) => json!({"place": ints(&given["position"]).into_iter().map(|q| order.at(q)).collect::<Vec<_>>()}),
        Err(error) => json!({"refused": reason(&error)}),
    }
}

fn ids(given: &Value) -> Value {
    let source = source(given).expect("a valid source");
    let (seed, epoch) = (int(&given["seed"]), int(&given["epoch"]));
    let ids: Vec<u64> =
        ints(&given["place"]).into_iter().map(|v| source.id(Order::Sequential, seed, epoch, v)).collect();
    json!({
        "len": source.len(), "id": ids, "json": source.canonical_json(), "crc32c": format!("{:08x}", source.crc()),
    })
}

/// Returns a value of each row that each replica has in the step at p.
fn rows<T>(plan: &Arc<Plan>, given: &Value, value: impl Fn(&mut Walk, Row) -> T) -> Vec<Vec<T>> {
    let rows = |rank| {
        let mut walk = plan.walk(int(&given["epoch"]), rank).expect("a rank of the plan");
        plan.schedule().rows(int(&given["p"]), rank).map(|row| value(&mut walk, row)).collect()
    };
    (0..plan.schedule().world()).map(rows).collect()
}

fn step(given: &Value) -> Value {
    let plan = Arc::new(plan(given).expect("a valid configuration"));
    let (schedule, epoch, p) = (plan.schedule(), int(&given["epoch"]), int(&given["p"]));
    let after = schedule.after(epoch, p);
    let draw = |walk: &mut Walk, row: Row| {
        let v = walk.sample(row.position()?).source_position;
        Some(hex(Rng::augment(plan.seed(), epoch, v).next_u64()))
    };
    let row = |row: Row| match row {
        Row::Sample(q) => q.to_string(),
        Row::Repeat(q) => format!("+{q}"),
        Row::Masked => "-".to_owned(),
    };
    json!({
        "steps_left": schedule.steps(p), "dropped": schedule.dropped(p), "after": [after.0, after.1],
        "remainder": format!("{:?}", schedule.remainder()).to_lowercase(),
        "rows": rows(&plan, given, |_, found| row(found)),
        "ids": rows(&plan, given, |walk, row| row.position().map_or(-1, |q| walk.sample(q).id as i64)),
        "augment": rows(&plan, given, draw),
    })
}

fn candidates(given: &Value) -> Value {
    if !given["row"].is_u64() {
        let [seed, epoch, q, len] = ["seed", "epoch", "position", "len"].map(|name| int(&given[name]));
        return json!({"candidates": substitutes(seed, epoch, q, len).collect::<Vec<_>>()});
    }
    let plan = Arc::new(plan(given).expect("a valid configuration"));
    let rank = int(&given["rank"]) as u32;
    let mut walk = plan.walk(int(&given["epoch"]), rank).expect("a rank of the plan");
    let row = plan.schedule().rows(int(&given["p"]), rank).nth(int(&given["row"]) as usize);
    let position = row.and_then(|row| row.position());
    let candidates: Vec<u64> = position.into_iter().flat_map(|q| walk.substitute_positions(q)).collect();
    let ids: Vec<u64> = candidates.iter().map(|&q| walk.sample(q).id).collect();
    json!({"position": position, "candidates": candidates, "ids": ids})
}

fn number(hex: &str) -> u32 {
    u32::from_str_radix(hex, 16).expect("hex digits")
}

fn state(given: &Value) -> Value {
    if let Some(fingerprints) = given["fingerprints"].as_array() {
        let datasets: Vec<u32> = fingerprints.iter().map(|f| number(f.as_str().expect("hex digits"))).collect();
        return json!({"mixture": format!("{:08x}", mixture_fingerprint(&datasets))});
    }
    let identity = Identity {
        fingerprint: number(text(given, "fingerprint")),
        source_crc: shardtool_format::checksum::crc32c(text(given, "source").as_bytes()),
        stages: None,
        order: order(given),
        seed: int(&given["seed"]),
        shard_world: given["world"].as_u64().map(|world| world as u32),
        batching: None,
    };
    json!({"json": ResumeState::new(identity, (int(&given["epoch"]), int(&given["p"]))).to_string()})
}

fn resume(given: &Value) -> Result<(u64, u64), Error> {
    let plan = Arc::new(plan(given)?);
    let state = ResumeState::parse(text(given, "state"))?;
    plan.resume(&state, number(text(given, "fingerprint")))
}
