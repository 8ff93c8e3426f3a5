//! Operations on pixels, compared with values computed by hand from torchvision's published formulas. torchvision itself is
//! the reference in `crates/python/tests/test_operations.py`.

use proptest::prelude::*;
use shardtool_decode::{Error, Interpolation, LabelDtype, Operation, OperationScratch, PixelsMut, Rect};

fn applied(operation: &Operation, size: (u32, u32), data: &[u8]) -> Result<Vec<u8>, Error> {
    let mut data = data.to_vec();
    operation.apply(PixelsMut::new(size.0, size.1, &mut data).unwrap(), &mut OperationScratch::default())?;
    Ok(data)
}

fn noise(size: (u32, u32), seed: u32) -> Vec<u8> {
    let value = |i: u32| ((i ^ seed).wrapping_mul(2_654_435_761) >> 21) as u8;
    (0..size.0 * size.1 * 3).map(value).collect()
}

/// Applies to a row of pixels.
fn row<const N: usize>(operation: &Operation, pixels: [[u8; 3]; N]) -> [[u8; 3]; N] {
    let data = applied(operation, (N as u32, 1), pixels.as_flattened()).unwrap();
    data.as_chunks().0.try_into().unwrap()
}

#[test]
fn levels_equal_hand_computed_values() {
    let pixels = [[0, 1, 100], [128, 200, 255]];
    // 1.5, 150 and 192 exactly; 300 and 382.5 are clamped.
    assert_eq!(row(&Operation::Brightness { factor: 1.5 }, pixels), [[0, 1, 150], [192, 255, 255]]);
    assert_eq!(row(&Operation::Brightness { factor: 0.0 }, pixels), [[0; 3]; 2]);
    assert_eq!(row(&Operation::Invert, pixels), [[255, 254, 155], [127, 55, 0]]);
    assert_eq!(row(&Operation::Posterize { bits: 1 }, pixels), [[0, 0, 0], [128, 128, 128]]);
    assert_eq!(row(&Operation::Posterize { bits: 0 }, pixels), [[0; 3]; 2]);
    assert_eq!(row(&Operation::Posterize { bits: 8 }, pixels), pixels);
    assert_eq!(row(&Operation::Solarize { threshold: 100.0 }, pixels), [[0, 1, 155], [127, 55, 0]]);
    assert_eq!(row(&Operation::Solarize { threshold: 100.1 }, pixels), [[0, 1, 100], [127, 55, 0]]);
    assert_eq!(row(&Operation::Solarize { threshold: 255.0 }, pixels), [[0, 1, 100], [128, 200, 0]]);
    assert_eq!(row(&Operation::Solarize { threshold: -1e30 }, pixels), row(&Operation::Invert, pixels));
    assert_eq!(row(&Operation::ChannelPermutation { order: [2, 0, 1] }, pixels), [[100, 0, 1], [255, 128, 200]]);
}

#[test]
fn colours_equal_hand_computed_values() {
    let pixels = [[10, 20, 30], [255, 0, 0]];
    // 2.989 + 11.74 + 3.42 = 18.149; 76.2195.
    assert_eq!(row(&Operation::Grayscale, pixels), [[18; 3], [76; 3]]);
    // The weights add up to 0.9999.
    assert_eq!(row(&Operation::Grayscale, [[255; 3]]), [[254; 3]]);
    // Exactly 96 and 183, which sums whose products are rounded first miss.
    assert_eq!(row(&Operation::Grayscale, [[20, 152, 7], [40, 244, 244]]), [[96; 3], [183; 3]]);
    // Half of the pixel and half of the grey value: 14, 19, 24; 165.5, 38, 38.
    assert_eq!(row(&Operation::Saturation { factor: 0.5 }, pixels), [[14, 19, 24], [165, 38, 38]]);
    // The mean grey value is 47: 28.5, 33.5, 38.5; 151, 23.5, 23.5.
    assert_eq!(row(&Operation::Contrast { factor: 0.5 }, pixels), [[28, 33, 38], [151, 23, 23]]);
    assert_eq!(row(&Operation::Contrast { factor: 0.0 }, pixels), [[47; 3]; 2]);
    // Half a turn: red to cyan. A third: red to green, to blue in the other direction.
    assert_eq!(row(&Operation::Hue { factor: 0.5 }, [[255, 0, 0]]), [[0, 255, 255]]);
    assert_eq!(row(&Operation::Hue { factor: 1.0 / 3.0 }, [[255, 0, 0]]), [[0, 255, 0]]);
    assert_eq!(row(&Operation::Hue { factor: -1.0 / 3.0 }, [[255, 0, 0], [7, 7, 7]]), [[0, 0, 255], [7, 7, 7]]);
    // 2 + 20/190 sixths of a turn and 1.5 more: in the sector from 3, 115/190 of the way from cyan to blue.
    assert_eq!(row(&Operation::Hue { factor: 0.25 }, [[10, 200, 30]]), [[10, 85, 200]]);
    // 4 − 20/190 and 1.5 more, in the sector from 5; 20/190 and 1.2 less, in the sector from 4.
    assert_eq!(row(&Operation::Hue { factor: 0.25 }, [[10, 30, 200]]), [[200, 10, 125]]);
    assert_eq!(row(&Operation::Hue { factor: -0.2 }, [[200, 30, 10]]), [[182, 10, 200]]);
}

