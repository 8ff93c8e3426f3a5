//! Applies operations to pixels, labels and points.

use super::scratch::{BlurScratch, MixScratch, OperationScratch, copy_to};
use super::warp::Warp;
use super::{Interpolation, Operation, blur, check, erase, flip, gray, histogram, hue, levels, mix, point, sharpness};
use crate::error::Error;
use crate::label_dtype::LabelDtype;
use crate::pixel_format::PixelFormat;
use crate::pixels::{PixelsMut, rgb_len};

impl Operation {
    /// Checks the parameters for an image of `size` (width, height). [`apply`](Self::apply) does so as well.
    ///
    /// # Errors
    /// [`Error::Operation`] if a parameter is out of range; [`Error::BlurKernel`] if the kernel of a blur is too large for the
    /// image.
    pub fn check(&self, size: (u32, u32)) -> Result<(), Error> {
        check::check(self, size)
    }

    /// Changes the image in place.
    ///
    /// Colours that are parameters become grey in a grey image. Of grey images saturation, hue and grayscale change nothing, as in
    /// torchvision.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), and [`Error::OperationFormat`] if the operation is not defined for the pixel format:
    /// `channel_permutation` and `erase_noise` for grey, and all but flips, `erase` and maps by nearest neighbour for 16 bits. The
    /// image is then unchanged.
    pub fn apply(&self, image: PixelsMut<'_>, scratch: &mut OperationScratch) -> Result<(), Error> {
        self.check((image.width(), image.height()))?;
        if image.data.is_empty() {
            return Ok(());
        }
        match image.format() {
            PixelFormat::RGB8 => self.apply_rgb(image, scratch),
            PixelFormat::GRAY8 => self.apply_gray(image, scratch),
            PixelFormat::RGB16 => self.move_pixels::<6>(image, scratch),
            PixelFormat::GRAY16 => self.move_pixels::<2>(image, scratch),
        }
    }

    fn apply_rgb(&self, mut image: PixelsMut<'_>, scratch: &mut OperationScratch) -> Result<(), Error> {
        let size = (image.width() as usize, image.height() as usize);
        let data = &mut *image.data;
        match self {
            Operation::Brightness { factor } => levels::adjust_brightness(data, *factor),
            Operation::Contrast { factor } => gray::adjust_contrast(data, *factor),
            Operation::Saturation { factor } => gray::adjust_saturation(data, *factor),
            Operation::Hue { factor } => hue::adjust_hue(data, *factor),
            Operation::Sharpness { factor } => {
                sharpness::adjust_sharpness::<3>(data, size, *factor, &mut scratch.copy);
            }
            Operation::Grayscale => gray::grayscale(data),
            Operation::ChannelPermutation { order } => flip::permute_channels(data, *order),
            Operation::Invert => levels::invert(data),
            Operation::Autocontrast => histogram::autocontrast(data),
            Operation::Equalize => histogram::equalize(data),
            Operation::Posterize { bits } => levels::posterize(data, *bits),
            Operation::Solarize { threshold } => levels::solarize(data, *threshold),
            Operation::GaussianBlur { kernel, sigma } => {
                blur::gaussian_blur::<3>(data, size, *kernel, *sigma, &mut scratch.copy, &mut scratch.blur);
            }
            Operation::Affine { interpolation: Interpolation::Bilinear, fill, .. }
            | Operation::Perspective { interpolation: Interpolation::Bilinear, fill, .. } => {
                let Some(warp) = self.warp(size) else { return Ok(()) };
                copy_to(&mut scratch.copy, data);
                warp.bilinear(&scratch.copy, *fill, data);
            }
            Operation::EraseNoise { rect, key } => erase::erase_with_noise(data, size, *rect, *key),
            Operation::AugMix { image: weight, weights, chains } => {
                return mix::augmix(&mut image, *weight, weights, chains, scratch);
            }
            _ => return self.move_pixels::<3>(image, scratch),
        }
        Ok(())
    }

    fn apply_gray(&self, mut image: PixelsMut<'_>, scratch: &mut OperationScratch) -> Result<(), Error> {
        let size = (image.width() as usize, image.height() as usize);
        let format = image.format();
        let data = &mut *image.data;
        match self {
            Operation::Brightness { factor } => levels::adjust_brightness(data, *factor),
            Operation::Contrast { factor } => gray::adjust_contrast_of_gray(data, *factor),
            // A grey image has neither.
            Operation::Saturation { .. } | Operation::Hue { .. } | Operation::Grayscale => {}
            Operation::Sharpness { factor } => {
                sharpness::adjust_sharpness::<1>(data, size, *factor, &mut scratch.copy);
            }
            Operation::Invert => levels::invert(data),
            Operation::Autocontrast => histogram::autocontrast_gray(data),
            Operation::Equalize => histogram::equalize_gray(data),
            Operation::Posterize { bits } => levels::posterize(data, *bits),
            Operation::Solarize { threshold } => levels::solarize(data, *threshold),
            Operation::GaussianBlur { kernel, sigma } => {
                blur::gaussian_blur::<1>(data, size, *kernel, *sigma, &mut scratch.copy, &mut scratch.blur);
            }
            Operation::Affine { interpolation: Interpolation::Bilinear, fill, .. }
            | Operation::Perspective { interpolation: Interpolation::Bilinear, fill, .. } => {
                let Some(warp) = self.warp(size) else { return Ok(()) };
                copy_to(&mut scratch.copy, data);
                warp.bilinear_gray(&scratch.copy, format.pixel(*fill), data);
            }
            Operation::AugMix { image: weight, weights, chains } => {
                return mix::augmix(&mut image, *weight, weights, chains, scratch);
            }
            _ => return self.move_pixels::<1>(image, scratch),
        }
        Ok(())
    }

