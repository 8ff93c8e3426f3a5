//! Resume states: as written, and as a run reads them.

use std::sync::Arc;

use serde_json::{Value, json};
use shardtool_order::{Error, Identity, ResumeState, Source, mixture_fingerprint};

use super::configuration::{order, plan};
use super::{TWO_63, reason, with};

pub(super) fn states() -> Vec<Value> {
    let max = u32::MAX;
    let mut out = Vec::new();
    for (given, world) in [
        (json!({"order": "sequential"}), None),
        (json!({"order": "shuffled"}), Some(16)),
        (json!({"order": "interleaved", "run": 64, "window": 256}), None),
        (json!({"order": "interleaved", "run": max, "window": max}), Some(max)),
    ] {
        for (fingerprint, seed, epoch, p) in [(0x00c0_ffee, 0u64, 0u64, 0u64), (max, u64::MAX, u64::MAX, TWO_63)] {
            let source_crc = Source::All(1).crc();
            let identity = Identity {
                fingerprint,
                source_crc,
                stages: None,
                order: order(&given),
                seed,
                shard_world: world,
                batching: None,
            };
            let state = ResumeState::new(identity, (epoch, p));
            let members = json!({
                "fingerprint": format!("{fingerprint:08x}"), "source": r#"{"source":"all"}"#, "world": world,
                "seed": seed, "epoch": epoch, "p": p, "json": state.to_string(),
            });
            out.push(with(given.clone(), members));
        }
    }
    for datasets in [vec![0x00c0_ffeeu32, 0x0123_4567, max], vec![0x00c0_ffee], vec![0x0123_4567, 0x00c0_ffee]] {
        let fingerprints: Vec<String> = datasets.iter().map(|f| format!("{f:08x}")).collect();
        out.push(json!({"fingerprints": fingerprints, "mixture": format!("{:08x}", mixture_fingerprint(&datasets))}));
    }
    out
}

const STATE: &str = concat!(
    r#"{"version":1,"fingerprint":"00c0ffee","source":"82b6b5c1","order":"interleaved","run":2,"window":3,"#,
    r#""seed":3,"epoch":2,"p":6}"#
);

const SHARD_STATE: &str = concat!(
    r#"{"version":1,"fingerprint":"00c0ffee","source":"82b6b5c1","order":"interleaved","run":2,"window":3,"#,
    r#""world":2,"seed":3,"epoch":2,"p":6}"#
);

/// Replacements in [`STATE`] that concern its text alone.
const TEXTS: &[(&str, &str)] = &[
    // JSON.
    ("}", ""),
    ("}", "}]"),
    ("{", "[{"),
    ("}", "} "),
    ("{", "\n\t{ "),
    ("{", "\u{feff}{"),
    (":3,\"epoch\"", ":3,,\"epoch\""),
    ("\"p\":6", "\"p\":06"),
    ("\"p\":6", "\"p\":NaN"),
    // Numbers.
    ("\"p\":6", "\"p\":6.0"),
    ("\"p\":6", "\"p\":6e0"),
    ("\"p\":6", "\"p\":-6"),
    ("\"p\":6", "\"p\":-0"),
    ("\"p\":6", "\"p\":\"6\""),
    ("\"p\":6", "\"p\":null"),
    ("\"p\":6", "\"p\":true"),
    ("\"epoch\":2", "\"epoch\":18446744073709551615"),
    ("\"epoch\":2", "\"epoch\":18446744073709551616"),
    ("\"seed\":3", "\"seed\":18446744073709551616"),
    ("\"run\":2", "\"run\":0"),
    ("\"run\":2", "\"run\":4294967296"),
    ("\"run\":2", "\"run\":null"),
    ("\"window\":3", "\"window\":0"),
    ("\"window\":3", "\"window\":4294967296"),
    ("\"seed\":3", "\"world\":0,\"seed\":3"),
    ("\"seed\":3", "\"world\":4294967296,\"seed\":3"),
    ("\"seed\":3", "\"world\":null,\"seed\":3"),
    // Members.
    ("\"version\":1,", ""),
    ("\"fingerprint\":\"00c0ffee\",", ""),
    ("\"source\":\"82b6b5c1\",", ""),
    ("\"order\":\"interleaved\",", ""),
    ("\"seed\":3,", ""),
    ("\"epoch\":2,", ""),
    (",\"p\":6", ""),
    ("\"p\":6", "\"p\":6,\"p\":6"),
    ("\"p\":6", "\"p\":6,\"version\":1"),
    ("\"p\":6", "\"p\":6,\"planet\":2"),
    ("\"p\":6", "\"p\":6,\"x-planet\":2"),
    ("\"p\":6", "\"P\":6"),
    ("\"p\":6", "\"\\u0070\":6"),
    // Version.
    ("\"version\":1", "\"version\":0"),
    ("\"version\":1", "\"version\":2"),
    ("\"version\":1", "\"version\":1.0"),
    ("\"version\":1", "\"version\":\"1\""),
    ("\"version\":1", "\"version\":18446744073709551616"),
    // Strings.
    ("00c0ffee", "c0ffee"),
    ("00c0ffee", "00C0FFEE"),
    ("00c0ffee", "+0c0ffee"),
    ("\"00c0ffee\"", "12632046"),
    ("82b6b5c1", "82b6b5c10"),
    ("82b6b5c1", "82b6b5cg"),
    ("\"interleaved\"", "3"),
    ("interleaved", "random"),
    ("interleaved", "Interleaved"),
    ("interleaved", "shuffled"),
    ("interleaved", "sequential"),
    ("\"run\":2,", ""),
    ("\"window\":3,", ""),
    ("\"run\":2,\"window\":3,", ""),
];