#[test]
fn histograms_equal_hand_computed_values() {
    // Red from 50 to 100: (75 - 50) · 255 / 50 = 127.5; the largest value becomes 254.99998 in f32.
    // Green is constant.
    let pixels = [[50, 9, 0], [75, 9, 255], [100, 9, 128]];
    assert_eq!(row(&Operation::Autocontrast, pixels), [[0, 9, 0], [127, 9, 255], [254, 9, 128]]);
    // 510 samples below the largest: steps of 2. Value 1 has 1 smaller one: (1 + 1) / 2 = 1. Value 2 has 510: 255.
    let mut pixels = [[1; 3]; 512];
    (pixels[0], pixels[511]) = ([0; 3], [2; 3]);
    pixels[510] = [2; 3];
    let equalized = row(&Operation::Equalize, pixels);
    assert_eq!((equalized[0], equalized[1], equalized[511]), ([0; 3], [1; 3], [255; 3]));
    // Of 511 samples, 255 are below the largest, the last one included: a step is 1.
    let mut pixels = [[0; 3]; 511];
    pixels[..256].fill([9; 3]);
    let equalized = row(&Operation::Equalize, pixels);
    assert_eq!((equalized[0], equalized[510]), ([255; 3], [0; 3]));
    // Fewer than 255 samples below the largest one, or none.
    assert_eq!(row(&Operation::Equalize, [[3, 4, 5], [9, 4, 2]]), [[3, 4, 5], [9, 4, 2]]);
    assert_eq!(row(&Operation::Equalize, [[77; 3]; 600]), [[77; 3]; 600]);
}

#[test]
fn neighbourhoods_equal_hand_computed_values() {
    // A point of 130 in black: 5/13 of it is 50. Only the centre of 3 × 3 pixels changes.
    let mut data = vec![0; 27];
    data[12..15].fill(130);
    let at_centre = |data: Vec<u8>| (data[12], data.iter().filter(|sample| **sample != 0).count());
    assert_eq!(at_centre(applied(&Operation::Sharpness { factor: 0.0 }, (3, 3), &data).unwrap()), (50, 3));
    // 130 + 0.5 · 80 = 170.
    assert_eq!(at_centre(applied(&Operation::Sharpness { factor: 1.5 }, (3, 3), &data).unwrap()), (170, 3));
    // Weights 1, e^-0.5, at distances 0 and 1: 0.45186 and 0.27407. 130 · 0.45186² = 26.5 at the centre; a corner pixel has
    // the reflected centre at both sides: 130 · (2 · 0.27407)² = 39.06.
    let blurred = applied(&Operation::GaussianBlur { kernel: [3, 3], sigma: [1.0, 1.0] }, (3, 3), &data).unwrap();
    assert_eq!((blurred[0], blurred[3], blurred[12]), (39, 32, 27));
    let horizontally = Operation::GaussianBlur { kernel: [3, 1], sigma: [1.0, 9.0] };
    assert_eq!(applied(&horizontally, (3, 3), &data).unwrap()[9..18], [71, 71, 71, 59, 59, 59, 71, 71, 71]);
}

