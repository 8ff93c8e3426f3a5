//! Transforms, compared with numbers computed by hand from torchvision's published algorithm and with naive oracles.

use proptest::prelude::*;
use shardtool_decode::{
    DecodedRegion, Error, Filter, Geometry, Orientation, Pipeline, PixelsRef, Random, Rect, ResizeScratch, Transform,
    TransformError, apply_geometry, reduce_longer, reduce_shorter,
};

use crate::split_mix::SplitMix;

/// Returns given numbers; `below` scales them to its range.
struct Script<'a>(std::slice::Iter<'a, f64>);

impl<'a> Script<'a> {
    fn new(draws: &'a [f64]) -> Self {
        Script(draws.iter())
    }
}

impl Random for Script<'_> {
    fn unit(&mut self) -> f64 {
        *self.0.next().unwrap()
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.unit() * n as f64) as u64
    }
}

/// Pixels that encode their position: x, y and a mixture of both.
fn pattern(width: u32, height: u32) -> Vec<u8> {
    (0..height).flat_map(|y| (0..width).flat_map(move |x| [x as u8, y as u8, (x * 31 + y * 17) as u8])).collect()
}

fn result(geometry: &Geometry, width: u32, height: u32, data: &[u8], filter: Filter) -> Vec<u8> {
    let (w, h) = geometry.output_size();
    let mut out = vec![0xAA; (w * h * 3) as usize];
    let region = DecodedRegion::whole_image(PixelsRef::new(width, height, data).unwrap());
    apply_geometry(geometry, &region, filter, &mut out, &mut ResizeScratch::default()).unwrap();
    out
}

fn crop(data: &[u8], width: u32, rect: Rect) -> Vec<u8> {
    let row = |y: u32| &data[((y * width + rect.left) * 3) as usize..][..(rect.width * 3) as usize];
    (rect.top..rect.top + rect.height).flat_map(row).copied().collect()
}

fn rrc(ratio: [f64; 2]) -> Pipeline {
    Pipeline::new(vec![Transform::RandomResizedCrop {
        size: [8, 8],
        scale: [0.08, 1.0],
        ratio,
        interpolation: Filter::Bilinear,
    }])
    .unwrap()
}

#[test]
fn random_resized_crop_equals_hand_computed_rectangles() {
    // Draws: area, ratio, top, left. Area 0.08 + 0.92·0.25 = 0.31 of 400·300 = 37,200; the middle of a log-uniform ratio
    // in [3/4, 4/3] is 1; √37,200 = 192.87, so 193 × 193. Tops 0..=107, half of 108 is 54; lefts 0..=207, 0.
    let g =
        rrc([0.75, 4.0 / 3.0]).plan((400, 300), Orientation::default(), &mut Script::new(&[0.25, 0.5, 0.5, 0.0]), &[]);
    assert_eq!(g.unwrap().geometry().needed(), Rect { left: 0, top: 54, width: 193, height: 193 });
    // Ratio 4/3 (nearly): 37,200·4/3 = 49,600, √ = 222.71, so 223 wide; 37,200·3/4 = 27,900, √ = 167.03, so 167 high.
    // Tops 0..=133: 0.9·134 = 120; lefts 0..=177: 0.25·178 = 44.
    let draws = [0.25, 1.0, 0.9, 0.25];
    let g = rrc([0.75, 4.0 / 3.0])
        .plan((400, 300), Orientation::default(), &mut Script::new(&draws), &[])
        .unwrap()
        .geometry();
    assert_eq!(g.needed(), Rect { left: 44, top: 120, width: 223, height: 167 });
}

