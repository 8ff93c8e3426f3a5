//! Mixing on the device, compared with the host.

use super::{Outcome, Prepared, USUAL, bytes, config, output, pixel, upload};
use serde_json::json;
use shardtool_benches::median;
use shardtool_cuda::{Device, DeviceLoader, Dtype, Layout, PinnedAlloc};
use shardtool_decode::Normalizer;
use shardtool_load::{BatchMix, BatchTransform, Mixing};

/// The transforms, each alone.
fn transforms() -> [(&'static str, BatchTransform); 3] {
    [
        ("MixUp", BatchTransform::mix_up(0.8)),
        ("CutMix", BatchTransform::cut_mix(1.0)),
        ("Mosaic", BatchTransform::mosaic(0.9)),
    ]
}

/// Returns how a batch is mixed; `number` identifies it.
pub(super) fn of_batch(mixing: &Mixing, [n, h, w, _]: [usize; 4], number: u64) -> shardtool_load::Result<BatchMix> {
    mixing.draw(1, 0, number, (w as u32, h as u32), &vec![true; n])
}

pub(super) fn mix(batches: u64, rounds: u64) -> Outcome {
    let device = Device::open(0)?;
    let mut wrong = 0;
    for shape in [[8, 224, 224, 3], [5, 37, 53, 3], [6, 14, 22, 3], [1, 8, 8, 3], [70_000, 2, 2, 3]] {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            for layout in [Layout::Nhwc, Layout::Nchw] {
                wrong += values(&device, shape, dtype, layout)?;
            }
        }
    }
    for (name, transform) in transforms() {
        let mixing = Mixing { transforms: vec![transform], classes: 1 };
        let run = |mixing| upload(&device, PinnedAlloc::new(&device), Dtype::F16, batches + batches / 10 + 4, mixing);
        let (mut plain, mut mixed, mut shares) = (vec![], vec![], vec![]);
        for _ in 0..rounds {
            plain.push(run(None)?);
            mixed.push(run(Some(&mixing))?);
            shares.push(mixed[mixed.len() - 1] / plain[plain.len() - 1]);
        }
        println!(
            "{}",
            json!({ "check": "mix", "case": "rate", "transform": name, "batch_bytes": USUAL.iter().product::<usize>(),
                    "unmixed_gb_per_s": median(plain) / 1e9, "mixed_gb_per_s": median(mixed) / 1e9, "share": median(shares.clone()),
                    "shares": shares })
        );
    }
    if wrong > 0 { Err(format!("{wrong} mixed batches differ from the host's").into()) } else { Ok(()) }
}

/// Uploads batches mixed by each transform; returns how many differ in any bit from what the host mixes and normalises.
fn values(device: &Device, shape: [usize; 4], dtype: Dtype, layout: Layout) -> Result<u64, Box<dyn std::error::Error>> {
    let stream = device.context().new_stream()?;
    let normalizer = Normalizer::new(output(dtype, layout));
    let image: usize = shape[1..].iter().product();
    let (count, mut wrong) = (3, 0);
    for (_, transform) in transforms() {
        let mixing = Mixing { transforms: vec![transform], classes: 1 };
        let make = |pinned: &_| Ok(Prepared { mixing: Some(mixing.clone()), ..Prepared::new(pinned, shape, count)? });
        let mut loader = DeviceLoader::new(device, config(output(dtype, layout)), make)?;
        // The feed counts down.
        for number in (0..count).rev() {
            let batch = loader.next_batch()?.ok_or("a batch")?;
            let tag = batch.rows().ids[0];
            let mut pixels: Vec<u8> = (0..shape.iter().product()).map(|i| pixel(tag, i)).collect();
            of_batch(&mixing, shape, number)?.mix(&mut pixels);
            let mut expected = vec![0; pixels.len() * dtype.bytes()];
            let rows = pixels.chunks(image).zip(expected.chunks_mut(image * dtype.bytes()));
            rows.for_each(|(pixels, values)| normalizer.write(pixels, values));
            wrong += u64::from(bytes(&batch, &stream)? != expected);
        }
    }
    println!(
        "{}",
        json!({ "check": "mix", "case": "values", "shape": shape, "dtype": dtype.name(),
                "layout": format!("{layout:?}").to_uppercase(), "batches": 3 * count, "wrong": wrong })
    );
    Ok(wrong)
}