/// The mean of each 3 × 3 neighbourhood with the centre counted five times, blended in f64. The factors are exact in binary.
#[test]
fn sharpness_equals_a_naive_one() {
    let (width, height) = (37, 11);
    let data = noise((width, height), 3);
    let at = |x: u32, y: u32, c: u32| f64::from(data[((y * width + x) * 3 + c) as usize]);
    for factor in [0.0, 0.5, 1.5, 3.0] {
        let found = applied(&Operation::Sharpness { factor }, (width, height), &data).unwrap();
        for (i, found) in (0..).zip(found) {
            let (x, y, c) = (i / 3 % width, i / 3 / width, i % 3);
            let mut expected = at(x, y, c);
            if (1..width - 1).contains(&x) && (1..height - 1).contains(&y) {
                let around = (y - 1..=y + 1).flat_map(|y| (x - 1..=x + 1).map(move |x| (x, y)));
                let sum: f64 = around.map(|(x, y)| at(x, y, c)).sum();
                let smooth = ((sum + 4.0 * at(x, y, c)) / 13.0).round();
                expected = (expected * factor + smooth * (1.0 - factor)).clamp(0.0, 255.0).floor();
            }
            assert_eq!(f64::from(found), expected, "{factor} {x} {y}");
        }
    }
}

/// The two-dimensional sum in f64 over reflected pixels. f32 may round the other way next to a half.
#[test]
fn blur_equals_a_naive_one() {
    let (width, height) = (9, 7);
    let data = noise((width, height), 5);
    let reflected = |at: i32, side: u32| {
        let at = at.abs();
        let last = side as i32 - 1;
        (if at > last { 2 * last - at } else { at }) as u32
    };
    for (kernel, sigma) in [([3, 5], [0.7, 2.0]), ([17, 13], [3.0, 1.5]), ([1, 7], [1.0, 0.3])] {
        let found = applied(&Operation::GaussianBlur { kernel, sigma }, (width, height), &data).unwrap();
        let radius = kernel.map(|side| side as i32 / 2);
        let weight = |distance: i32, sigma: f64| (-0.5 * (f64::from(distance) / sigma).powi(2)).exp();
        for (i, found) in (0..).zip(found) {
            let (x, y, c) = (i / 3 % width, i / 3 / width, i % 3);
            let (mut sum, mut total) = (0.0, 0.0);
            for dy in -radius[1]..=radius[1] {
                for dx in -radius[0]..=radius[0] {
                    let (x, y) = (reflected(x as i32 + dx, width), reflected(y as i32 + dy, height));
                    let weight = weight(dx, sigma[0]) * weight(dy, sigma[1]);
                    sum += weight * f64::from(data[((y * width + x) * 3 + c) as usize]);
                    total += weight;
                }
            }
            assert!((f64::from(found) - sum / total).abs() < 0.5001, "{kernel:?} {x} {y}");
        }
    }
}

#[test]
fn affine_maps_equal_hand_computed_values() {
    let pixels = [[10; 3], [20; 3], [40; 3]];
    let shift = |by, interpolation| Operation::Affine {
        matrix: [1.0, 0.0, by, 0.0, 1.0, 0.0],
        interpolation,
        fill: [99, 98, 97],
    };
    let fill = [99, 98, 97];
    assert_eq!(row(&shift(1.0, Interpolation::Nearest), pixels), [[20; 3], [40; 3], fill]);
    assert_eq!(row(&shift(-2.0, Interpolation::Bilinear), pixels), [fill, fill, [10; 3]]);
    // A quarter of the next pixel: 12.5, 25; at the edge 30 and a quarter of the fill: 54.75, 54.5, 54.25.
    let quarter = row(&shift(0.25, Interpolation::Bilinear), pixels);
    assert_eq!(quarter, [[12; 3], [25; 3], [55, 54, 54]]);
    // Halves are rounded to even: positions 0.5, 1.5 and 2.5 are pixels 0, 2 and 2.
    assert_eq!(row(&shift(0.5, Interpolation::Nearest), pixels), [[10; 3], [40; 3], [40; 3]]);
    // Pixel 8 of 97 moved by 7.5 is at 0.5, which is larger in f32: torch picks pixel 1.
    let column: [[u8; 3]; 97] = std::array::from_fn(|i| [i as u8; 3]);
    assert_eq!(row(&shift(-7.5, Interpolation::Nearest), column)[8], [1; 3]);
    // The identity, as a homography.
    let coefficients = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
    for interpolation in [Interpolation::Nearest, Interpolation::Bilinear] {
        assert_eq!(row(&Operation::Perspective { coefficients, interpolation, fill }, pixels), pixels);
    }
    // x ÷ (1 + x/4): 0.5 to 0.44, 1.5 to 1.09, 2.5 to 1.54, in pixels 0, 1 and 1.
    let coefficients = [1.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.25, 0.0];
    let operation = Operation::Perspective { coefficients, interpolation: Interpolation::Nearest, fill };
    assert_eq!(row(&operation, pixels), [[10; 3], [20; 3], [20; 3]]);
}

