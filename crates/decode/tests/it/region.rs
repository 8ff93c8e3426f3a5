//! Regions: equal pixels by every decode path, similar ones when reduced, and which path is taken.

use crate::split_mix::SplitMix;
use jpeg_encoder::{ColorType, Encoder};
use proptest::prelude::*;
use shardtool_decode::{
    DecodeOptions, DecodePath, DecodedRegion, Decoder, Error, Filter, Geometry, Limits, Orientation, PaddingMode,
    Pipeline, PixelFormat, Pixels, RegionOptions, ResizeScratch, Transform, apply_geometry, check_entries, decode,
    encode_jpeg,
};
use shardtool_jpeg::entries;

fn exact() -> RegionOptions {
    RegionOptions::default().with_reducing_gap(None)
}

/// Waves, edges and a little noise.
fn photograph(width: u32, height: u32) -> Pixels {
    let data = (0..width * height).flat_map(|i| {
        let (x, y) = ((i % width) as f32, (i / width) as f32);
        let edge = if ((x + 2.0 * y) as u32 / 60).is_multiple_of(2) { 40.0 } else { 0.0 };
        let noise = (i.wrapping_mul(2_654_435_761) >> 29) as f32;
        [0.031f32, 0.017, 0.045].map(|f| (100.0 + 60.0 * (f * x).sin() * (f * y).cos() + edge + noise) as u8)
    });
    Pixels { width, height, data: data.collect() }
}

fn jpeg(width: u32, height: u32, quality: u8) -> (Vec<u8>, Vec<u8>) {
    let jpeg = encode_jpeg(photograph(width, height).view().unwrap(), quality).unwrap();
    let mut payload = Vec::new();
    entries::find(&jpeg, 1, &mut shardtool_jpeg::Decoder::new(), &mut payload).unwrap();
    (jpeg, payload)
}

fn result(geometry: &Geometry, region: &DecodedRegion<'_>, filter: Filter) -> Vec<u8> {
    let (w, h) = geometry.output_size();
    let mut out = vec![0xAA; (w * h * 3) as usize];
    apply_geometry(geometry, region, filter, &mut out, &mut ResizeScratch::default()).unwrap();
    out
}

fn plan(steps: Vec<Transform>, size: (u32, u32)) -> Geometry {
    Pipeline::new(steps).unwrap().plan(size, Orientation::default(), &mut SplitMix(0), &[]).unwrap().geometry()
}

fn resize(width: u32, height: u32) -> Vec<Transform> {
    vec![Transform::ResizeTo { size: [height, width], interpolation: Filter::Bilinear }]
}

proptest! {
    /// With or without entry points, and in a decoder used before, a region gives the result that the whole image gives.
    #[test]
    fn region_gives_the_result_of_the_whole_image(w in 1u32..200, h in 1u32..200, coarse: bool, exif in 1u8..9, seed: u64) {
        let (jpeg, payload) = jpeg(w, h, if coarse { 60 } else { 95 });
        let whole = decode(&jpeg, &DecodeOptions::default()).unwrap();
        let mut decoder = Decoder::default();
        for pipeline in [Pipeline::train(24).unwrap(), Pipeline::eval(40, 32).unwrap()] {
            let g = pipeline.plan((w, h), Orientation::from_exif(exif), &mut SplitMix(seed), &[]).unwrap().geometry();
            for filter in [Filter::Bilinear, Filter::Nearest] {
                let want = result(&g, &DecodedRegion::whole_image(whole.view().unwrap()), filter);
                for hints in [None, Some(&payload[..]), Some(&[][..]), Some(&[1, 3, 9][..])] {
                    let region = decoder.decode_region(&jpeg, hints, &g, &exact()).unwrap();
                    prop_assert_eq!(&want, &result(&g, &region, filter));
                    prop_assert_eq!(region.entries_rejected, hints.is_some_and(|h| h.len() == 3));
                    prop_assert!(region.rect.contains(g.needed()));
                }
            }
        }
    }

    /// Reduced decoding stays close to the exact one, for any offset of the crop.
    #[test]
    fn reduced_decoding_is_close_to_exact(w in 200u32..500, h in 200u32..500, seed: u64) {
        let (jpeg, payload) = jpeg(w, h, 92);
        let g = Pipeline::train(24).unwrap().plan((w, h), Orientation::default(), &mut SplitMix(seed), &[]).unwrap().geometry();
        let mut decoder = Decoder::default();
        let exact = result(&g, &decoder.decode_region(&jpeg, Some(&payload), &g, &exact()).unwrap(), Filter::Bilinear);
        let reducing = RegionOptions::default().with_reducing_gap(Some(2.0));
        let region = decoder.decode_region(&jpeg, Some(&payload), &g, &reducing).unwrap();
        let near = result(&g, &region, Filter::Bilinear);
        let far = exact.iter().zip(&near).map(|(a, b)| f64::from(a.abs_diff(*b))).sum::<f64>() / exact.len() as f64;
        prop_assert!(far < 2.5, "mean difference {far} at 1/{}", region.reduction);
    }
}

