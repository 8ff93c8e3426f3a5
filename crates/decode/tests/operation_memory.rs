//! Operations allocate nothing after the first image of a size, and never more than the bounds announced.

#[path = "made/counting_allocator.rs"]
mod counting_allocator;

use counting_allocator::allocated;
use shardtool_decode::{Interpolation, LabelDtype, Operation, OperationScratch, PixelsMut, Rect};

/// Every operation that uses buffers, and one that does not.
fn operations() -> Vec<Operation> {
    let (interpolation, fill) = (Interpolation::Bilinear, [0; 3]);
    let blur = Operation::GaussianBlur { kernel: [9, 5], sigma: [2.0, 1.0] };
    let sharpness = Operation::Sharpness { factor: 0.5 };
    let chains = vec![vec![Operation::Invert, blur.clone()], vec![sharpness.clone()]];
    vec![
        Operation::EraseNoise { rect: Rect { left: 0, top: 0, width: 9, height: 9 }, key: 1 },
        Operation::Affine { matrix: [0.9, 0.1, 0.0, -0.1, 0.9, 1.0], interpolation, fill },
        Operation::Perspective { coefficients: [1.0, 0.1, 0.0, 0.0, 1.0, 0.0, 1e-3, 0.0], interpolation, fill },
        blur,
        sharpness,
        Operation::AugMix { image: 0.4, weights: vec![0.3, 0.3], chains },
    ]
}

/// The only test of its binary, because the allocator counts for all threads.
#[test]
fn operations_allocate_nothing_after_the_first_and_stay_within_the_bounds() {
    for operation in operations() {
        let mut scratch = OperationScratch::default();
        // Larger from image to image.
        for size @ (width, height) in [(9, 8), (30, 20), (60, 70), (224, 224)] {
            let (mut data, mut labels) = (vec![7; (width * height * 3) as usize], vec![7; (width * height) as usize]);
            let mut apply = |scratch: &mut OperationScratch| {
                operation.apply(PixelsMut::new(width, height, &mut data).unwrap(), scratch).unwrap();
                operation.apply_to_labels(LabelDtype::U8, size, &mut labels, 0, scratch).unwrap();
            };
            // The thread of the test harness allocates now and then.
            let first = (0..5).map(|_| allocated(|| apply(&mut OperationScratch::default())).1.peak).min().unwrap();
            assert!(first as u64 <= operation.scratch_bytes(size), "{operation:?}: {first} bytes");
            apply(&mut scratch);
            let again = (0..5).map(|_| allocated(|| apply(&mut scratch)).1.count).min();
            assert_eq!(again, Some(0), "{operation:?}");
        }
    }
}