#[test]
fn points_equal_hand_computed_values() {
    let (interpolation, fill, size) = (Interpolation::Nearest, [0; 3], (10, 4));
    assert_eq!(Operation::HorizontalFlip.map_point(size, [2.0, 1.0]), [8.0, 1.0]);
    assert_eq!(Operation::VerticalFlip.map_point(size, [2.0, 1.0]), [2.0, 3.0]);
    assert_eq!(Operation::Invert.map_point(size, [2.0, 1.0]), [2.0, 1.0]);
    // Twice as large, then moved 1 to the left and 2 up: from the centre (5, 2), (6, 3) moves to (7, 4), then to (6, 2).
    let matrix = [0.5, 0.0, 0.5, 0.0, 0.5, 1.0];
    assert_eq!(Operation::Affine { matrix, interpolation, fill }.map_point(size, [6.0, 3.0]), [6.0, 2.0]);
    // A quarter turn: the upper left corner is 5 left of and 2 above the centre, and moves to 2 right of and 5 above it.
    let matrix = [0.0, 1.0, 0.0, -1.0, 0.0, 0.0];
    assert_eq!(Operation::Affine { matrix, interpolation, fill }.map_point(size, [0.0, 0.0]), [7.0, -3.0]);
    // (x + 1) ÷ (x/4 + 1) is 2 at x = 2; y ÷ (x/4 + 1) is then 2 at y = 3.
    let coefficients = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.25, 0.0];
    let operation = Operation::Perspective { coefficients, interpolation, fill };
    assert_eq!(operation.map_point(size, [2.0, 2.0]), [2.0, 3.0]);
}

#[test]
fn singular_maps_have_no_inverse_and_still_apply() {
    let pixels = [[10; 3], [20; 3], [40; 3]];
    let operation = Operation::Affine { matrix: [0.0; 6], interpolation: Interpolation::Bilinear, fill: [0; 3] };
    assert_eq!(row(&operation, pixels), [[20; 3]; 3]);
    assert!(!operation.map_point((3, 1), [1.0, 0.0])[0].is_finite());
}

#[test]
fn erased_rectangles_are_clipped() {
    let rect = Rect { left: 1, top: 0, width: u32::MAX, height: u32::MAX };
    let erased = row(&Operation::Erase { rect, value: [1, 2, 3] }, [[9; 3]; 3]);
    assert_eq!(erased, [[9; 3], [1, 2, 3], [1, 2, 3]]);
    let outside = Rect { left: u32::MAX, top: 7, width: u32::MAX, height: 1 };
    assert_eq!(row(&Operation::EraseNoise { rect: outside, key: 0 }, [[9; 3]; 3]), [[9; 3]; 3]);
}

#[test]
fn noise_equals_the_inverse_of_the_normal_distribution() {
    let noise = |key| {
        let rect = Rect { left: 0, top: 0, width: 3, height: 1 };
        row(&Operation::EraseNoise { rect, key }, [[0; 3]; 3])
    };
    // Python's statistics.NormalDist.inv_cdf at the halves of SplitMix64's outputs, rounded.
    assert_eq!(noise(0), [[193, 114, 94], [143, 6, 104], [234, 109, 32]]);
    assert_eq!(noise(7), [[107, 94, 0], [222, 190, 139], [136, 102, 97]]);
}

#[test]
fn noise_has_the_mean_and_deviation_of_imagenet() {
    let size = (200, 100);
    let rect = Rect { left: 0, top: 0, width: 200, height: 100 };
    let noise = applied(&Operation::EraseNoise { rect, key: 7 }, size, &vec![0; 60_000]).unwrap();
    for (c, (mean, deviation)) in [(123.675, 58.395), (116.28, 57.12), (103.53, 57.375)].into_iter().enumerate() {
        let values: Vec<f64> = noise.as_chunks::<3>().0.iter().map(|pixel| pixel[c].into()).collect();
        let found = values.iter().sum::<f64>() / 20_000.0;
        let variance = values.iter().map(|value| (value - found).powi(2)).sum::<f64>() / 20_000.0;
        // Four standard errors, and what clamping takes away.
        assert!((found - mean).abs() < 2.5 && (variance.sqrt() - deviation).abs() < 2.5, "{found}, {variance}");
    }
}