#[test]
fn random_resized_crop_is_centred_after_ten_failed_tries() {
    // An area of the whole and a ratio of 1 never fit into 1000 × 100, so all ten tries fail (two draws each), and the
    // width is cut to 100 · 4/3 = 133, at (1000 - 133) div 2 = 433.
    let tries = [0.999, 0.5].repeat(10);
    let p = rrc([0.75, 4.0 / 3.0]);
    let g = p.plan((1000, 100), Orientation::default(), &mut Script::new(&tries), &[]).unwrap().geometry();
    assert_eq!(g.needed(), Rect { left: 433, top: 0, width: 133, height: 100 });
    let g = p.plan((100, 1000), Orientation::default(), &mut Script::new(&tries), &[]).unwrap().geometry();
    assert_eq!(g.needed(), Rect { left: 0, top: 433, width: 100, height: 133 });
    // With the ratio in range but no try that fits (ratio drawn wide), the whole image.
    let wide = [0.999, 0.999].repeat(10);
    let g = rrc([0.5, 2.0]).plan((100, 100), Orientation::default(), &mut Script::new(&wide), &[]).unwrap().geometry();
    assert_eq!(g.needed(), Rect { left: 0, top: 0, width: 100, height: 100 });
}

#[test]
fn centre_crop_rounds_halves_to_even() {
    let at = |width, height| {
        let p = Pipeline::new(vec![Transform::CenterCrop { size: [4, 4] }]).unwrap();
        let data = pattern(width, height);
        let out = result(
            &p.plan((width, height), Orientation::default(), &mut SplitMix(0), &[]).unwrap().geometry(),
            width,
            height,
            &data,
            Filter::Bilinear,
        );
        (out[0], out[1])
    };
    // (5-4)/2 = 0.5 to 0; (7-4)/2 = 1.5 to 2; (9-4)/2 = 2.5 to 2; (11-4)/2 = 3.5 to 4.
    assert_eq!(at(5, 7), (0, 2));
    assert_eq!(at(9, 11), (2, 4));
    assert_eq!(at(4, 10), (0, 3));
}

#[test]
fn reduced_sizes_equal_hand_computed_ones() {
    // int(256 · 500 / 375) = int(341.33); int(256 · 375 / 500) would be the shorter one enlarged: left alone.
    assert_eq!(reduce_shorter((500, 375), 256), (341, 256));
    assert_eq!(reduce_shorter((375, 500), 256), (256, 341));
    assert_eq!(reduce_shorter((200, 500), 256), (200, 500));
    assert_eq!(reduce_longer((500, 375), 256), (256, 192));
    assert_eq!(reduce_longer((3, 65_535), 100), (1, 100));
    assert_eq!(reduce_longer((100, 90), 100), (100, 90));
}

#[test]
fn rejects_invalid_steps() {
    let error = |steps: Vec<Transform>| match Pipeline::new(steps) {
        Err(Error::Transforms { reason }) => reason,
        other => panic!("{other:?}"),
    };
    let crop = |h, w| Transform::CenterCrop { size: [h, w] };
    let resize = Transform::Resize { shorter: 100, longest: None, interpolation: Filter::Bilinear };
    assert_eq!(error(vec![]), TransformError::NoSize);
    assert_eq!(error(vec![resize.clone()]), TransformError::NoSize);
    assert_eq!(error(vec![resize.clone(), crop(101, 101)]), TransformError::Crop { step: 1 });
    assert_eq!(error(vec![crop(10, 20), crop(10, 21)]), TransformError::Crop { step: 1 });
    let twice =
        Pipeline::new(vec![resize.clone(), Transform::ResizeTo { size: [3, 3], interpolation: Filter::Bilinear }])
            .unwrap();
    assert_eq!(twice.output_size(), (3, 3));
    assert!(matches!(error(vec![crop(0, 3)]), TransformError::Range { step: 0, name: "size", .. }));
    for p in [-0.1, 1.1, f64::NAN] {
        let flip = Transform::HorizontalFlip { p };
        assert!(matches!(error(vec![crop(3, 3), flip]), TransformError::Range { step: 1, name: "p", .. }));
    }
    for scale in [[0.0, 1.0], [0.5, 0.4], [0.1, 1.5], [f64::NAN, 1.0]] {
        let step =
            Transform::RandomResizedCrop { size: [8, 8], scale, ratio: [1.0, 1.0], interpolation: Filter::Bilinear };
        assert!(matches!(error(vec![step]), TransformError::Range { name: "scale", .. }));
    }
    let small = Pipeline::new(vec![crop(10, 10)]).unwrap().plan((9, 20), Orientation::default(), &mut SplitMix(0), &[]);
    assert!(matches!(small, Err(Error::CropTooLarge { crop: (10, 10), image: (9, 20) })));
}