/// Texts with several errors: the first check that fails names the reason.
const SEVERAL: &[&str] = &[
    "",
    "1",
    "null",
    "[2]",
    "{}",
    r#"{"version":2}"#,
    r#"{"version":2,"planet":null,"p":-1}"#,
    r#"{"version":2,"version":2}"#,
    r#"{"version":2,"p":1,"p":1}"#,
    r#"{"version":2"#,
    r#"{"version":1,"fingerprint":"?","source":"?","order":"?","seed":1,"epoch":1}"#,
    r#"{"version":1,"fingerprint":"?","source":"?","order":"?","seed":1,"epoch":1,"p":1}"#,
];

pub(super) fn resumes() -> Vec<Value> {
    let texts = TEXTS.iter().map(|(from, to)| edited(STATE, from, to));
    let mut cases: Vec<(String, Value)> = texts.map(|text| (text, json!({}))).collect();
    cases.extend(SEVERAL.iter().map(|&text| (text.to_owned(), json!({}))));
    // Any order of members.
    let reversed = r#"{"p":6,"epoch":2,"seed":3,"window":3,"run":2,"order":"interleaved","source":"82b6b5c1","fingerprint":"00c0ffee","version":1}"#;
    cases.push((reversed.to_owned(), json!({})));
    cases.extend(runs());
    cases.into_iter().map(|(text, more)| resumed(&text, more)).collect()
}

/// States and the members of the run that differ from the base.
fn runs() -> Vec<(String, Value)> {
    let list = json!({"kind": "list", "split": 21, "ids": [0, 2, 3, 5, 7, 9, 10, 11, 13, 17, 19]});
    let shard = json!({"policy": "shard"});
    let p = |p: u64| edited(STATE, "\"p\":6", &format!("\"p\":{p}"));
    let shard_p = |p: u64| edited(SHARD_STATE, "\"p\":6", &format!("\"p\":{p}"));
    let last = |state: &str, p: u64| {
        let state = edited(state, "\"epoch\":2", "\"epoch\":18446744073709551615");
        edited(&state, "\"p\":6", &format!("\"p\":{p}"))
    };
    let plain: &[Value] = &[
        json!({}),
        // Another dataset or run, and several differences at once.
        json!({"fingerprint": "00c0ffef"}),
        json!({"source": list}),
        json!({"order": "shuffled"}),
        json!({"order": "sequential"}),
        json!({"run": 3}),
        json!({"window": 2}),
        json!({"seed": 4}),
        json!({"fingerprint": "00c0ffef", "source": list, "order": "shuffled", "seed": 4}),
        json!({"source": list, "order": "shuffled", "seed": 4}),
        json!({"run": 3, "seed": 4}),
        json!({"seed": 4, "policy": "shard"}),
        // What may differ.
        json!({"world": 5, "batch": 1}),
        json!({"policy": "off", "remainder": "pad"}),
        // No step is left.
        json!({"remainder": "drop", "batch": 8}),
        json!({"remainder": "drop", "batch": 7}),
        shard.clone(),
    ];
    let mut out: Vec<(String, Value)> = plain.iter().map(|run| (STATE.to_owned(), run.clone())).collect();
    for (state, run) in [
        (p(0), json!({})),
        (p(21), json!({})),
        (p(22), json!({})),
        (p(u64::MAX), json!({})),
        (p(21), json!({"remainder": "drop"})),
        (p(22), shard.clone()),
        (p(0), shard.clone()),
        (shard_p(6), shard.clone()),
        (shard_p(6), json!({"policy": "shard", "world": 3})),
        (shard_p(0), json!({"policy": "shard", "world": 3})),
        (shard_p(6), json!({})),
        (shard_p(0), json!({})),
        (shard_p(7), shard.clone()),
        (shard_p(7), json!({"policy": "shard", "seed": 4})),
        // The larger share has 11 samples: p is at most 22.
        (shard_p(20), shard.clone()),
        (shard_p(22), shard.clone()),
        (shard_p(24), shard.clone()),
        (shard_p(20), json!({"policy": "shard", "remainder": "drop"})),
        // The last epoch.
        (last(STATE, 6), json!({})),
        (last(STATE, 21), json!({})),
        (last(SHARD_STATE, 22), shard.clone()),
        (last(STATE, 22), json!({})),
    ] {
        out.push((state, run));
    }
    out
}

fn edited(state: &str, from: &str, to: &str) -> String {
    assert_eq!(state.matches(from).count(), 1, "{from} in {state}");
    state.replace(from, to)
}

/// Adds where the run continues from the state, or why it is refused.
fn resumed(state: &str, more: Value) -> Value {
    let base = json!({
        "policy": "sample", "order": "interleaved", "run": 2, "window": 3, "remainder": "mask", "seed": 3, "world": 2,
        "batch": 3, "records": [4, 0, 5, 9, 2, 1], "fingerprint": "00c0ffee",
    });
    let given = with(with(base, more), json!({"state": state}));
    let computed = match resume(&given) {
        Ok((epoch, p)) => json!({"resume": [epoch, p], "refused": null}),
        Err(error) => json!({"resume": null, "refused": reason(&error)}),
    };
    with(given, computed)
}

fn resume(given: &Value) -> Result<(u64, u64), Error> {
    let plan = Arc::new(plan(given)?);
    let text = |name: &str| given[name].as_str().unwrap_or_else(|| panic!("{name}: expected a string"));
    let fingerprint = u32::from_str_radix(text("fingerprint"), 16).expect("hex digits");
    let state = ResumeState::parse(text("state"))?;
    plan.resume(&state, fingerprint)
}
