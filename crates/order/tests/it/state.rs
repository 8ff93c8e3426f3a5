//! The JSON of resume states, and the states that a run refuses.

use std::num::NonZeroU32;
use std::sync::Arc;

use shardtool_order::{Error, Identity, Order, Plan, Policy, Remainder, Replicas, ResumeState, Source, TransformMarks};

fn interleaved(run: u32, window: u32) -> Order {
    let number = |n| NonZeroU32::new(n).expect("not 0");
    Order::Interleaved { run: number(run), window: number(window) }
}

fn state(order: Order, shard_world: Option<u32>, batching: Option<u32>) -> ResumeState {
    let identity = Identity {
        fingerprint: 0xabcd,
        source_crc: u32::MAX,
        stages: None,
        order,
        seed: u64::MAX,
        shard_world,
        batching,
    };
    ResumeState::new(identity, (u64::MAX, u64::MAX))
}

#[test]
fn json_round_trips_and_is_short() {
    for order in [Order::Sequential, Order::Shuffled, interleaved(1, 1), interleaved(u32::MAX, u32::MAX)] {
        for (shard_world, batching) in
            [(None, None), (Some(u32::MAX), None), (None, Some(1)), (Some(1), Some(u32::MAX))]
        {
            for (batch_transform, flip_index) in
                [(None, None), (Some(u32::MAX), None), (None, Some(1)), (Some(0), Some(2))]
            {
                let mut state = state(order, shard_world, batching);
                state.transforms = TransformMarks { batch_transform, flip_index };
                let json = state.to_string();
                assert!(json.len() < 350, "{} bytes: {json}", json.len());
                assert_eq!(ResumeState::parse(&json).ok(), Some(state));
            }
        }
    }
}

#[test]
fn accepts_any_order_of_members_and_white_space() {
    let json = r#" { "p": 3, "seed": 1,
        "order": "shuffled", "epoch": 2, "source": "0000000a", "fingerprint": "0000000b", "version": 1 } "#;
    let state = ResumeState::parse(json).expect("a state");
    assert_eq!((state.p, state.epoch, state.identity.source_crc, state.identity.fingerprint), (3, 2, 10, 11));
}

#[test]
fn names_transforms_behind_the_batching() {
    let mut state = state(Order::Shuffled, None, Some(0xb0b));
    state.transforms = TransformMarks { batch_transform: Some(0xbeef), flip_index: Some(0xf11b) };
    let members = r#""batching":"00000b0b","batch_transform":"0000beef","flip_index":"0000f11b","seed":"#;
    assert!(state.to_string().contains(members), "{state}");
}