#[test]
fn mixes_are_rounded_down() {
    let chains = vec![vec![Operation::Invert], vec![Operation::Invert, Operation::Posterize { bits: 1 }]];
    let operation = Operation::AugMix { image: 0.5, weights: vec![0.25, 0.25], chains };
    // 50 + 38.75 + 32; 0 + 63.75 + 32.
    assert_eq!(row(&operation, [[100; 3], [0; 3]]), [[120; 3], [95; 3]]);
}

#[test]
fn rejects_parameters_out_of_range_by_name() {
    let error = |operation: Operation| applied(&operation, (8, 8), &[0; 192]).unwrap_err().to_string();
    let cases = [
        (Operation::Brightness { factor: f64::NAN }, "brightness: factor"),
        (Operation::Contrast { factor: -0.1 }, "contrast: factor"),
        (Operation::Saturation { factor: 1e300 }, "saturation: factor"),
        (Operation::Sharpness { factor: f64::INFINITY }, "sharpness: factor"),
        (Operation::Hue { factor: 0.51 }, "hue: factor"),
        (Operation::ChannelPermutation { order: [0, 1, 3] }, "channel_permutation: order"),
        (Operation::Posterize { bits: 9 }, "posterize: bits"),
        (Operation::Solarize { threshold: 255.5 }, "solarize: threshold"),
        (Operation::GaussianBlur { kernel: [3, 0], sigma: [1.0; 2] }, "gaussian_blur: kernel"),
        (Operation::GaussianBlur { kernel: [3, 3], sigma: [1.0, 0.0] }, "gaussian_blur: sigma"),
        (Operation::GaussianBlur { kernel: [17, 3], sigma: [1.0; 2] }, "a kernel of 17x3 pixels is too large"),
        (Operation::GaussianBlur { kernel: [3, u32::MAX], sigma: [1.0; 2] }, "too large for an image of 8x8"),
        (Operation::AugMix { image: 1.0, weights: vec![], chains: vec![vec![]] }, "aug_mix: weights"),
        (Operation::AugMix { image: f32::NAN, weights: vec![], chains: vec![] }, "aug_mix: image"),
    ];
    for (operation, expected) in cases {
        let message = error(operation);
        assert!(message.contains(expected), "{message}");
    }
    let nested = Operation::AugMix { image: 1.0, weights: vec![], chains: vec![] };
    let inner = Operation::Posterize { bits: 9 };
    for (operation, expected) in [(nested, "aug_mix: chains"), (inner, "posterize: bits")] {
        let message = error(Operation::AugMix { image: 0.5, weights: vec![0.5], chains: vec![vec![operation]] });
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn largest_kernel_that_reflects_is_accepted() {
    let operation = Operation::GaussianBlur { kernel: [15, 1], sigma: [3.0; 2] };
    assert!(applied(&operation, (8, 1), &[200; 24]).unwrap().iter().all(|sample| *sample == 200));
}

#[test]
fn operations_round_trip_through_json() {
    let json = r#"["horizontal_flip",{"brightness":{"factor":1.2}},{"gaussian_blur":{"kernel":[3,5],"sigma":[0.5,1.0]}},{"erase_noise":{"rect":{"left":1,"top":2,"width":3,"height":4},"key":18446744073709551615}},{"aug_mix":{"image":0.5,"weights":[0.5],"chains":[["invert",{"posterize":{"bits":4}}]]}},{"affine":{"matrix":[1.0,0.0,0.0,0.0,1.0,0.0],"interpolation":"nearest","fill":[1,2,3]}}]"#;
    let operations: Vec<Operation> = serde_json::from_str(json).unwrap();
    assert_eq!(serde_json::to_string(&operations).unwrap(), json);
    for invalid in [r#"{"brightness":{"factor":1,"x":1}}"#, r#"{"blur":{}}"#, r#"{"posterize":{"bits":-1}}"#] {
        assert!(serde_json::from_str::<Operation>(invalid).is_err(), "{invalid}");
    }
}

/// Any number, including those that JSON cannot express.
fn number() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![
        4 => -3.0..3.0f64,
        1 => prop::num::f64::ANY,
        1 => prop::sample::select(vec![0.0, 1.0, f64::NAN, f64::INFINITY, 1e38, -1e300, 1e-300]),
    ]
}

fn interpolation() -> impl Strategy<Value = Interpolation> {
    prop::sample::select(vec![Interpolation::Nearest, Interpolation::Bilinear])
}

fn rect() -> impl Strategy<Value = Rect> {
    let side = || prop_oneof![0..50u32, any::<u32>()];
    (side(), side(), side(), side()).prop_map(|(left, top, width, height)| Rect { left, top, width, height })
}

/// Any operation other than AugMix, valid or not.
fn simple() -> impl Strategy<Value = Operation> + Clone {
    let without_parameters = vec![
        Operation::HorizontalFlip,
        Operation::VerticalFlip,
        Operation::Grayscale,
        Operation::Invert,
        Operation::Autocontrast,
        Operation::Equalize,
    ];
    let kernel = || prop_oneof![4 => 0..60u32, 1 => any::<u32>()];
    prop_oneof![
        prop::sample::select(without_parameters),
        number().prop_map(|factor| Operation::Brightness { factor }),
        number().prop_map(|factor| Operation::Contrast { factor }),
        number().prop_map(|factor| Operation::Saturation { factor }),
        number().prop_map(|factor| Operation::Hue { factor }),
        number().prop_map(|factor| Operation::Sharpness { factor }),
        prop::array::uniform3(0..4u8).prop_map(|order| Operation::ChannelPermutation { order }),
        any::<u8>().prop_map(|bits| Operation::Posterize { bits }),
        number().prop_map(|threshold| Operation::Solarize { threshold }),
        ([kernel(), kernel()], [number(), number()])
            .prop_map(|(kernel, sigma)| Operation::GaussianBlur { kernel, sigma }),
        (prop::array::uniform6(number()), interpolation(), any::<[u8; 3]>())
            .prop_map(|(matrix, interpolation, fill)| Operation::Affine { matrix, interpolation, fill }),
        (prop::array::uniform8(number()), interpolation(), any::<[u8; 3]>()).prop_map(
            |(coefficients, interpolation, fill)| Operation::Perspective { coefficients, interpolation, fill }
        ),
        (rect(), any::<[u8; 3]>()).prop_map(|(rect, value)| Operation::Erase { rect, value }),
        (rect(), any::<u64>()).prop_map(|(rect, key)| Operation::EraseNoise { rect, key }),
    ]
    .boxed()
}

fn operation() -> impl Strategy<Value = Operation> {
    let chains = prop::collection::vec(prop::collection::vec(simple(), 0..3), 0..4);
    let weights = prop::collection::vec(prop::num::f32::ANY, 0..4);
    let mix = (prop::num::f32::ANY, weights, chains).prop_map(|(image, weights, chains)| Operation::AugMix {
        image,
        weights,
        chains,
    });
    prop_oneof![9 => simple(), 1 => mix]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_parameters_give_pixels_or_an_error(
        operation in operation(),
        width in 0..40u32,
        height in 0..40u32,
        seed in any::<u32>(),
        fill in any::<u16>(),
    ) {
        let size = (width, height);
        let data = noise(size, seed);
        let mut scratch = OperationScratch::default();
        operation.scratch_bytes((u32::MAX, u32::MAX));
        operation.map_point(size, [1.0, 2.0]);
        let mut result = data.clone();
        let applied = operation.apply(PixelsMut::new(width, height, &mut result).unwrap(), &mut scratch);
        prop_assert_eq!(applied.is_ok(), operation.check(size).is_ok());
        prop_assert!(applied.is_ok() || result == data);
        let mut labels = data[..(2 * width * height) as usize].to_vec();
        let applied = operation.apply_to_labels(LabelDtype::U16, size, &mut labels, fill.into(), &mut scratch);
        prop_assert_eq!(applied.is_ok(), operation.check(size).is_ok());
    }

    #[test]
    fn involutions_restore_the_image(width in 1..40u32, height in 1..40u32, seed in any::<u32>()) {
        let (size, data) = ((width, height), noise((width, height), seed));
        for operation in [Operation::HorizontalFlip, Operation::VerticalFlip, Operation::Invert] {
            let once = applied(&operation, size, &data).unwrap();
            prop_assert_eq!(&applied(&operation, size, &once).unwrap(), &data);
        }
    }

    #[test]
    fn factor_1_changes_nothing(width in 1..40u32, height in 1..40u32, seed in any::<u32>()) {
        let (size, data) = ((width, height), noise((width, height), seed));
        let factor = 1.0;
        for operation in [
            Operation::Brightness { factor },
            Operation::Contrast { factor },
            Operation::Saturation { factor },
            Operation::Sharpness { factor },
        ] {
            prop_assert_eq!(&applied(&operation, size, &data).unwrap(), &data, "{:?}", operation);
        }
    }

    /// The maps enlarge, so that the pixel of the result in which the centre of a pixel lands comes from that pixel.
    #[test]
    fn points_move_with_the_pixels_and_labels_under_them(
        (width, height) in (2..40u32, 2..40u32),
        turn in -3.2..3.2f64,
        scale in 0.2..0.65f64,
        shift in prop::array::uniform2(-4.0..4.0f64),
        tilt in prop::array::uniform2(-0.05..0.05f64),
        mark in prop::array::uniform2(0.0..1.0f64),
    ) {
        let (size, fill, interpolation) = ((width, height), [0; 3], Interpolation::Nearest);
        let (sine, cosine) = (scale * turn.sin(), scale * turn.cos());
        let tilt = [tilt[0] / f64::from(width), tilt[1] / f64::from(height)];
        let zoom = scale.min(0.4);
        let operations = [
            Operation::HorizontalFlip,
            Operation::VerticalFlip,
            Operation::Affine { matrix: [cosine, -sine, shift[0], sine, cosine, shift[1]], interpolation, fill },
            Operation::Perspective {
                coefficients: [zoom, 0.1, shift[0], -0.1, zoom, shift[1], tilt[0], tilt[1]],
                interpolation,
                fill,
            },
        ];
        let [column, row] = [mark[0] * f64::from(width), mark[1] * f64::from(height)].map(f64::floor);
        let mut labels = vec![0u8; (width * height) as usize];
        labels[row as usize * width as usize + column as usize] = 1;
        let mut scratch = OperationScratch::default();
        for operation in operations {
            let mut moved = labels.clone();
            operation.apply_to_labels(LabelDtype::U8, size, &mut moved, 0, &mut scratch).unwrap();
            let mut pixels: Vec<u8> = labels.iter().flat_map(|label| [*label; 3]).collect();
            operation.apply(PixelsMut::new(width, height, &mut pixels).unwrap(), &mut scratch).unwrap();
            prop_assert_eq!(pixels, moved.iter().flat_map(|label| [*label; 3]).collect::<Vec<u8>>());
            let [x, y] = operation.map_point(size, [column + 0.5, row + 0.5]);
            if (0.0..f64::from(width)).contains(&x) && (0.0..f64::from(height)).contains(&y) {
                prop_assert_eq!(moved[y as usize * width as usize + x as usize], 1, "{:?}, {}, {}", operation, x, y);
            }
        }
    }
}

#[test]
fn wide_labels_move_and_outside_they_are_the_fill_label() {
    let mut scratch = OperationScratch::default();
    let mut labels = [1, 2, 3, 4, 5, 6];
    Operation::HorizontalFlip.apply_to_labels(LabelDtype::U16, (3, 1), &mut labels, 0, &mut scratch).unwrap();
    assert_eq!(labels, [5, 6, 3, 4, 1, 2]);
    Operation::VerticalFlip.apply_to_labels(LabelDtype::U16, (1, 3), &mut labels, 0, &mut scratch).unwrap();
    assert_eq!(labels, [1, 2, 3, 4, 5, 6]);
    let matrix = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0];
    let operation = Operation::Affine { matrix, interpolation: Interpolation::Bilinear, fill: [9; 3] };
    operation.apply_to_labels(LabelDtype::U16, (3, 1), &mut labels, 0x1234, &mut scratch).unwrap();
    assert_eq!(labels, [3, 4, 5, 6, 0x34, 0x12]);
    Operation::Invert.apply_to_labels(LabelDtype::U8, (3, 2), &mut labels, 0, &mut scratch).unwrap();
    assert_eq!(labels, [3, 4, 5, 6, 0x34, 0x12]);
    let wrong = operation.apply_to_labels(LabelDtype::U8, (3, 1), &mut labels, 0, &mut scratch);
    assert!(matches!(wrong, Err(Error::LabelBytes { expected: 3, found: 6, .. })));
}
