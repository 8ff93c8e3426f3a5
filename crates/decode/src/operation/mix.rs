//! AugMix: the weighted sum of an image and of the results of chains of operations on it.

use super::Operation;
use super::sample::truncated;
use super::scratch::{MixScratch, OperationScratch, copy_to, make_room};
use super::vectorised::vectorised;
use crate::error::Error;
use crate::pixels::PixelsMut;

vectorised!(start = start_kernel(image: &[u8], weight: f32, sum: &mut [f32]));

vectorised!(add = add_kernel(image: &[u8], weight: f32, sum: &mut [f32]));

vectorised!(finish = finish_kernel(sum: &[f32], out: &mut [u8]));

/// Replaces the image by `image_weight` times itself plus the sum of `weights[i]` times the result of `chains[i]`, rounded down.
/// No operation of the chains is AugMix.
///
/// # Errors
/// Those of the operations.
pub(super) fn augmix(
    image: &mut PixelsMut<'_>,
    image_weight: f32,
    weights: &[f32],
    chains: &[Vec<Operation>],
    scratch: &mut OperationScratch,
) -> Result<(), Error> {
    let MixScratch { mut chain, mut sum } = std::mem::take(&mut scratch.mix);
    make_room(&mut sum, image.data.len());
    sum.resize(image.data.len(), 0.0);
    start(image.data, image_weight, &mut sum);
    for (weight, operations) in weights.iter().zip(chains) {
        copy_to(&mut chain, image.data);
        for operation in operations {
            let part = PixelsMut::with_format(image.width(), image.height(), image.format(), &mut chain)?;
            operation.apply(part, scratch)?;
        }
        add(&chain, *weight, &mut sum);
    }
    finish(&sum, image.data);
    scratch.mix = MixScratch { chain, sum };
    Ok(())
}

#[inline(always)]
fn start_kernel(image: &[u8], weight: f32, sum: &mut [f32]) {
    sum.iter_mut().zip(image).for_each(|(sum, sample)| *sum = weight * f32::from(*sample));
}

#[inline(always)]
fn add_kernel(image: &[u8], weight: f32, sum: &mut [f32]) {
    sum.iter_mut().zip(image).for_each(|(sum, sample)| *sum += weight * f32::from(*sample));
}

#[inline(always)]
fn finish_kernel(sum: &[f32], out: &mut [u8]) {
    out.iter_mut().zip(sum).for_each(|(out, sum)| *out = truncated(*sum));
}