#[test]
fn pipelines_round_trip_through_json() {
    for p in [Pipeline::train(224).unwrap(), Pipeline::eval(256, 224).unwrap()] {
        let json = serde_json::to_string(&p).unwrap();
        assert_eq!(serde_json::from_str::<Pipeline>(&json).unwrap(), p, "{json}");
    }
    assert!(serde_json::from_str::<Pipeline>(r#"[{"center_crop":{"size":[8,8],"pad":1}}]"#).is_err());
    assert!(serde_json::from_str::<Pipeline>(r#"[{"blur":{}}]"#).is_err());
}

#[test]
fn orientations_equal_those_of_the_image_crate() {
    let (w, h) = (7, 5);
    let data = pattern(w, h);
    for exif in 1..=8 {
        let mut oracle = image::DynamicImage::ImageRgb8(image::RgbImage::from_raw(w, h, data.clone()).unwrap());
        oracle.apply_orientation(image::metadata::Orientation::from_exif(exif).unwrap());
        let size = [oracle.height(), oracle.width()];
        let plan = |steps| {
            Pipeline::new(steps)
                .unwrap()
                .plan((w, h), Orientation::from_exif(exif), &mut SplitMix(0), &[])
                .unwrap()
                .geometry()
        };
        let all = Transform::CenterCrop { size };
        assert_eq!(result(&plan(vec![all.clone()]), w, h, &data, Filter::Bilinear), oracle.as_bytes(), "exif {exif}");
        // Then a flip and a crop that is off centre by half a pixel in one direction.
        let flip = Transform::HorizontalFlip { p: 1.0 };
        let small = Transform::CenterCrop { size: [size[0] - 3, size[1] - 3] };
        let mirrored = oracle.fliph();
        // Offsets of 1.5 round to 2 in either direction.
        let want = mirrored.crop_imm(2, 2, size[1] - 3, size[0] - 3);
        assert_eq!(result(&plan(vec![flip, small]), w, h, &data, Filter::Bilinear), want.as_bytes(), "exif {exif}");
    }
}

#[test]
fn nearest_neighbour_does_not_mix_values() {
    let (w, h) = (64, 48);
    let mask: Vec<u8> = (0..w * h).flat_map(|i| [if (i % w) / 8 % 2 == 0 { 3 } else { 200 }; 3]).collect();
    for seed in 0..50 {
        let g = Pipeline::train(16)
            .unwrap()
            .plan((w, h), Orientation::default(), &mut SplitMix(seed), &[])
            .unwrap()
            .geometry();
        let out = result(&g, w, h, &mask, Filter::Nearest);
        assert!(out.iter().all(|v| [3, 200].contains(v)));
    }
    // Reduction by two takes the pixel at 2i + 1: floor((i + 0.5) · 2).
    let half = Pipeline::new(vec![Transform::ResizeTo { size: [24, 32], interpolation: Filter::Bilinear }]).unwrap();
    let g = half.plan((w, h), Orientation::default(), &mut SplitMix(0), &[]).unwrap().geometry();
    let out = result(&g, w, h, &pattern(w, h), Filter::Nearest);
    assert_eq!((out[0], out[1], out[3], out[32 * 3 + 1]), (1, 1, 3, 3));
}

#[test]
fn rejects_buffers_of_the_wrong_size() {
    let data = pattern(10, 10);
    let g =
        Pipeline::eval(8, 8).unwrap().plan((10, 10), Orientation::default(), &mut SplitMix(0), &[]).unwrap().geometry();
    let pixels = PixelsRef::new(10, 10, &data).unwrap();
    let mut scratch = ResizeScratch::default();
    let mut run =
        |region: DecodedRegion<'_>, len| apply_geometry(&g, &region, Filter::Bilinear, &mut vec![0; len], &mut scratch);
    assert!(matches!(
        run(DecodedRegion::whole_image(pixels), 191),
        Err(Error::PixelBytes { expected: 192, found: 191, .. })
    ));
    let other = DecodedRegion { stored: (11, 10), ..DecodedRegion::whole_image(pixels) };
    assert!(matches!(run(other, 192), Err(Error::SizeMismatch { found: (11, 10), .. })));
    let part = PixelsRef::new(9, 10, &data[..270]).unwrap();
    let rect = Rect { left: 1, top: 0, width: 9, height: 10 };
    assert!(matches!(
        run(DecodedRegion { pixels: part, rect, ..DecodedRegion::whole_image(pixels) }, 192),
        Err(Error::Region { .. })
    ));
    assert!(matches!(PixelsRef::new(10, 11, &data), Err(Error::PixelBytes { .. })));
}

fn steps() -> impl Strategy<Value = Vec<Transform>> {
    let side = 1u32..40;
    prop_oneof![
        (side.clone(), side.clone(), 0.01..1.0f64).prop_map(|(h, w, least)| vec![
            Transform::HorizontalFlip { p: 0.5 },
            Transform::RandomResizedCrop {
                size: [h, w],
                scale: [least, 1.0],
                ratio: [0.5, 2.0],
                interpolation: Filter::Bilinear
            },
            Transform::HorizontalFlip { p: 0.5 },
        ]),
        (side.clone(), 0u32..40, 0u32..40, any::<bool>()).prop_map(|(s, dh, dw, flip)| {
            let size = [s.saturating_sub(dh).max(1), s.saturating_sub(dw).max(1)];
            let p = if flip { 1.0 } else { 0.0 };
            vec![
                Transform::Resize { shorter: s, longest: None, interpolation: Filter::Bilinear },
                Transform::HorizontalFlip { p },
                Transform::CenterCrop { size },
            ]
        }),
        (side.clone(), side)
            .prop_map(|(h, w)| vec![Transform::ResizeTo { size: [h, w], interpolation: Filter::Bilinear }]),
    ]
}

proptest! {
    /// The pixels of `Geometry::needed` give the result that the whole image gives.
    #[test]
    fn needed_pixels_are_sufficient(steps in steps(), w in 1u32..90, h in 1u32..90, exif in 1u8..9, seed: u64) {
        let pipeline = Pipeline::new(steps).unwrap();
        let g = pipeline.plan((w, h), Orientation::from_exif(exif), &mut SplitMix(seed), &[]).unwrap().geometry();
        prop_assert_eq!(g.output_size(), pipeline.output_size());
        let data = pattern(w, h);
        for filter in [Filter::Bilinear, Filter::Nearest] {
            let whole = result(&g, w, h, &data, filter);
            let rect = g.needed();
            let part = crop(&data, w, rect);
            let pixels = PixelsRef::new(rect.width, rect.height, &part).unwrap();
            let region = DecodedRegion { rect, stored: (w, h), ..DecodedRegion::whole_image(pixels) };
            let mut out = vec![0x55; whole.len()];
            apply_geometry(&g, &region, filter, &mut out, &mut ResizeScratch::default()).unwrap();
            prop_assert_eq!(whole, out);
        }
    }

    /// Resize and centre crop in one pass equal the crop of the resized image, up to a rounding of 1.
    #[test]
    fn fused_crop_equals_crop_of_the_resized_image(w in 8u32..90, h in 8u32..90, shorter in 4u32..60, cut in 0u32..20) {
        let side = shorter.saturating_sub(cut).max(1);
        let fused = Pipeline::eval(shorter, side).unwrap();
        let (rw, rh) = if w <= h { (shorter, shorter * h / w) } else { (shorter * w / h, shorter) };
        let data = pattern(w, h);
        let random = &mut SplitMix(0);
        let whole = Pipeline::new(vec![Transform::ResizeTo { size: [rh, rw], interpolation: Filter::Bilinear }]).unwrap();
        let resized = result(&whole.plan((w, h), Orientation::default(), random, &[]).unwrap().geometry(), w, h, &data, Filter::Bilinear);
        let half = |n: u32| (f64::from(n) / 2.0).round_ties_even() as u32;
        let rect = Rect { left: half(rw - side), top: half(rh - side), width: side, height: side };
        let got = result(&fused.plan((w, h), Orientation::default(), random, &[]).unwrap().geometry(), w, h, &data, Filter::Bilinear);
        let want = crop(&resized, rw, rect);
        prop_assert!(got.iter().zip(&want).all(|(a, b)| a.abs_diff(*b) <= 1));
    }
}
