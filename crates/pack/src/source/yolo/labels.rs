//! One file of labels: a line for each object, with coordinates as fractions of the image (Ultralytics, "Object Detection", "Instance
//! Segmentation" and "Pose Estimation Datasets Overview").

use super::super::annotated::problem;
use crate::Reason;
use std::collections::HashSet;

/// Numbers of a line with a box: class, centre, width and height.
const BOX: usize = 5;

/// An object.
#[derive(Debug, PartialEq)]
pub(super) struct Label {
    pub(super) class: i64,
    /// Left, top, right, bottom.
    pub(super) corners: [f64; 4],
    /// Corners of the polygon: x, y of each.
    pub(super) polygon: Option<Vec<f64>>,
    /// x, y and visibility of each keypoint.
    pub(super) points: Vec<f64>,
}

/// Parses a file, which messages name as `file`. `points` is the shape of keypoints, `classes` the number of classes, if known.
/// Returns also the number of lines that occur before.
///
/// # Errors
/// [`Reason::Annotation`].
pub(super) fn parse(
    file: &str,
    text: &str,
    points: Option<(usize, usize)>,
    classes: Option<usize>,
) -> Result<(Vec<Label>, u64), Reason> {
    let (mut labels, mut seen, mut duplicates) = (vec![], HashSet::new(), 0);
    let (mut boxes, mut polygons) = (None, None);
    for (at, line) in text.lines().enumerate() {
        let wrong = |text: String| problem(file, Some(at as u64 + 1), text);
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let number = |word: &&str| {
            word.parse()
                .ok()
                .filter(|number: &f64| number.is_finite())
                .ok_or_else(|| wrong(format!("`{word}` is not a number")))
        };
        let numbers = words.iter().map(number).collect::<Result<Vec<f64>, Reason>>()?;
        if !seen.insert(numbers.iter().map(|number| number.to_bits()).collect::<Vec<_>>()) {
            duplicates += 1;
        }
        let class = numbers[0];
        let id = class as i64;
        if class.fract() != 0.0 || !(0.0..1e15).contains(&class) {
            return Err(wrong(format!("`{}` is not the id of a class, from 0", words[0])));
        }
        if let Some(classes) = classes.filter(|classes| id as usize >= *classes) {
            return Err(wrong(format!("class {id}, but there are {classes} classes, from 0; correct it, or `names`")));
        }
        let rest = &numbers[1..];
        let label = match points {
            Some((count, each)) => {
                let expected = BOX + count * each;
                if numbers.len() != expected {
                    return Err(wrong(format!(
                        "{} numbers, expected {expected}: class, box and {count} keypoints of {each}",
                        numbers.len()
                    )));
                }
                // Without a visibility, points count as labelled, as Ultralytics takes them.
                let points = rest[4..]
                    .chunks_exact(each)
                    .flat_map(|point| [point[0], point[1], point.get(2).copied().unwrap_or(1.0)]);
                let points: Vec<f64> = points.collect();
                check(&rest[..4], &words[1..]).map_err(wrong)?;
                for (n, point) in points.chunks_exact(3).enumerate() {
                    let at = BOX + n * each;
                    check(&point[..2], &words[at..]).map_err(wrong)?;
                    if point[2] < 0.0 {
                        return Err(wrong(format!("`{}` is not a visibility", words[at + 2])));
                    }
                }
                Label { class: id, corners: corners(rest), polygon: None, points }
            }
            None if numbers.len() == BOX => {
                boxes = boxes.or(Some(at + 1));
                check(rest, &words[1..]).map_err(wrong)?;
                Label { class: id, corners: corners(rest), polygon: None, points: vec![] }
            }
            None if rest.len() >= 6 && rest.len() % 2 == 0 => {
                polygons = polygons.or(Some(at + 1));
                check(rest, &words[1..]).map_err(wrong)?;
                Label { class: id, corners: bounds(rest), polygon: Some(rest.to_vec()), points: vec![] }
            }
            None => {
                return Err(wrong(format!(
                    "{} numbers, expected 5 (class and box), or a class and x, y of at least 3 points of a polygon; keypoints need \
                     `kpt_shape` in data.yaml",
                    numbers.len()
                )));
            }
        };
        labels.push(label);
    }
    match (boxes, polygons) {
        (Some(a), Some(b)) => Err(problem(
            file,
            Some(a as u64),
            format!(
                "a box, and line {b} is a polygon: Ultralytics would read the box as a polygon of two points; write all as one kind"
            ),
        )),
        _ => Ok((labels, duplicates)),
    }
}

/// Checks that all numbers are fractions.
fn check(numbers: &[f64], words: &[&str]) -> Result<(), String> {
    match numbers.iter().position(|number| !(0.0..=1.0).contains(number)) {
        Some(at) => Err(format!("`{}` is not a fraction of the image, from 0 to 1", words[at])),
        None => Ok(()),
    }
}

fn corners(numbers: &[f64]) -> [f64; 4] {
    let [x, y, width, height] = [numbers[0], numbers[1], numbers[2], numbers[3]];
    [x - width / 2.0, y - height / 2.0, x + width / 2.0, y + height / 2.0]
}

/// Returns the box around the points of a polygon.
fn bounds(points: &[f64]) -> [f64; 4] {
    let of = |first: usize, pick: fn(f64, f64) -> f64| {
        points.iter().skip(first).step_by(2).copied().fold(points[first], pick)
    };
    [of(0, f64::min), of(1, f64::min), of(0, f64::max), of(1, f64::max)]
}
