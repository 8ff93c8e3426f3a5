//! Results of the vectors of buckets and packing, from their given members.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde_json::{Value, json};
use shardtool_order::{
    AspectRatios, Bucket, BucketReplicas, Buckets, Domain, Error, Identity, ImageShape, LengthBounds, Longer,
    PackedPlan, Packing, Plan, ResumeState, Rng, Row, Shape, Truncation, Walk, key, shapes_within,
};

use super::configuration::{int, ints, number, order, plan, replicas, source};

/// Returns the computed members of a vector of the file with this name.
pub(crate) fn answer(file: &str, given: &Value) -> Value {
    let computed = match file {
        "keys" => Ok(keys(given)),
        "shapes" => shapes(given),
        "buckets" if given["row"].is_u64() => candidates(given),
        "buckets" => bucket_step(given),
        "packing" => packed_step(given),
        "refusals" => batched(given).map(|_| json!({"refused": null})),
        "states" => Ok(state(given)),
        "resumes" => resume(given).map(|(epoch, p)| json!({"resume": [epoch, p], "refused": null})),
        _ => panic!("vectors {file}"),
    };
    computed.unwrap_or_else(|error| match file {
        "resumes" => json!({"resume": null, "refused": reason(&error)}),
        _ => json!({"refused": reason(&error)}),
    })
}

/// The name of a reason in the specification: the name of the error's variant.
fn reason(error: &Error) -> String {
    format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}

fn hex(value: u64) -> String {
    format!("{value:016x}")
}

fn keys(given: &Value) -> Value {
    let domain = match given["domain"].as_str() {
        Some("step") => Domain::Step,
        Some("mix") => Domain::Mix,
        Some("bucket") => Domain::Bucket,
        Some("batches") => Domain::Batches,
        Some("packed") => Domain::Packed,
        other => panic!("domain {other:?}"),
    };
    let k = key(domain, int(&given["seed"]), int(&given["epoch"]), int(&given["tweak"]));
    let (mut words, mut floats, mut dice) = (Rng::new(k), Rng::new(k), Rng::new(k));
    json!({
        "key": hex(k),
        "words": (0..4).map(|_| hex(words.next_u64())).collect::<Vec<_>>(),
        "floats_times_2_53": (0..4).map(|_| (floats.next_f64() * (1u64 << 53) as f64) as u64).collect::<Vec<_>>(),
        "below_1000": (0..4).map(|_| dice.below(1000)).collect::<Vec<_>>(),
    })
}

fn image_shape(sides: &Value) -> ImageShape {
    ImageShape { height: number(&sides[0]), width: number(&sides[1]) }
}

fn shape(dimensions: &Value) -> Shape {
    match dimensions.as_array().map(Vec::len) {
        Some(1) => Shape::Length(number(&dimensions[0])),
        _ => Shape::Image(image_shape(dimensions)),
    }
}

fn list<T>(values: &Value, each: impl Fn(&Value) -> T) -> Vec<T> {
    values.as_array().unwrap_or_else(|| panic!("{values}: expected an array")).iter().map(each).collect()
}

fn shapes(given: &Value) -> Result<Value, Error> {
    if given["cells"].is_u64() {
        let shapes = shapes_within(number(&given["step"]), number(&given["cells"]), number(&given["ratio"]))?;
        let sides = shapes.iter().map(|shape| [shape.height, shape.width]);
        return Ok(json!({"shapes": sides.collect::<Vec<_>>()}));
    }
    if given["sizes"].is_array() {
        let ratios = AspectRatios::new(&list(&given["shapes"], image_shape))?;
        let nearest = |size: &Value| ratios.nearest(number(&size[0]), number(&size[1]));
        return Ok(json!({"nearest": list(&given["sizes"], nearest)}));
    }
    if given["bounds"].is_array() {
        let longer = if given["longer"] == "last" { Longer::Last } else { Longer::Refuse };
        let bounds: Vec<u32> = ints(&given["bounds"]).into_iter().map(|bound| bound as u32).collect();
        let assigned = LengthBounds::new(&bounds, longer)?.assign(ints(&given["lengths"]))?;
        return Ok(json!({"by_length": assigned}));
    }
    let budget = int(&given["budget"]);
    Ok(json!({"batches": list(&given["dimensions"], |dimensions| shape(dimensions).batch_within(budget))}))
}

/// Returns the entries of `members` or `lengths`.
fn expanded(values: &Value) -> Vec<u64> {
    match values["cycle"].is_array() {
        true => ints(&values["cycle"]).into_iter().cycle().take(int(&values["count"]) as usize).collect(),
        false => ints(values),
    }
}

/// A plan of any kind.
enum Batched {
    Rows(Arc<Plan>),
    Packed(Arc<PackedPlan>),
}

fn batched(given: &Value) -> Result<Batched, Error> {
    let (seed, order) = (int(&given["seed"]), order(given));
    Ok(match given["batching"].as_str() {
        Some("buckets") => {
            let source = source(given)?;
            let bucket = |entry: &Value| Bucket { shape: shape(&entry[0]), batch: number(&entry[1]) };
            let members = expanded(&given["members"]);
            let buckets = Buckets::new(list(&given["buckets"], bucket), members.iter().map(|&y| y as u16))?;
            let common = replicas(given, NonZeroU32::MIN);
            let replicas = BucketReplicas { world: common.world, policy: common.policy, remainder: common.remainder };
            Batched::Rows(Arc::new(Plan::bucketed(source, order, seed, replicas, Arc::new(buckets))?))
        }
        Some("packing") => {
            let source = source(given)?;
            let truncation = if given["longer"] == "refuse" { Truncation::Refuse } else { Truncation::Truncate };
            let (capacity, window) = (number(&given["capacity"]), number(&given["pack_window"]));
            let packing = Packing::new(expanded(&given["lengths"]), capacity, window, truncation)?;
            let replicas = replicas(given, number(&given["batch"]));
            Batched::Packed(Arc::new(PackedPlan::new(source, order, seed, replicas, Arc::new(packing))?))
        }
        _ => Batched::Rows(Arc::new(plan(given)?)),
    })
}