    /// Applies an operation that moves or overwrites pixels of `B` bytes without computing with them.
    fn move_pixels<const B: usize>(&self, image: PixelsMut<'_>, scratch: &mut OperationScratch) -> Result<(), Error> {
        let size = (image.width() as usize, image.height() as usize);
        let format = image.format();
        let data = image.data;
        match self {
            Operation::HorizontalFlip => flip::flip_horizontally::<B>(data, size.0),
            Operation::VerticalFlip => flip::flip_vertically(data, size.0 * B),
            Operation::Affine { interpolation: Interpolation::Nearest, fill, .. }
            | Operation::Perspective { interpolation: Interpolation::Nearest, fill, .. } => {
                let Some(warp) = self.warp(size) else { return Ok(()) };
                copy_to(&mut scratch.copy, data);
                warp.nearest(&scratch.copy, format.pixel::<B>(*fill), data);
            }
            Operation::Erase { rect, value } => erase::erase(data, size, *rect, format.pixel::<B>(*value)),
            _ => return Err(Error::OperationFormat { operation: self.name(), format: format.name() }),
        }
        Ok(())
    }

    /// Moves the labels of a map of `size` (width, height) as [`apply`](Self::apply) moves the pixels of its image, by nearest
    /// neighbour. Operations that move no pixels change nothing.
    ///
    /// `labels` is `[H, W]` of type `dtype`. Labels outside the map become `fill`, of which narrower labels use the lower bytes.
    ///
    /// # Errors
    /// Those of [`check`](Self::check); [`Error::LabelBytes`] if the length of `labels` is wrong. The labels are then unchanged.
    pub fn apply_to_labels(
        &self,
        dtype: LabelDtype,
        size: (u32, u32),
        labels: &mut [u8],
        fill: i32,
        scratch: &mut OperationScratch,
    ) -> Result<(), Error> {
        self.check(size)?;
        let (width, height) = size;
        let pixels = u64::from(width) * u64::from(height);
        let (expected, found) = (pixels.saturating_mul(dtype.bytes() as u64), labels.len() as u64);
        if expected != found {
            return Err(Error::LabelBytes { width, height, expected, found });
        }
        if labels.is_empty() {
            return Ok(());
        }
        let (width, height) = (width as usize, height as usize);
        match (self, dtype) {
            (Operation::HorizontalFlip, LabelDtype::U8) => flip::flip_horizontally::<1>(labels, width),
            (Operation::HorizontalFlip, LabelDtype::U16) => flip::flip_horizontally::<2>(labels, width),
            (Operation::HorizontalFlip, LabelDtype::I32) => flip::flip_horizontally::<4>(labels, width),
            (Operation::VerticalFlip, _) => flip::flip_vertically(labels, width * dtype.bytes()),
            _ => {
                let Some(warp) = self.warp((width, height)) else { return Ok(()) };
                copy_to(&mut scratch.copy, labels);
                match dtype {
                    LabelDtype::U8 => warp.nearest(&scratch.copy, [fill as u8], labels),
                    LabelDtype::U16 => warp.nearest(&scratch.copy, (fill as u16).to_le_bytes(), labels),
                    LabelDtype::I32 => warp.nearest(&scratch.copy, fill.to_le_bytes(), labels),
                }
            }
        }
        Ok(())
    }

    /// Returns where a point of an image of `size` (width, height) is in the result. Points are x and y in pixels from the upper
    /// left corner: the left edge of the image is 0, the right edge is its width.
    ///
    /// If the matrix of an affine or perspective map has no inverse, the coordinates are infinite or NaN.
    pub fn map_point(&self, size: (u32, u32), [x, y]: [f64; 2]) -> [f64; 2] {
        match self {
            Operation::HorizontalFlip => [f64::from(size.0) - x, y],
            Operation::VerticalFlip => [x, f64::from(size.1) - y],
            Operation::Affine { matrix, .. } => point::invert_affine(matrix, size, [x, y]),
            Operation::Perspective { coefficients, .. } => point::invert_perspective(coefficients, [x, y]),
            _ => [x, y],
        }
    }

    /// Returns an upper bound on the bytes of scratch that [`apply`](Self::apply) and
    /// [`apply_to_labels`](Self::apply_to_labels) need for an image of `size` (width, height).
    pub fn scratch_bytes(&self, size: (u32, u32)) -> u64 {
        let samples = rgb_len(size.0, size.1);
        match self {
            Operation::Affine { .. } | Operation::Perspective { .. } => samples,
            Operation::Sharpness { .. } => 2 * rgb_len(size.0, 1),
            Operation::GaussianBlur { kernel, .. } => samples.saturating_add(BlurScratch::bytes(size.0, *kernel)),
            Operation::AugMix { chains, .. } => {
                let largest = chains.iter().flatten().map(|operation| match operation {
                    Operation::AugMix { .. } => 0,
                    operation => operation.scratch_bytes(size),
                });
                samples.saturating_mul(MixScratch::BYTES).saturating_add(largest.max().unwrap_or(0))
            }
            _ => 0,
        }
    }

    /// Returns the map of an operation that has one.
    fn warp(&self, size: (usize, usize)) -> Option<Warp> {
        match self {
            Operation::Affine { matrix, .. } => Some(Warp::affine(matrix, size)),
            Operation::Perspective { coefficients, .. } => Some(Warp::perspective(coefficients, size)),
            _ => None,
        }
    }
}
