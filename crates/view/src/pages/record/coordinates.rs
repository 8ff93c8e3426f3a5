//! Coordinates that are stored in a record, in pixels.

use shardtool_format::example::Feature;

/// Objects that are drawn, at most.
pub(super) const MOST: usize = 500;

/// Returns the numbers of a feature; none of another type.
pub(super) fn floats(feature: Option<Feature<'_>>) -> Vec<f64> {
    match feature {
        Some(Feature::Float(list)) => list.iter().take(4 * MOST).map(f64::from).collect(),
        _ => vec![],
    }
}

/// Returns coordinates in pixels. Stored ones are fractions of the width and height, unless one is larger than 1.5.
pub(super) fn scaled(values: [f64; 4], (width, height): (u32, u32)) -> [f64; 4] {
    let pixels = values.iter().any(|value| value.abs() > 1.5);
    let (x, y) = if pixels { (1.0, 1.0) } else { (width.into(), height.into()) };
    let bound = |value: f64, side: u32| if value.is_finite() { value.clamp(0.0, side.into()) } else { 0.0 };
    let [left, top, right, bottom] = values;
    [bound(left * x, width), bound(top * y, height), bound(right * x, width), bound(bottom * y, height)]
}
