//! Memory of buckets and packing over a million samples, and what a seek into an epoch allocates and computes.

#[path = "../../decode/tests/made/counting_allocator.rs"]
mod counting_allocator;

use std::cell::Cell;
use std::num::NonZeroU32;
use std::sync::Arc;

use counting_allocator::allocated;
use shardtool_order::{
    Bucket, BucketReplicas, Buckets, Order, PackedPlan, Packing, Plan, Policy, Replicas, Shape, Source, Truncation,
};

const SAMPLES: u64 = 1_000_000;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not 0")
}

/// The only test of its binary, because the allocator counts for all threads.
#[test]
fn memory_is_four_bytes_a_sample_and_a_seek_takes_none_of_it() {
    let visited = Cell::new(0u64);
    let members = (0..SAMPLES).map(|v| (v * v % 41) as u16).inspect(|_| visited.set(visited.get() + 1));
    let buckets = vec![Bucket { shape: Shape::Length(number(64)), batch: number(96) }; 41];
    let (buckets, made) = allocated(|| Buckets::new(buckets, members).expect("buckets"));
    assert_eq!(visited.get(), 2 * SAMPLES, "each source position is visited twice");
    assert_eq!(buckets.bytes(), 4 * SAMPLES);
    assert!(made.peak as u64 <= 4 * SAMPLES + 16_384, "{} bytes", made.peak);

    let replicas = BucketReplicas { world: number(8), policy: Policy::Sample, remainder: None };
    let plan = Plan::bucketed(Source::All(SAMPLES), Order::Shuffled, 1, replicas, Arc::new(buckets));
    let plan = Arc::new(plan.expect("a plan"));
    // An epoch needs two permutations of batches; a batch one of its bucket's members, here a network of constant size.
    let last = 8 * (plan.schedule().steps(0) - 1);
    for (epoch, p) in [(0, 0), (7, last / 2), (u64::MAX, last)] {
        let (ids, sought) = allocated(|| {
            let mut walk = plan.walk(epoch, 5).expect("a rank");
            let rows = walk.rows(p);
            rows.filter_map(|row| row.position()).map(|q| walk.sample(q).id).collect::<Vec<_>>()
        });
        assert_eq!(ids.len(), 96);
        assert!(sought.count <= 16 && sought.peak <= 32_768, "{} allocations, {} bytes", sought.count, sought.peak);
    }

    // Of many buckets whose permutations are tables, a walk keeps some.
    let buckets = vec![Bucket { shape: Shape::Length(number(64)), batch: number(96) }; 1_000];
    let buckets = Buckets::new(buckets, (0..SAMPLES).map(|v| (v % 1_000) as u16)).expect("buckets");
    let plan = Plan::bucketed(Source::All(SAMPLES), Order::Shuffled, 1, replicas, Arc::new(buckets));
    let plan = Arc::new(plan.expect("a plan"));
    let (_, walked) = allocated(|| {
        let mut walk = plan.walk(0, 0).expect("a rank");
        (0..SAMPLES).step_by(501).map(|q| walk.sample(q).id).sum::<u64>()
    });
    assert!(walked.peak <= 640 * 1024, "{} bytes", walked.peak);

    let lengths = (0..SAMPLES).map(|v| v * v % 253);
    let window = number(4_096);
    let packing = Packing::new(lengths, number(512), window, Truncation::Truncate).expect("packing");
    assert_eq!(packing.bytes(), 4 * SAMPLES);
    let replicas = Replicas { world: number(8), batch: number(32), policy: Policy::Sample, remainder: None };
    let plan = PackedPlan::new(Source::All(SAMPLES), Order::Shuffled, 1, replicas, Arc::new(packing)).expect("a plan");
    let plan = Arc::new(plan);
    // A number per window, and the memory of one window.
    let (mut epoch, made) = allocated(|| plan.epoch(3));
    assert!(made.peak <= 512 * 1024, "{} bytes for an epoch", made.peak);
    for e in [0, epoch.rows() / 2, epoch.rows() - 1] {
        let (samples, sought) = allocated(|| epoch.row(e).len());
        assert!(samples > 0 && sought.count <= 8 && sought.peak <= 512 * 1024, "{} bytes for a row", sought.peak);
        let (_, again) = allocated(|| epoch.row(e).len());
        assert_eq!(again.count, 0, "the window is kept");
    }
}
