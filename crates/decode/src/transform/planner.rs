//! Draws the steps of a pipeline for one image and composes them into a plan.

use super::builder::GeometryBuilder;
use super::draw::{chance, colour, crop, policy, uniform, warp};
use super::letterbox;
use super::orientation::Orientation;
use super::plan::{Plan, Stage};
use super::random::{Draws, Random};
use super::rect::Rect;
use super::step::{Corner, PaddingMode, Transform};
use crate::error::Error;
use crate::operation::Operation;
use crate::resize::{Filter, scale_to_side};

/// The longest side of an image or of its canvas in pixels.
const MAX_SIDE: u32 = 1 << 31;

/// Composes steps: into the geometry while they compose, then into stages.
pub(crate) struct Planner<'b> {
    stored: (u32, u32),
    orientation: Orientation,
    builder: GeometryBuilder,
    stages: Vec<Stage>,
    /// Width and height after the stages, if there are any.
    size: (u32, u32),
    /// The boxes of the sample: left, top, right, bottom in pixels of the stored image.
    boxes: &'b [[f64; 4]],
    /// Whether each box is kept; empty if all are.
    kept: Vec<bool>,
}

impl<'b> Planner<'b> {
    /// Starts with the whole image of the stored size `stored` (width, height).
    pub(crate) fn new(stored: (u32, u32), orientation: Orientation, boxes: &'b [[f64; 4]]) -> Result<Self, Error> {
        check_side(stored)?;
        let builder = GeometryBuilder::new(orientation.size(stored));
        Ok(Planner { stored, orientation, builder, stages: vec![], size: (0, 0), boxes, kept: vec![] })
    }

    /// Draws and adds the steps of a pipeline.
    pub(crate) fn steps(&mut self, steps: &[Transform], draws: &mut dyn Draws) -> Result<(), Error> {
        for (number, step) in steps.iter().enumerate() {
            let shares = matches!(step, Transform::RandomResizedCrop { .. } | Transform::HorizontalFlip { .. });
            self.step(step, if shares { draws.shared(number) } else { draws.step(number) })?;
        }
        Ok(())
    }

    /// Returns the plan of the steps so far.
    pub(crate) fn finish(self) -> Plan {
        let size = self.size();
        Plan::new(self.builder.finish(self.stored, self.orientation), self.stages, size, self.kept)
    }