#[test]
fn refuses_invalid_states() {
    let mut good = state(interleaved(3, 4), Some(2), Some(0xb0b));
    good.transforms = TransformMarks { batch_transform: Some(0xbeef), flip_index: Some(0xf11b) };
    let good = good.to_string();
    let refused = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        ResumeState::parse(&good.replace(from, to)).expect_err(to)
    };
    assert!(matches!(refused(r#""version":1"#, r#""version":2"#), Error::StateVersion { found: 2, expected: 1 }));
    for (from, to) in [
        (r#""version":1,"#, ""),
        (r#""seed":18446744073709551615"#, r#""seed":18446744073709551616"#),
        (r#""run":3"#, r#""run":0"#),
        (r#""run":3"#, r#""run":null"#),
        (r#""world":2"#, r#""world":null"#),
        (r#""seed":18446744073709551615"#, r#""seed":1.0"#),
        (r#""world":2"#, r#""world":-2"#),
        (r#""00000b0b""#, "null"),
        (r#""00000b0b""#, "2827"),
        (r#""0000beef""#, "null"),
        (r#""0000f11b""#, "0"),
        (r#""world":2"#, r#""planet":2"#),
        (r#","epoch""#, r#","era":1,"epoch""#),
        ("}", ""),
        ("{", "[{"),
    ] {
        assert!(matches!(refused(from, to), Error::StateJson { .. }), "{to}");
    }
    for (from, to, name) in [
        ("0000abcd", "abcd", "fingerprint"),
        ("0000abcd", "0000ABCD", "fingerprint"),
        ("0000abcd", "+000abcd", "fingerprint"),
        ("ffffffff", "fffffffff", "source"),
        ("00000b0b", "00000B0B", "batching"),
        ("00000b0b", "b0b", "batching"),
        ("0000beef", "0000BEEF", "batch_transform"),
        ("0000f11b", "f11b", "flip_index"),
        (r#","run":3"#, "", "order"),
        ("interleaved", "shuffled", "order"),
        ("interleaved", "random", "order"),
    ] {
        assert!(matches!(refused(from, to), Error::StateMember { member, .. } if member == name), "{to}");
    }
    // Truncated or changed at any byte: an error or another valid state, never a panic.
    for i in 0..good.len() {
        assert!(ResumeState::parse(&good[..i]).is_err());
        let mut bytes = good.clone().into_bytes();
        bytes[i] = b'9';
        let _ = ResumeState::parse(std::str::from_utf8(&bytes).expect("ASCII"));
    }
}

#[test]
fn refuses_states_that_are_arrays() {
    for json in ["[1]", "[2]", r#"[1,"0000abcd","ffffffff","shuffled",null,null,null,1,2,3]"#] {
        assert!(matches!(ResumeState::parse(json), Err(Error::StateJson { .. })), "{json}");
    }
}

fn plan(source: Source, order: Order, seed: u64, policy: Policy) -> Arc<Plan> {
    let two = NonZeroU32::new(2).expect("not 0");
    let replicas = Replicas { world: two, batch: two, policy, remainder: Some(Remainder::Mask) };
    Arc::new(Plan::new(source, order, seed, replicas, &[50, 50]).expect("a plan"))
}

#[test]
fn refuses_a_state_of_another_dataset_or_run_with_both_values() {
    let base = plan(Source::All(100), Order::Shuffled, 1, Policy::Sample);
    let state = ResumeState::new(base.identity(0xaaaa_0001), (4, 8));
    assert_eq!(base.resume(&state, 0xaaaa_0001).ok(), Some((4, 8)));

    let dataset = base.resume(&state, 0xbbbb_0002).unwrap_err().to_string();
    assert!(dataset.contains("aaaa0001") && dataset.contains("bbbb0002"), "{dataset}");

    let list = Source::List(shardtool_order::List::new((0..50).collect(), 100).expect("ids in range"));
    let other = plan(list, Order::Shuffled, 1, Policy::Sample).resume(&state, 0xaaaa_0001);
    assert!(matches!(other, Err(Error::StateSource { .. })));
    let other = plan(Source::All(100), interleaved(2, 2), 1, Policy::Sample).resume(&state, 0xaaaa_0001);
    assert!(matches!(other, Err(Error::StateOrder { state: Order::Shuffled, .. })));
    let other = plan(Source::All(100), Order::Shuffled, 2, Policy::Sample).resume(&state, 0xaaaa_0001);
    assert!(matches!(other, Err(Error::StateSeed { state: 1, current: 2 })));
    let shard = plan(Source::All(100), Order::Shuffled, 1, Policy::Shard);
    assert!(matches!(shard.resume(&state, 0xaaaa_0001), Err(Error::StateWorld { state: None, current: Some(2) })));
    assert_eq!(shard.resume(&ResumeState { p: 0, ..state }, 0xaaaa_0001).ok(), Some((4, 0)));
    let off = plan(Source::All(100), Order::Shuffled, 1, Policy::Off);
    assert_eq!(off.resume(&state, 0xaaaa_0001).ok(), Some((4, 8)));

    // Who makes the batches compares what is made of the samples.
    let transforms = TransformMarks { batch_transform: Some(1), flip_index: Some(2) };
    assert_eq!(base.resume(&ResumeState { transforms, ..state }, 0xaaaa_0001).ok(), Some((4, 8)));

    let beyond = base.resume(&ResumeState { p: 101, ..state }, 0xaaaa_0001);
    assert!(matches!(beyond, Err(Error::StatePosition { p: 101, end: 100, multiple: 1 })));
    assert_eq!(base.resume(&ResumeState { p: 100, ..state }, 0xaaaa_0001).ok(), Some((5, 0)));
}
