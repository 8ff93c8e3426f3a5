//! What objects cover, as shapes: the polygons as they are stored, run lengths as one rectangle for each run.

use shardtool_decode::{Plan, Segmentation};
use std::fmt::Write;

/// Points of all shapes of an image that are drawn, at most.
const MOST: usize = 20_000;
/// Positions are drawn up to this many pixels from the corner of the image.
const FAR: f64 = 1e5;

/// Closed lines around what an object covers, and the number of its class's colour.
pub(super) struct Covered {
    lines: Vec<Vec<[f64; 2]>>,
    colour: i64,
}

impl Covered {
    /// Reads the texts of a record's objects, with the colours of their classes. What cannot be drawn is left out, and so are
    /// those that would make very many points.
    pub(super) fn of<'t>(texts: impl Iterator<Item = (&'t [u8], i64)>, size: (u32, u32)) -> Vec<Self> {
        let mut points = 0;
        let mut covered = vec![];
        for (text, colour) in texts {
            let Ok(segmentation) = serde_json::from_slice::<Segmentation>(text) else { continue };
            if segmentation.check(size).is_err() {
                continue;
            }
            let lines = match segmentation {
                Segmentation::Polygons(polygons) => {
                    polygons.iter().map(|numbers| numbers.as_chunks::<2>().0.to_vec()).collect()
                }
                Segmentation::Runs { lengths, .. } => runs(&lengths, u64::from(size.1)),
                _ => continue,
            };
            let more = lines.iter().map(Vec::len).sum::<usize>();
            if points + more <= MOST {
                points += more;
                covered.push(Covered { lines, colour });
            }
        }
        covered
    }

    /// Returns where a plan puts it.
    pub(super) fn moved(&self, plan: &Plan) -> Self {
        let line = |line: &Vec<[f64; 2]>| line.iter().map(|point| plan.map_point(*point)).collect();
        Covered { lines: self.lines.iter().map(line).collect(), colour: self.colour }
    }

    /// Returns the class of its colour in `view.css`.
    pub(super) fn class(&self) -> String {
        format!("class-{}", self.colour)
    }

    /// Returns the data of an SVG path.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        for line in &self.lines {
            for (number, [x, y]) in line.iter().enumerate() {
                let [x, y] = [x, y].map(|at| if at.is_finite() { at.clamp(-FAR, FAR) } else { 0.0 });
                let _ = write!(path, "{}{x:.1} {y:.1}", if number == 0 { 'M' } else { 'L' });
            }
            path.push('Z');
        }
        path
    }
}

/// Returns a rectangle for each part of a run of covered pixels that lies in one column.
fn runs(lengths: &[u32], height: u64) -> Vec<Vec<[f64; 2]>> {
    let (mut rectangles, mut at) = (vec![], 0);
    for pair in lengths.chunks(2) {
        let mut start = at + u64::from(pair[0]);
        let end = start + pair.get(1).map_or(0, |covered| u64::from(*covered));
        at = end;
        while start < end && rectangles.len() <= MOST {
            let stop = end.min((start / height + 1) * height);
            let (x, top) = ((start / height) as f64, (start % height) as f64);
            let bottom = top + (stop - start) as f64;
            rectangles.push(vec![[x, top], [x + 1.0, top], [x + 1.0, bottom], [x, bottom]]);
            start = stop;
        }
    }
    rectangles
}
