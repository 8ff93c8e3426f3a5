//! The choice of buckets: shapes of a budget, nearest aspect ratios, lengths, rows per batch; and how full batches are.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use shardtool_order::{
    AspectRatios, Bucket, BucketReplicas, Buckets, Error, ImageShape, LengthBounds, Longer, Order, Plan, Policy,
    Remainder, Shape, Source, shapes_within,
};

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not 0")
}

fn image(height: u32, width: u32) -> ImageShape {
    ImageShape { height: number(height), width: number(width) }
}

/// Half of the sides are small, so that equal ratios and ties occur.
fn side() -> impl Strategy<Value = u32> {
    prop_oneof![1..9u32, 1..=u32::MAX]
}

/// The difference of logarithms as a fraction of integers: exponential function, numerator and denominator.
fn quotient(a: ImageShape, b: ImageShape) -> (u128, u128) {
    let (x, y) = (
        u128::from(a.height.get()) * u128::from(b.width.get()),
        u128::from(a.width.get()) * u128::from(b.height.get()),
    );
    (x.max(y), x.min(y))
}

proptest! {
    #[test]
    fn nearest_shape_has_the_least_distance_and_is_the_first_of_equals(
        shapes in vec((side(), side()), 1..20), height in side(), width in side(),
    ) {
        let shapes: Vec<ImageShape> = shapes.into_iter().map(|(height, width)| image(height, width)).collect();
        let found = AspectRatios::new(&shapes).unwrap().nearest(number(height), number(width));
        let distance = |shape| quotient(image(height, width), shape);
        let mut best = 0;
        for (y, &shape) in shapes.iter().enumerate() {
            let ((a, b), (c, d)) = (distance(shape), distance(shapes[best]));
            if a * d < c * b {
                best = y;
            }
        }
        prop_assert_eq!(usize::from(found), best);
    }

    #[test]
    fn shapes_of_a_budget_are_all_the_largest_ones(step in 1..70u32, cells in 1..400u32, ratio in 1..6u32) {
        // Of all pairs of sides, those that fit and of which neither can grow.
        let fits = |rows: u32, columns: u32| rows * columns <= cells;
        let pairs = (1..=cells).flat_map(|rows| (1..=cells).map(move |columns| (rows, columns)));
        let largest = pairs.filter(|&(r, c)| fits(r, c) && !fits(r + 1, c) && !fits(r, c + 1));
        let expected: Vec<ImageShape> = largest
            .filter(|(r, c)| r.max(c) <= &(r.min(c) * ratio))
            .map(|(r, c)| image(r * step, c * step))
            .collect();
        match shapes_within(number(step), number(cells), number(ratio)) {
            Ok(shapes) => prop_assert_eq!(shapes, expected),
            Err(Error::NoShape { .. }) => prop_assert!(expected.is_empty()),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn lengths_belong_to_the_first_bound_that_holds_them(
        mut bounds in vec(1..500u32, 1..9), lengths in vec(0..600u64, 0..50),
    ) {
        bounds.sort_unstable();
        bounds.dedup();
        let last = bounds[bounds.len() - 1];
        let bucket = |n: u64| bounds.iter().position(|&b| n <= b.into()).unwrap_or(bounds.len() - 1) as u16;
        let expected: Vec<u16> = lengths.iter().map(|&n| bucket(n)).collect();
        prop_assert_eq!(LengthBounds::new(&bounds, Longer::Last).unwrap().assign(lengths.clone()).unwrap(), expected.clone());
        let long = lengths.iter().filter(|&&n| n > last.into()).count() as u64;
        match LengthBounds::new(&bounds, Longer::Refuse).unwrap().assign(lengths.clone()) {
            Ok(assigned) => prop_assert_eq!((assigned, long), (expected, 0)),
            Err(Error::LongSample { count, longest, most }) => {
                prop_assert_eq!((count, Some(longest), most), (long, lengths.iter().copied().max(), last));
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn refuses_budgets_out_of_range() {
    let shapes = |step, cells, ratio| shapes_within(number(step), number(cells), number(ratio));
    assert!(matches!(shapes(1, (1 << 30) + 1, 1), Err(Error::ShapeBudget { .. })));
    assert!(matches!(shapes(1 << 16, 1 << 16, 1), Err(Error::ShapeBudget { .. })));
    assert!(matches!(shapes(16, 3, 2), Err(Error::NoShape { cells: 3, ratio: 2 })));
    // The largest list is as long as there may be buckets.
    let most = shapes(1, 1 << 30, u32::MAX).expect("shapes");
    assert_eq!(most.len(), (1 << 16) - 1);
    AspectRatios::new(&most).expect("few enough");
    assert!(matches!(AspectRatios::new(&[]), Err(Error::BucketCount { count: 0 })));
}

#[test]
fn refuses_what_no_bucket_can_hold() {
    let bucket = |tokens| Bucket { shape: Shape::Length(number(tokens)), batch: number(1) };
    assert!(matches!(Buckets::new(vec![], [0u16].into_iter()), Err(Error::BucketCount { count: 0 })));
    let many = vec![bucket(1); (1 << 16) + 1];
    assert!(matches!(Buckets::new(many, [0u16].into_iter()), Err(Error::BucketCount { .. })));
    let refused = Buckets::new(vec![bucket(1); 2], [0, 1, 2u16].into_iter());
    assert!(matches!(refused, Err(Error::BucketNumber { index: 2, number: 2, buckets: 2 })));
    let most = Buckets::new(vec![bucket(1); 1 << 16], [u16::MAX, 0].into_iter()).expect("buckets");
    assert_eq!((most.members(0), most.members(usize::from(u16::MAX)), most.batches()), (1, 1, 2));
}

#[test]
fn rows_of_a_budget_are_at_least_one() {
    let shape = Shape::Image(image(256, 128));
    assert_eq!(shape.size(), 32_768);
    assert_eq!(shape.batch_within(65_536).get(), 2);
    assert_eq!(shape.batch_within(65_535).get(), 1);
    assert_eq!(shape.batch_within(0).get(), 1);
    assert_eq!(Shape::Length(number(1)).batch_within(u64::MAX).get(), u32::MAX);
    assert_eq!(Shape::Image(image(u32::MAX, u32::MAX)).batch_within(u64::MAX).get(), 1);
}

/// Returns the share of the rows of an epoch that hold a sample, and the share of the samples that are delivered.
fn fill(sizes: &[(u32, u32)], batch: u32, remainder: Remainder, world: u32) -> (f64, f64) {
    let shapes = shapes_within(number(16), number(256), number(4)).expect("shapes");
    let ratios = AspectRatios::new(&shapes).expect("shapes");
    let members: Vec<u16> = sizes.iter().map(|&(h, w)| ratios.nearest(number(h), number(w))).collect();
    let buckets: Vec<Bucket> =
        shapes.into_iter().map(|shape| Bucket { shape: Shape::Image(shape), batch: number(batch) }).collect();
    let buckets = Arc::new(Buckets::new(buckets, members.iter().copied()).expect("buckets"));
    let replicas = BucketReplicas { world: number(world), policy: Policy::Sample, remainder: Some(remainder) };
    let source = Source::All(sizes.len() as u64);
    let plan = Arc::new(Plan::bucketed(source, Order::Shuffled, 1, replicas, buckets).expect("a plan"));
    let counts: Vec<_> = (0..world).map(|rank| plan.walk(0, rank).expect("a rank").counts(0)).collect();
    let sum = |number: fn(&shardtool_order::Counts) -> u64| counts.iter().map(number).sum::<u64>() as f64;
    (sum(|c| c.samples) / sum(|c| c.rows), sum(|c| c.samples) / sizes.len() as f64)
}

/// Sizes with the aspect ratios of photographs: most 4:3 or 3:2, in both orientations, and some of any ratio up to 3:1.
fn generated(count: usize) -> Vec<(u32, u32)> {
    let size = |i: usize| match i * 7919 % 20 {
        0..8 => (375, 500),
        8..12 => (333, 500),
        12..15 => (500, 375),
        15 => (500, 333),
        16 => (500, 500),
        _ => (200 + (i * 104_729 % 400) as u32, 500),
    };
    (0..count).map(size).collect()
}

/// The sides of a JPEG, from its frame header (T.81, B.2.2).
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = *bytes.get(at + 1)?;
        let be = |at: usize| Some(u32::from(*bytes.get(at)?) << 8 | u32::from(*bytes.get(at + 1)?));
        match marker {
            0xff => at += 1,
            0xc0..=0xcf if ![0xc4, 0xc8, 0xcc].contains(&marker) => return Some((be(at + 5)?, be(at + 7)?)),
            _ => at += 2 + be(at + 2)? as usize,
        }
    }
}

fn photographs() -> Option<Vec<(u32, u32)>> {
    let root = std::env::var_os("SHARDTOOL_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let mut sizes = vec![];
    for class in std::fs::read_dir(root.join("data/imagenet-sample")).ok()?.flatten().filter(|c| c.path().is_dir()) {
        for file in std::fs::read_dir(class.path()).ok()?.flatten() {
            sizes.extend(jpeg_size(&std::fs::read(file.path()).ok()?));
        }
    }
    (!sizes.is_empty()).then_some(sizes)
}

#[test]
fn batches_of_many_images_are_filled() {
    let mut sets = vec![("generated sizes", generated(50_000))];
    match photographs() {
        Some(sizes) => {
            // Few images for 13 shapes: only small batches are full.
            for batch in [4, 8, 16] {
                let (masked, delivered) =
                    (fill(&sizes, batch, Remainder::Mask, 1).0, fill(&sizes, batch, Remainder::Drop, 1).1);
                println!(
                    "{} photographs, batch {batch}: {masked:.4} of the rows, `drop` delivers {delivered:.4}",
                    sizes.len()
                );
                assert!(batch > 4 || masked >= 0.95 && delivered >= 0.95, "{masked}, {delivered}");
            }
            // The same sizes, as many as in ImageNet's validation split.
            sets.push(("sizes of photographs", sizes.iter().copied().cycle().take(50_000).collect()));
        }
        None => println!("skipped: the photographs are not available"),
    }
    for (name, sizes) in sets {
        for (batch, world) in [(64, 1), (64, 8), (128, 2)] {
            let (full, delivered) = fill(&sizes, batch, Remainder::Drop, world);
            let (masked, all) = fill(&sizes, batch, Remainder::Mask, world);
            println!(
                "{name}, batch {batch}, {world} replicas: {masked:.4} of the rows, `drop` delivers {delivered:.4}"
            );
            assert_eq!((full, all), (1.0, 1.0), "{name}");
            assert!(masked >= 0.95 && delivered >= 0.95, "{name}, batch {batch}: {masked}, {delivered}");
        }
    }
}