    fn step(&mut self, step: &Transform, random: &mut dyn Random) -> Result<(), Error> {
        let size = self.size();
        match *step {
            Transform::RandomResizedCrop { size: [height, width], scale, ratio, interpolation } => {
                self.crop(crop::random_resized_crop(size, scale, ratio, random));
                self.resize((width, height), interpolation);
            }
            Transform::Resize { shorter, longest, interpolation } => {
                self.resize(scale_to_side(size, shorter, longest), interpolation);
            }
            Transform::ResizeTo { size: [height, width], interpolation } => self.resize((width, height), interpolation),
            Transform::CenterCrop { size: [height, width] } => self.crop(centre(size, (width, height))?),
            Transform::CornerCrop { size: [height, width], corner } => {
                self.crop(corner_of(size, (width, height), corner)?);
            }
            Transform::RandomCrop { size: [height, width], padding, pad_if_needed, fill, padding_mode } => {
                let padding = if pad_if_needed { pad_to(size, padding, (width, height)) } else { padding };
                self.pad(padding, fill, padding_mode)?;
                spare(self.size(), (width, height))?;
                self.crop(crop::place(self.size(), (width, height), random));
            }
            Transform::Pad { padding, fill, padding_mode } => self.pad(padding, fill, padding_mode)?,
            Transform::HorizontalFlip { p } => {
                if chance(p, random) {
                    self.flip();
                }
            }
            Transform::VerticalFlip { p } => {
                if chance(p, random) {
                    self.flip_vertical();
                }
            }
            Transform::RandomZoomOut { fill, side_range, p } => {
                if chance(p, random) {
                    self.pad(crop::zoom_out(size, side_range, random), fill, PaddingMode::Constant)?;
                }
            }
            Transform::RandomIouCrop {
                min_scale,
                max_scale,
                min_aspect_ratio,
                max_aspect_ratio,
                ref sampler_options,
                trials,
            } => self.iou_crop(
                &crop::IouCrop {
                    scale: [min_scale, max_scale],
                    ratio: [min_aspect_ratio, max_aspect_ratio],
                    options: sampler_options,
                    trials,
                },
                random,
            ),
            Transform::ScaleJitter { target_size: [height, width], scale_range, interpolation } => {
                self.resize(scaled(size, (width, height), uniform(scale_range, random)), interpolation);
            }
            Transform::RandomShortestSize { ref min_size, max_size, interpolation } => {
                let shorter = min_size[random.below(min_size.len() as u64) as usize];
                self.resize(scale_to_side(size, shorter, max_size), interpolation);
            }
            Transform::FixedSizeCrop { size: [height, width], fill } => {
                let part = (size.0.min(width), size.1.min(height));
                self.crop(crop::place(size, part, random));
                self.pad([0, 0, width - part.0, height - part.1], fill, PaddingMode::Constant)?;
            }
            Transform::Letterbox { size: [height, width], fill, align, scaleup, interpolation } => {
                let fitted = letterbox::fitted(size, (width, height), scaleup);
                if fitted != size {
                    self.resize(fitted, interpolation);
                }
                self.pad(letterbox::padding(fitted, (width, height), align), fill, PaddingMode::Constant)?;
            }
            Transform::RandomApply { ref transforms, p } => {
                if chance(p, random) {
                    transforms.iter().try_for_each(|step| self.step(step, random))?;
                }
            }
            _ => self.pixel_step(step, random),
        }
        Ok(())
    }

    /// Draws a step that changes pixels and keeps the size.
    fn pixel_step(&mut self, step: &Transform, random: &mut dyn Random) {
        let size = self.size();
        let sampling = |interpolation, fill| policy::Sampling { interpolation, fill };
        match *step {
            Transform::RandomRotation { degrees, interpolation, fill } => {
                let matrix = warp::Affine::rotation(uniform(degrees, random)).inverse();
                self.operation(Operation::Affine { matrix, interpolation, fill });
            }
            Transform::RandomAffine { degrees, translate, scale, shear, interpolation, fill } => {
                let matrix = warp::Affine::draw(size, degrees, translate, scale, shear, random).inverse();
                self.operation(Operation::Affine { matrix, interpolation, fill });
            }
            Transform::RandomPerspective { distortion_scale, p, interpolation, fill } => {
                if chance(p, random) {
                    let coefficients = warp::perspective(size, distortion_scale, random);
                    self.operation(Operation::Perspective { coefficients, interpolation, fill });
                }
            }
            Transform::ColorJitter { brightness, contrast, saturation, hue } => {
                self.operations(colour::color_jitter([brightness, contrast, saturation, hue], random));
            }
            Transform::RandomPhotometricDistort { brightness, contrast, saturation, hue, p } => {
                self.operations(colour::photometric_distort([brightness, contrast, saturation, hue], p, random));
            }
            Transform::GaussianBlur { kernel_size: [height, width], sigma } => {
                // One standard deviation for both directions, as torchvision.
                let sigma = [uniform(sigma, random); 2];
                self.operation(Operation::GaussianBlur { kernel: [width, height], sigma });
            }
            Transform::RandomGrayscale { p } => self.with_chance(p, Operation::Grayscale, random),
            Transform::RandomSolarize { threshold, p } => {
                self.with_chance(p, Operation::Solarize { threshold }, random)
            }
            Transform::RandomPosterize { bits, p } => self.with_chance(p, Operation::Posterize { bits }, random),
            Transform::RandomEqualize { p } => self.with_chance(p, Operation::Equalize, random),
            Transform::RandomAutocontrast { p } => self.with_chance(p, Operation::Autocontrast, random),
            Transform::RandomInvert { p } => self.with_chance(p, Operation::Invert, random),
            Transform::RandomAdjustSharpness { sharpness_factor: factor, p } => {
                self.with_chance(p, Operation::Sharpness { factor }, random);
            }
            Transform::RandomErasing { p, scale, ratio, value } => {
                if chance(p, random) {
                    self.operations(colour::erasing(size, scale, ratio, value, random));
                }
            }
            Transform::RandAugment { num_ops, magnitude, num_magnitude_bins: bins, interpolation, fill } => {
                let sampling = sampling(interpolation, fill);
                self.operations(policy::rand_augment(size, num_ops, magnitude, bins, sampling, random));
            }
            Transform::TrivialAugmentWide { num_magnitude_bins: bins, interpolation, fill } => {
                self.operations(policy::trivial_augment(size, bins, sampling(interpolation, fill), random));
            }
            Transform::AutoAugment { policy, interpolation, fill } => {
                self.operations(policy::auto_augment(size, policy, sampling(interpolation, fill), random));
            }
            Transform::AugMix { severity, mixture_width, chain_depth, alpha, all_ops, interpolation, fill } => {
                let parameters =
                    policy::AugMix { severity, width: mixture_width, depth: chain_depth, alpha, all: all_ops };
                self.operation(policy::aug_mix(size, parameters, sampling(interpolation, fill), random));
            }
            _ => unreachable!("`step` handles the steps that change the size"),
        }
    }