#[test]
fn chooses_reduction_by_the_gap() {
    let (jpeg, _) = jpeg(400, 300, 90);
    let mut decoder = Decoder::default();
    let mut reduction = |width, height, gap| {
        let options = RegionOptions::default().with_reducing_gap(gap);
        decoder.decode_region(&jpeg, None, &plan(resize(width, height), (400, 300)), &options).unwrap().reduction
    };
    // 400 / 100 and 300 / 75 are 4 times the result, so a gap of 2 allows a reduction by 2.
    assert_eq!(reduction(100, 75, Some(2.0)), 2);
    assert_eq!(reduction(101, 75, Some(2.0)), 1);
    assert_eq!(reduction(100, 75, Some(1.0)), 4);
    assert_eq!(reduction(100, 75, Some(0.1)), 4);
    assert_eq!(reduction(100, 75, Some(4.1)), 1);
    assert_eq!(reduction(10, 10, Some(1.0)), 8);
    assert_eq!(reduction(10, 10, Some(f64::INFINITY)), 1);
    assert_eq!(reduction(10, 10, None), 1);
}

#[test]
fn rejects_image_of_another_size_before_decoding() {
    let (jpeg, _) = jpeg(40, 30, 90);
    let cut = &jpeg[..jpeg.len() - 50];
    let g = plan(resize(10, 10), (40, 31));
    let refused = Decoder::default().decode_region(cut, None, &g, &exact()).unwrap_err();
    assert!(matches!(refused, Error::SizeMismatch { expected: (40, 31), found: (40, 30) }), "{refused}");
    let small = exact().with_limits(Limits::default().with_max_pixels(1199));
    let refused = Decoder::default().decode_region(&jpeg, None, &plan(resize(9, 9), (40, 30)), &small).unwrap_err();
    assert!(matches!(refused, Error::Limit { .. }), "{refused}");
}

#[test]
fn detects_damage_inside_the_region_only() {
    let (jpeg, _) = jpeg(64, 256, 90);
    let cut = &jpeg[..jpeg.len() / 2];
    let middle = vec![Transform::CenterCrop { size: [64, 64] }, Transform::CenterCrop { size: [8, 8] }];
    let g = plan(middle, (64, 256));
    let refused = Decoder::default().decode_region(&cut[..cut.len() / 2], None, &g, &exact()).unwrap_err();
    assert!(matches!(refused, Error::Jpeg { .. }), "{refused}");
    let tall = plan(vec![Transform::CenterCrop { size: [250, 60] }], (64, 256));
    assert!(matches!(Decoder::default().decode_region(cut, None, &tall, &exact()), Err(Error::Jpeg { .. })));
    let (jpeg, payload) = self::jpeg(64, 256, 90);
    let want = result(&g, &Decoder::default().decode_region(&jpeg, None, &g, &exact()).unwrap(), Filter::Bilinear);
    let mut decoder = Decoder::default();
    let region = decoder.decode_region(&jpeg[..jpeg.len() * 3 / 4], Some(&payload), &g, &exact()).unwrap();
    assert_eq!(result(&g, &region, Filter::Bilinear), want);
}

#[test]
fn reports_the_decode_path() {
    let (w, h) = (100, 80);
    let pixels = photograph(w, h);
    let encoded = |configure: fn(&mut Encoder<&mut Vec<u8>>)| {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, 90);
        configure(&mut encoder);
        encoder.encode(&pixels.data, w as u16, h as u16, ColorType::Rgb).unwrap();
        bytes
    };
    let g = plan(vec![Transform::CenterCrop { size: [10, 10] }], (w, h));
    let mut decoder = Decoder::default();
    let mut path = |bytes: &[u8], hints: Option<&[u8]>| decoder.decode_region(bytes, hints, &g, &exact()).unwrap().path;
    let (jpeg, payload) = jpeg(w, h, 90);
    assert_eq!(path(&jpeg, None), DecodePath::Start);
    assert_eq!(path(&jpeg, Some(&payload)), DecodePath::Entries);
    assert_eq!(path(&encoded(|e| e.set_progressive(true)), None), DecodePath::Scans);
    let mut cmyk = Vec::new();
    let ink = [10, 200, 30, 40].repeat((w * h) as usize);
    Encoder::new(&mut cmyk, 90).encode(&ink, w as u16, h as u16, ColorType::Cmyk).unwrap();
    assert_eq!(path(&cmyk, None), DecodePath::Scans);
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::from_raw(w, h, pixels.data.clone()).unwrap().write_to(&mut png, image::ImageFormat::Png).unwrap();
    assert_eq!(path(png.get_ref(), Some(&payload)), DecodePath::Rows);
    let mut bmp = std::io::Cursor::new(Vec::new());
    image::RgbImage::from_raw(w, h, pixels.data.clone()).unwrap().write_to(&mut bmp, image::ImageFormat::Bmp).unwrap();
    assert_eq!(path(bmp.get_ref(), None), DecodePath::WholeImage);
}

