//! Where operations move points: for boxes and keypoints. In f64 and in continuous coordinates, where the left edge of the image
//! is 0 and the right edge is its width.

/// Inverts `matrix`, which maps positions in the result to positions in the source, both in pixels from the centre.
pub(super) fn invert_affine(matrix: &[f64; 6], size: (u32, u32), point: [f64; 2]) -> [f64; 2] {
    let center = [f64::from(size.0) * 0.5, f64::from(size.1) * 0.5];
    let [a, b, c, d, e, f] = *matrix;
    let (x, y) = (point[0] - center[0] - c, point[1] - center[1] - f);
    let determinant = a * e - b * d;
    [(e * x - b * y) / determinant + center[0], (a * y - d * x) / determinant + center[1]]
}

/// Inverts the homography of `coefficients`, with the adjugate of its matrix.
pub(super) fn invert_perspective(coefficients: &[f64; 8], [x, y]: [f64; 2]) -> [f64; 2] {
    let [a, b, c, d, e, f, g, h] = *coefficients;
    let row = |p: f64, q: f64, r: f64| p * x + q * y + r;
    let divisor = row(d * h - e * g, b * g - a * h, a * e - b * d);
    [row(e - f * h, c * h - b, b * f - c * e) / divisor, row(f * g - d, a - c * g, c * d - a * f) / divisor]
}