    /// Returns the width and height after the steps so far.
    fn size(&self) -> (u32, u32) {
        if self.stages.is_empty() { self.builder.size() } else { self.size }
    }

    /// Adds a stage that leaves an image of this size.
    fn push(&mut self, stage: Stage, size: (u32, u32)) {
        self.stages.push(stage);
        self.size = size;
    }

    fn operation(&mut self, operation: Operation) {
        self.push(Stage::Operation(operation), self.size());
    }

    fn operations(&mut self, operations: impl IntoIterator<Item = Operation>) {
        operations.into_iter().for_each(|operation| self.operation(operation));
    }

    fn with_chance(&mut self, p: f64, operation: Operation, random: &mut dyn Random) {
        if chance(p, random) {
            self.operation(operation);
        }
    }

    fn crop(&mut self, rect: Rect) {
        let (width, height) = self.size();
        if (rect.width, rect.height) == (width, height) {
            return;
        }
        if self.stages.is_empty() {
            self.builder.crop(rect);
        } else {
            self.push(Stage::Crop(rect), (rect.width, rect.height));
        }
    }

    fn resize(&mut self, size: (u32, u32), filter: Filter) {
        if !self.stages.is_empty() || !self.builder.resize(size, filter) {
            self.push(Stage::Resize { width: size.0, height: size.1, filter }, size);
        }
    }

    fn pad(&mut self, padding: [u32; 4], fill: [u8; 3], mode: PaddingMode) -> Result<(), Error> {
        if padding == [0; 4] {
            return Ok(());
        }
        let (width, height) = self.size();
        let [left, top, right, bottom] = padding;
        let size = (padded(width, left, right), padded(height, top, bottom));
        check_side(size)?;
        let composes = self.stages.is_empty() && mode == PaddingMode::Constant && self.builder.pad(padding, fill);
        if !composes {
            if mode == PaddingMode::Reflect && (left.max(right) >= width || top.max(bottom) >= height) {
                return Err(Error::ReflectPadding { padding, image: (width, height) });
            }
            self.push(Stage::Pad { padding, fill, mode }, size);
        }
        Ok(())
    }

    fn flip(&mut self) {
        match self.stages.is_empty() {
            true => self.builder.flip(),
            false => self.operation(Operation::HorizontalFlip),
        }
    }