fn bucketed(given: &Value) -> Result<Arc<Plan>, Error> {
    match batched(given)? {
        Batched::Rows(plan) => Ok(plan),
        Batched::Packed(_) => panic!("expected buckets: {given}"),
    }
}

fn walk(plan: &Arc<Plan>, given: &Value, rank: u32) -> Walk {
    plan.walk(int(&given["epoch"]), rank).expect("a rank of the plan")
}

fn bucket_step(given: &Value) -> Result<Value, Error> {
    let plan = bucketed(given)?;
    let (schedule, epoch, p) = (plan.schedule(), int(&given["epoch"]), int(&given["p"]));
    let (mut bucket, mut rows, mut ids, mut augment) = (vec![], vec![], vec![], vec![]);
    for rank in 0..schedule.world() {
        let mut walk = walk(&plan, given, rank);
        bucket.push(walk.bucket(p));
        let text = |row| match row {
            Row::Sample(q) => q.to_string(),
            Row::Repeat(q) => format!("+{q}"),
            Row::Masked => "-".to_owned(),
        };
        rows.push(walk.rows(p).map(text).collect::<Vec<_>>());
        let samples: Vec<_> = walk.rows(p).map(|row| row.position().map(|q| walk.sample(q))).collect();
        ids.push(samples.iter().map(|s| s.map_or(-1, |s| s.id as i64)).collect::<Vec<_>>());
        let draw = |v| hex(Rng::augment(plan.seed(), epoch, v).next_u64());
        augment.push(samples.iter().map(|s| s.map(|s| draw(s.source_position))).collect::<Vec<_>>());
    }
    let (after, dropped) = (schedule.after(epoch, p), walk(&plan, given, 0).dropped(p));
    Ok(json!({
        "steps_left": schedule.steps(p), "dropped": dropped, "after": [after.0, after.1], "bucket": bucket, "rows": rows,
        "ids": ids, "augment": augment, "crc32c": plan.identity(0).batching.map(|crc| format!("{crc:08x}")),
    }))
}

fn candidates(given: &Value) -> Result<Value, Error> {
    let plan = bucketed(given)?;
    let mut walk = walk(&plan, given, int(&given["rank"]) as u32);
    let position = walk.rows(int(&given["p"])).nth(int(&given["row"]) as usize).and_then(Row::position);
    let candidates: Vec<u64> = position.into_iter().flat_map(|q| walk.substitute_positions(q)).collect();
    let ids: Vec<u64> = candidates.iter().map(|&q| walk.sample(q).id).collect();
    Ok(json!({"position": position, "candidates": candidates, "ids": ids}))
}

fn packed_step(given: &Value) -> Result<Value, Error> {
    let Batched::Packed(plan) = batched(given)? else { panic!("expected packing: {given}") };
    let (mut epoch, p) = (plan.epoch(int(&given["epoch"])), int(&given["p"]));
    let (mut packed, mut ids) = (vec![], vec![]);
    for rank in 0..epoch.schedule().world() {
        let (mut own, mut own_ids) = (vec![], vec![]);
        for row in epoch.schedule().rows(p, rank) {
            let samples = row.position().map_or(vec![], |e| epoch.row(e).to_vec());
            let positions = samples.iter().map(|s| s.position.to_string()).collect::<Vec<_>>().join(" ");
            own.push(match row {
                Row::Sample(_) => positions,
                Row::Repeat(_) => format!("+{positions}"),
                Row::Masked => "-".to_owned(),
            });
            samples.iter().for_each(|s| assert_eq!(epoch.sample(s.position), s.sample));
            own_ids.push(samples.iter().map(|s| s.sample.id).collect::<Vec<_>>());
        }
        packed.push(own);
        ids.push(own_ids);
    }
    let schedule = epoch.schedule();
    let after = schedule.after(int(&given["epoch"]), p);
    Ok(json!({
        "units": epoch.rows(), "steps_left": schedule.steps(p), "after": [after.0, after.1], "packed": packed, "ids": ids,
        "crc32c": plan.identity(0).batching.map(|crc| format!("{crc:08x}")),
    }))
}

fn state(given: &Value) -> Value {
    let text = |name: &str| given[name].as_str().unwrap_or_else(|| panic!("{name}: expected a string"));
    let crc = |text: &str| shardtool_format::checksum::crc32c(text.as_bytes());
    let identity = Identity {
        fingerprint: u32::from_str_radix(text("fingerprint"), 16).expect("hex digits"),
        source_crc: crc(text("source")),
        stages: None,
        order: order(given),
        seed: int(&given["seed"]),
        shard_world: None,
        batching: Some(crc(text("batching_json"))),
    };
    json!({"json": ResumeState::new(identity, (int(&given["epoch"]), int(&given["p"]))).to_string()})
}

fn resume(given: &Value) -> Result<(u64, u64), Error> {
    let text = |name: &str| given[name].as_str().unwrap_or_else(|| panic!("{name}: expected a string"));
    let fingerprint = u32::from_str_radix(text("fingerprint"), 16).expect("hex digits");
    let plan = batched(given)?;
    let state = ResumeState::parse(text("state"))?;
    match plan {
        Batched::Rows(plan) => plan.resume(&state, fingerprint),
        Batched::Packed(plan) => plan.resume(&state, fingerprint),
    }
}
