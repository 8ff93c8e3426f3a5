//! Results of the vectors of schedules, from their given members.

use std::sync::Arc;

use serde_json::{Value, json};
use shardtool_format::checksum::crc32c;
use shardtool_order::{
    Domain, Error, Member, Plan, ResumeState, Rng, Row, Scheduled, StageWeights, Walk, key, mixture_fingerprint,
};

use super::configuration::{int, ints, plan, scheduled};

/// Returns the computed members of a vector of the file with this name.
pub(crate) fn answer(file: &str, given: &Value) -> Value {
    let computed = match file {
        "keys" => Ok(keys(given)),
        "turns" => turns(given),
        "steps" => step(given),
        "substitutes" => substitutes(given),
        "refusals" => plan(given).map(|_| json!({"refused": null})),
        "states" => state(given),
        "resumes" => resume(given).map(|(epoch, p)| json!({"resume": [epoch, p], "refused": null})),
        _ => panic!("vectors {file}"),
    };
    computed.unwrap_or_else(|error| match (file, &error) {
        ("resumes", Error::StateStages { stage }) => json!({"resume": null, "refused": "StateStages", "stage": stage}),
        ("resumes", _) => json!({"resume": null, "refused": reason(&error)}),
        _ => json!({"refused": reason(&error)}),
    })
}

/// The name of a reason in the specification: the name of the error's variant.
fn reason(error: &Error) -> String {
    format!("{error:?}").chars().take_while(char::is_ascii_alphanumeric).collect()
}

fn keys(given: &Value) -> Value {
    let domain = match given["domain"].as_str() {
        Some("member") => Domain::Member,
        Some("phase") => Domain::Phase,
        other => panic!("domain {other:?}"),
    };
    let k = key(domain, int(&given["seed"]), int(&given["epoch"]), int(&given["tweak"]));
    let mut words = Rng::new(k);
    let hex = |value: u64| format!("{value:016x}");
    json!({"key": hex(k), "words": (0..4).map(|_| hex(words.next_u64())).collect::<Vec<_>>()})
}

/// The turns of one stage, and those with which a period may begin.
fn turns(given: &Value) -> Result<Value, Error> {
    const LEN: u64 = 1 << 20;
    let weights = ints(&given["weights"]);
    let len = weights.len() as u64;
    let members = (0..len).map(|d| Member::Range { first: d * LEN, len: LEN }).collect();
    let source = Scheduled::new(members, &[StageWeights { start: 0, weights }], LEN, len * LEN)?;
    let sum: u64 = source.weights(0).iter().sum();
    let found: Vec<u64> = (0..sum as u32).map(|k| source.turn_member(0, k) as u64).collect();
    let firsts: Vec<u64> = source.period_firsts(0).iter().map(|first| u64::from(*first)).collect();
    let digest = |numbers: &[u64]| {
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        format!("{:08x}", crc32c(&bytes))
    };
    Ok(match found.len() {
        ..=200 => json!({"turns": found, "firsts": firsts}),
        _ => json!({"turns_crc32c": digest(&found), "firsts_crc32c": digest(&firsts)}),
    })
}

fn walk(given: &Value, rank: u32) -> Result<(Arc<Plan>, Walk), Error> {
    let plan = Arc::new(plan(given)?);
    let walk = plan.walk(int(&given["epoch"]), rank)?;
    Ok((plan, walk))
}

fn step(given: &Value) -> Result<Value, Error> {
    let (epoch, p) = (int(&given["epoch"]), int(&given["p"]));
    let (mut rows, mut ids, mut augment) = (vec![], vec![], vec![]);
    let plan = walk(given, 0)?.0;
    for rank in 0..plan.schedule().world() {
        let (plan, mut walk) = walk(given, rank)?;
        let own: Vec<Row> = walk.rows(p).collect();
        rows.push(
            own.iter()
                .map(|row| match row {
                    Row::Sample(q) => q.to_string(),
                    Row::Repeat(q) => format!("+{q}"),
                    Row::Masked => "-".to_owned(),
                })
                .collect::<Vec<_>>(),
        );
        let id = |row: &Row| {
            row.position().map_or(json!(-1), |q| {
                let sample = walk.sample(q);
                assert_eq!(sample.source_position, q);
                assert_eq!(plan.source().id(super::configuration::order(given), plan.seed(), epoch, q), sample.id);
                json!(sample.id)
            })
        };
        ids.push(own.iter().map(id).collect::<Vec<_>>());
    }
    for rank in 0..plan.schedule().world() {
        let (plan, mut walk) = walk(given, rank)?;
        let draw = |v| format!("{:016x}", Rng::new(key(Domain::Augment, plan.seed(), epoch, v)).next_u64());
        let own: Vec<Row> = walk.rows(p).collect();
        let drawn = own.iter().map(|row| row.position().map(|q| draw(walk.sample(q).source_position)));
        augment.push(drawn.collect::<Vec<_>>());
    }
    let schedule = plan.schedule();
    let counts: Vec<String> =
        scheduled(&given["source"])?.counts(plan.seed(), epoch, p).iter().map(u128::to_string).collect();
    let (json, crc) = (plan.source().canonical_json(), plan.source().crc());
    let after = schedule.after(epoch, p);
    Ok(json!({
        "steps_left": schedule.steps(p), "dropped": schedule.dropped(p), "after": [after.0, after.1], "rows": rows, "ids": ids, "augment": augment,
        "counts": counts, "json": json, "crc32c": format!("{crc:08x}"),
    }))
}

fn substitutes(given: &Value) -> Result<Value, Error> {
    let (_, mut walk) = walk(given, 0)?;
    let samples = walk.substitutes(int(&given["position"]));
    assert!(samples.iter().all(|sample| sample.source_position == int(&given["position"])));
    Ok(json!({"candidates": samples.iter().map(|sample| sample.id).collect::<Vec<_>>()}))
}

/// The fingerprint that a state at this position has: of the splits up to the one that holds the last id.
fn fingerprint(given: &Value, plan: &Plan, at: (u64, u64)) -> u32 {
    let texts = given["fingerprints"].as_array().expect("fingerprints").iter();
    let all: Vec<u32> =
        texts.map(|text| u32::from_str_radix(text.as_str().expect("a text"), 16).expect("hex digits")).collect();
    let end = plan.ids_end(at).unwrap_or(u64::MAX);
    let before = ints(&given["split_lens"]).into_iter().scan(0, |sum, len| Some(std::mem::replace(sum, *sum + len)));
    match &all[..before.filter(|first| *first < end).count()] {
        [one] => *one,
        several => mixture_fingerprint(several),
    }
}

fn state(given: &Value) -> Result<Value, Error> {
    let (plan, at) = (plan(given)?, (int(&given["epoch"]), int(&given["p"])));
    let state = plan.state(at, fingerprint(given, &plan, at));
    let json = state.to_string();
    assert!(json.len() < 300, "{json}");
    assert_eq!(ResumeState::parse(&json).ok(), Some(state));
    Ok(json!({"json": json}))
}

fn resume(given: &Value) -> Result<(u64, u64), Error> {
    let state = ResumeState::parse(given["state"].as_str().expect("a state"))?;
    let plan = plan(given)?;
    plan.resume(&state, fingerprint(given, &plan, (state.epoch, state.p)))
}