    fn flip_vertical(&mut self) {
        match self.stages.is_empty() {
            true => self.builder.flip_vertical(),
            false => self.operation(Operation::VerticalFlip),
        }
    }

    fn iou_crop(&mut self, parameters: &crop::IouCrop<'_>, random: &mut dyn Random) {
        let so_far = Plan::new(
            self.builder.finish(self.stored, self.orientation),
            self.stages.clone(),
            self.size(),
            std::mem::take(&mut self.kept),
        );
        // Boxes that earlier steps dropped neither decide nor come back.
        let boxes: Vec<_> = self.boxes.iter().enumerate().map(|(n, b)| so_far.map_box(n, *b)).collect();
        let present: Vec<_> = boxes.iter().flatten().copied().collect();
        self.kept = boxes.iter().map(Option::is_some).collect();
        let Some(rect) = crop::iou_crop(self.size(), &present, parameters, random) else { return };
        let area = rect.area();
        let corners = [area.left, area.top, area.left + area.width, area.top + area.height];
        for (kept, b) in self.kept.iter_mut().zip(&boxes) {
            *kept = b.is_some_and(|b| crop::has_centre_of(corners, &b));
        }
        self.crop(rect);
    }
}

/// Returns by how many columns and rows an image is larger than a crop.
fn spare(image: (u32, u32), crop: (u32, u32)) -> Result<(u32, u32), Error> {
    let spare = image.0.checked_sub(crop.0).zip(image.1.checked_sub(crop.1));
    spare.ok_or(Error::CropTooLarge { crop, image })
}

/// Returns the crop in the centre, as torchvision's `center_crop`.
fn centre(image: (u32, u32), crop: (u32, u32)) -> Result<Rect, Error> {
    let (x, y) = spare(image, crop)?;
    // Half of the difference, rounded half to even as Python's `round` does.
    let half = |n: u32| (f64::from(n) / 2.0).round_ties_even() as u32;
    Ok(Rect { left: half(x), top: half(y), width: crop.0, height: crop.1 })
}

/// Returns the crop in a corner.
fn corner_of(image: (u32, u32), crop: (u32, u32), corner: Corner) -> Result<Rect, Error> {
    let (x, y) = spare(image, crop)?;
    let (left, top) = match corner {
        Corner::TopLeft => (0, 0),
        Corner::TopRight => (x, 0),
        Corner::BottomLeft => (0, y),
        Corner::BottomRight => (x, y),
    };
    Ok(Rect { left, top, width: crop.0, height: crop.1 })
}

/// Returns the size of an image that is scaled to fit into `target`, then by `factor`.
fn scaled(image: (u32, u32), target: (u32, u32), factor: f64) -> (u32, u32) {
    let fit = (f64::from(target.0) / f64::from(image.0)).min(f64::from(target.1) / f64::from(image.1));
    let factor = fit * factor;
    let side = |n: u32| ((f64::from(n) * factor) as u32).clamp(1, 65_535);
    (side(image.0), side(image.1))
}

/// Returns `padding`, enlarged on both sides by the pixels that an image still lacks to `wanted` (width, height), as torchvision's
/// `pad_if_needed`.
fn pad_to(image: (u32, u32), [left, top, right, bottom]: [u32; 4], wanted: (u32, u32)) -> [u32; 4] {
    let x = wanted.0.saturating_sub(padded(image.0, left, right));
    let y = wanted.1.saturating_sub(padded(image.1, top, bottom));
    [left + x, top + y, right + x, bottom + y]
}

fn padded(side: u32, before: u32, after: u32) -> u32 {
    side.saturating_add(before).saturating_add(after)
}

fn check_side((width, height): (u32, u32)) -> Result<(), Error> {
    let valid = width.min(height) > 0 && width.max(height) <= MAX_SIDE;
    if valid { Ok(()) } else { Err(Error::Side { width, height }) }
}
