//! Decoding a JPEG into the batch allocates nothing after the first images, and never more than the bounds announced.

#[path = "made/counting_allocator.rs"]
mod counting_allocator;
#[path = "made/split_mix.rs"]
mod split_mix;

use counting_allocator::allocated;
use png::{BitDepth, ColorType};
use shardtool_decode::{
    Decoder, Filter, Orientation, Pipeline, PixelFormat, Pixels, RegionOptions, ResizeScratch, apply_geometry,
    encode_jpeg, probe, scratch_bound, scratch_bytes,
};
use shardtool_jpeg::entries;
use split_mix::SplitMix;

/// Generated JPEGs, and photographs if they are available, each with its entry points.
fn images() -> Vec<(Vec<u8>, Vec<u8>)> {
    let made = [(500, 375), (64, 900), (1300, 1000), (9, 7)].map(|(width, height)| {
        let noise = |i: u32| ((i.wrapping_mul(2_654_435_761) >> 27) + i / 64) as u8;
        let pixels = Pixels { width, height, data: (0..width * height * 3).map(noise).collect() };
        encode_jpeg(pixels.view().unwrap(), if width == 500 { 75 } else { 90 }).unwrap()
    });
    // With several scans, whose coefficients are all decoded before the pixels.
    let scans = [(900u16, 700u16, true), (3, 2000, true), (700, 500, false)].map(|(width, height, progressive)| {
        let mut jpeg = Vec::new();
        let mut encoder = jpeg_encoder::Encoder::new(&mut jpeg, 90);
        encoder.set_progressive(progressive);
        encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_4_1);
        let pixels: Vec<u8> =
            (0..u32::from(width) * u32::from(height) * 3).map(|i: u32| (i / 7).wrapping_mul(i) as u8).collect();
        encoder.encode(&pixels, width, height, jpeg_encoder::ColorType::Rgb).unwrap();
        jpeg
    });
    let shared = std::env::var_os("SHARDTOOL_SHARED")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").into(), std::path::PathBuf::from);
    let mut photographs = Vec::new();
    match std::fs::read_dir(shared.join("data/imagenet-sample")) {
        Ok(classes) => {
            for class in classes.flatten().filter(|c| c.path().is_dir()).take(30) {
                photographs.extend(std::fs::read_dir(class.path()).unwrap().take(1).map(|f| f.unwrap().path()));
            }
        }
        Err(_) => println!("generated images only: the photographs are not available"),
    }
    let mut decoder = shardtool_jpeg::Decoder::new();
    let each = made.into_iter().chain(scans).chain(photographs.into_iter().map(|path| std::fs::read(path).unwrap()));
    each.map(|jpeg| {
        let mut payload = Vec::new();
        entries::find(&jpeg, 2, &mut decoder, &mut payload).unwrap();
        (jpeg, payload)
    })
    .collect()
}

/// The only test of its binary, because the allocator counts for all threads.
#[test]
fn decoding_jpegs_allocates_nothing_after_the_first_and_stays_within_the_bounds() {
    let images = images();
    let pipelines = [Pipeline::train(224).unwrap(), Pipeline::eval(256, 224).unwrap()];
    let mut out = vec![0; 224 * 224 * 6];
    let mut place =
        |decoder: &mut Decoder, scratch: &mut ResizeScratch, image: usize, pipeline: usize, exif: u8, format| {
            let (jpeg, payload) = &images[image];
            let options = RegionOptions::default().with_reducing_gap(Some(2.0)).with_pixel_format(format);
            let out = &mut out[..224 * 224 * format.bytes()];
            let info = probe(jpeg, &options.limits).unwrap();
            let orientation = Orientation::from_exif(exif);
            let mut draw = SplitMix(image as u64);
            let geometry =
                pipelines[pipeline].plan((info.width, info.height), orientation, &mut draw, &[]).unwrap().geometry();
            let region = decoder.decode_region(jpeg, Some(payload), &geometry, &options).unwrap();
            assert!(!region.entries_rejected || payload.is_empty());
            apply_geometry(&geometry, &region, Filter::Bilinear, out, scratch).unwrap();
            let bytes = scratch_bytes(jpeg, &geometry, &options).unwrap();
            let bound = scratch_bound((info.width, info.height), jpeg.len() as u64, geometry.output_size());
            (bytes as usize, bound as usize)
        };

    for format in FORMATS {
        let (mut decoder, mut scratch) = (Decoder::default(), ResizeScratch::default());
        let mut rounds = [0; 2];
        for count in &mut rounds {
            let ((), round) = allocated(|| {
                for image in 0..images.len() {
                    for (pipeline, exif) in [(0, 1), (1, 1), (0, 6)] {
                        place(&mut decoder, &mut scratch, image, pipeline, exif, format);
                    }
                }
            });
            *count = round.count;
        }
        assert!(rounds[0] > 0);
        assert_eq!(rounds[1], 0, "allocations in the second round, {format:?}");
        decoder.shrink_to(0);
        assert!(decoder.held_bytes() == 0, "{}", decoder.held_bytes());

        for image in 0..images.len() {
            let ((bytes, bound), image_alone) = allocated(|| {
                place(&mut Decoder::default(), &mut ResizeScratch::default(), image, image % 2, 1, format)
            });
            let most = image_alone.peak;
            // The general bound is that of RGB of 8 bits.
            let within = most <= bytes && (most <= bound || format.bytes() > 3);
            assert!(within, "image {image}, {format:?}: allocated {most}, announced {bytes}, bound {bound}");
        }
    }
    pngs_stay_within_the_bounds();
}

const FORMATS: [PixelFormat; 4] = [PixelFormat::RGB8, PixelFormat::GRAY8, PixelFormat::RGB16, PixelFormat::GRAY16];

/// PNGs of 8 and 16 bits, with and without alpha.
fn pngs_stay_within_the_bounds() {
    let (width, height) = (611, 407);
    for (color, channels) in
        [(ColorType::Grayscale, 1), (ColorType::GrayscaleAlpha, 2), (ColorType::Rgb, 3), (ColorType::Rgba, 4)]
    {
        for (depth, bytes) in [(BitDepth::Eight, 1), (BitDepth::Sixteen, 2)] {
            let mut encoded = vec![];
            let mut encoder = png::Encoder::new(&mut encoded, width, height);
            encoder.set_color(color);
            encoder.set_depth(depth);
            let samples: Vec<u8> =
                (0..width * height * channels * bytes).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
            encoder.write_header().unwrap().write_image_data(&samples).unwrap();
            for format in FORMATS {
                let options = RegionOptions::default().with_pixel_format(format);
                let pipeline = Pipeline::train(224).unwrap();
                let plan = pipeline.plan((width, height), Orientation::default(), &mut SplitMix(7), &[]).unwrap();
                let mut out = vec![0; 224 * 224 * format.bytes()];
                let (geometry, bytes) =
                    (plan.geometry(), scratch_bytes(&encoded, &plan.geometry(), &options).unwrap() as usize);
                let ((), peak) = allocated(|| {
                    let (mut decoder, mut scratch) = (Decoder::default(), ResizeScratch::default());
                    let region = decoder.decode_region(&encoded, None, &geometry, &options).unwrap();
                    apply_geometry(&geometry, &region, Filter::Bilinear, &mut out, &mut scratch).unwrap();
                });
                assert!(peak.peak <= bytes, "{color:?} {depth:?} to {format:?}: {} of {bytes}", peak.peak);
            }
        }
    }
}