/// PNGs of every colour type and depth, and WebPs: a region gives the result that the whole image gives, in every pixel format,
/// and the rows below it may be missing.
#[test]
fn decodes_no_rows_of_png_and_webp_below_a_region() {
    let (w, h) = (97, 120);
    let photograph = image::RgbImage::from_raw(w, h, photograph(w, h).data).unwrap();
    let photograph = image::DynamicImage::from(photograph);
    let encode = |image: image::DynamicImage, format| {
        let mut bytes = std::io::Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    };
    let mut files: Vec<(&str, Vec<u8>)> = Vec::new();
    for (name, image) in [
        ("RGB", photograph.clone()),
        ("RGBA", image::DynamicImage::from(photograph.to_rgba8())),
        ("grey", image::DynamicImage::from(photograph.to_luma8())),
        ("grey with alpha", image::DynamicImage::from(photograph.to_luma_alpha8())),
        ("grey of 16 bits", image::DynamicImage::from(photograph.to_luma16())),
        ("RGB of 16 bits", image::DynamicImage::from(photograph.to_rgb16())),
        ("RGBA of 16 bits", image::DynamicImage::from(photograph.to_rgba16())),
    ] {
        files.push((name, encode(image, image::ImageFormat::Png)));
    }
    files.push(("WebP, lossless", encode(photograph.clone(), image::ImageFormat::WebP)));
    files.push(("WebP, lossless with alpha", encode(photograph.to_rgba8().into(), image::ImageFormat::WebP)));
    files.push(("WebP, lossy", include_bytes!("../data/lossy.webp").to_vec()));
    files.push(("WebP, lossy with alpha", include_bytes!("../data/lossy-alpha.webp").to_vec()));
    let mut decoder = Decoder::default();
    for (name, bytes) in files {
        let rows = !name.contains("WebP") || cfg!(feature = "libwebp");
        for format in [PixelFormat::RGB8, PixelFormat::GRAY8, PixelFormat::RGB16, PixelFormat::GRAY16] {
            let options = exact().with_pixel_format(format);
            let whole = plan(resize(w, h), (w, h));
            let all = decoder.decode_region(&bytes, None, &whole, &options).unwrap();
            assert_eq!((all.path, all.pixels.height()), (DecodePath::WholeImage, h), "{name}");
            let all = all.pixels.data().to_vec();
            for seed in 0..12 {
                let size = [[1, 20], [30, 5], [50, 50], [119, 7]][seed as usize % 4];
                let (padding, fill) = ([0; 4], [0; 3]);
                let crop = Transform::RandomCrop {
                    size,
                    padding,
                    pad_if_needed: false,
                    fill,
                    padding_mode: PaddingMode::Constant,
                };
                let crop = Pipeline::new(vec![crop]).unwrap();
                let g = crop.plan((w, h), Orientation::default(), &mut SplitMix(seed), &[]).unwrap().geometry();
                let (top, height) = (g.needed().top, g.needed().height);
                let row = w as usize * format.bytes();
                let check = |region: &DecodedRegion<'_>| {
                    let (from, n) = (region.rect.top as usize, region.rect.height as usize);
                    assert!(from <= top as usize && from + n >= (top + height) as usize, "{name}");
                    assert!(region.pixels.data() == &all[from * row..(from + n) * row], "{name}, {format:?}, {top}");
                };
                let region = decoder.decode_region(&bytes, None, &g, &options).unwrap();
                assert_eq!((region.stored, region.reduction), ((w, h), 1), "{name}");
                assert_eq!(region.path == DecodePath::Rows, rows && region.rect.height < h, "{name}");
                check(&region);
                if name.contains("RGB") && top + height < 60 {
                    // Its IDAT chunk ends early.
                    let cut = &bytes[..bytes.len() * 3 / 4];
                    check(&decoder.decode_region(cut, None, &g, &options).unwrap());
                    assert!(decoder.decode_region(cut, None, &whole, &options).is_err(), "{name}");
                }
            }
        }
    }
}

#[test]
fn checks_entry_points_against_the_image() {
    let (jpeg, payload) = jpeg(150, 120, 90);
    assert!(payload.len() > 20 && check_entries(&jpeg, &payload) && check_entries(&jpeg, &[]));
    for at in 0..payload.len() {
        let mut wrong = payload.clone();
        wrong[at] ^= 1;
        assert!(!check_entries(&jpeg, &wrong), "byte {at}");
    }
    assert!(!check_entries(&jpeg, &payload[..payload.len() - 1]));
    assert!(!check_entries(&jpeg[..jpeg.len() / 2], &payload));
    assert!(!check_entries(b"no image", &payload));
}
