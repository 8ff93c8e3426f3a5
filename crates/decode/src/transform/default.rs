//! Default values of the parameters of steps: torchvision's, and of `Letterbox` those of Ultralytics.

use crate::operation::Interpolation;

macro_rules! defaults {
    ($($name:ident: $type:ty = $value:expr;)*) => {
        $(pub(crate) fn $name() -> $type { $value })*
    };
}

defaults! {
    crop_scale: [f64; 2] = [0.08, 1.0];
    crop_ratio: [f64; 2] = [3.0 / 4.0, 4.0 / 3.0];
    half: f64 = 0.5;
    one: f64 = 1.0;
    two: f64 = 2.0;
    tenth: f64 = 0.1;
    yes: bool = true;
    zoom_range: [f64; 2] = [1.0, 4.0];
    iou_min_scale: f64 = 0.3;
    iou_options: Vec<f64> = vec![0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0];
    iou_trials: u32 = 40;
    jitter_range: [f64; 2] = [0.1, 2.0];
    letterbox_fill: [u8; 3] = [114; 3];
    nearest: Interpolation = Interpolation::Nearest;
    bilinear: Interpolation = Interpolation::Bilinear;
    distort_brightness: [f64; 2] = [0.875, 1.125];
    distort_contrast: [f64; 2] = [0.5, 1.5];
    distort_hue: [f64; 2] = [-0.05, 0.05];
    sigma: [f64; 2] = [0.1, 2.0];
    erase_scale: [f64; 2] = [0.02, 0.33];
    erase_ratio: [f64; 2] = [0.3, 3.3];
    two_ops: u32 = 2;
    magnitude: u32 = 9;
    bins: u32 = 31;
    severity: u32 = 3;
}
