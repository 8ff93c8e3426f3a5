//! Compares the baseline with the vectorised loops.

use super::vectorised::BASELINE;
use super::*;
use crate::pixels::PixelsMut;
use scratch::OperationScratch;

/// At least one of every operation with vectorised loops.
fn operations() -> Vec<Operation> {
    let fill = [10, 20, 30];
    let mut operations = vec![
        Operation::Grayscale,
        Operation::Autocontrast,
        Operation::GaussianBlur { kernel: [5, 3], sigma: [1.3, 0.4] },
        Operation::AugMix { image: 0.3, weights: vec![0.5, 0.2], chains: vec![vec![Operation::Invert], vec![]] },
    ];
    for factor in [0.0, 0.3, 1.0, 1.7] {
        operations.push(Operation::Brightness { factor });
        operations.push(Operation::Contrast { factor });
        operations.push(Operation::Saturation { factor });
        operations.push(Operation::Sharpness { factor });
    }
    operations.extend([-0.5, -0.1, 0.0, 0.3, 0.5].map(|factor| Operation::Hue { factor }));
    for interpolation in [Interpolation::Nearest, Interpolation::Bilinear] {
        for matrix in [[1.0, 0.0, 0.5, 0.0, 1.0, -0.5], [0.7, 0.4, 1.0, -0.3, 1.2, 2.0]] {
            operations.push(Operation::Affine { matrix, interpolation, fill });
        }
        let coefficients = [1.1, 0.1, -1.0, 0.05, 0.9, 2.0, 1e-3, -2e-3];
        operations.push(Operation::Perspective { coefficients, interpolation, fill });
    }
    operations
}

#[test]
fn baseline_and_vectorised_loops_give_equal_bytes() {
    let noise = |i: u32| (i.wrapping_mul(2_654_435_761) >> 23) as u8;
    for (width, height) in [(1, 1), (3, 2), (17, 9), (64, 5), (131, 33)] {
        let pixels: Vec<u8> = (0..width * height * 3).map(noise).collect();
        for operation in operations() {
            let apply = |baseline| {
                BASELINE.set(baseline);
                let mut data = pixels.clone();
                let image = PixelsMut::new(width, height, &mut data).unwrap();
                let applied = operation.apply(image, &mut OperationScratch::default());
                BASELINE.set(false);
                applied.map(|()| data).map_err(|error| error.to_string())
            };
            assert_eq!(apply(true), apply(false), "{operation:?} of {width}x{height}");
        }
    }
}
