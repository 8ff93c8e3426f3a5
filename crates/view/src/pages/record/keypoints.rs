//! The keypoints of a record's objects, and the lines that join them.

use super::coordinates::{MOST, floats, scaled};
use crate::picture::Stored;
use maud::{Markup, html};
use shardtool_decode::Plan;
use shardtool_format::example::Example;
use shardtool_format::manifest::Keypoints;
use shardtool_load::{BOXES, KEYPOINTS};

/// Points and lines in pixels.
#[derive(Default)]
pub(super) struct Skeletons {
    points: Vec<Point>,
    lines: Vec<[[f64; 2]; 2]>,
}

struct Point {
    at: [f64; 2],
    name: String,
}

impl Skeletons {
    /// Returns the visible points of a record in pixels of the stored image, with their names and lines if the dataset has them.
    pub(super) fn of(example: &Example<'_>, stored: &Stored<'_>, described: Option<&Keypoints>) -> Self {
        let mut all = Skeletons::default();
        for (name, feature) in example.features().iter().filter(|(name, _)| name.ends_with("keypoints")) {
            let values = floats(Some(*feature));
            let places: Vec<Option<[f64; 2]>> =
                values.as_chunks::<3>().0.iter().map(|p| place(p, stored.size)).collect();
            let boxes = floats(example.get(BOXES)).len() / 4;
            let fits = |described: &&Keypoints| boxes == 0 || places.len() == boxes * described.count();
            let described = described.filter(|_| *name == KEYPOINTS).filter(fits);
            let count = described.map_or(0, Keypoints::count).max(1);
            let name = |at: usize| described.and_then(|described| described.names.get(at % count).cloned());
            let points = places.iter().enumerate().filter_map(|(at, place)| Some((at, (*place)?)));
            all.points
                .extend(points.map(|(at, place)| Point { at: place, name: name(at).unwrap_or_default() }).take(MOST));
            let pairs = described.map_or(&[][..], |described| &described.skeleton);
            for object in places.chunks_exact(count) {
                let joined = pairs.iter().filter_map(|[a, b]| Some([(*object.get(*a)?)?, (*object.get(*b)?)?]));
                all.lines.extend(joined.take(MOST.saturating_sub(all.lines.len())));
            }
        }
        all
    }

    /// Returns where the points lie that `plan` leaves inside of the result. Names are left out, since a mirrored point has another one.
    pub(super) fn moved(&self, plan: &Plan) -> Self {
        let points = self.points.iter().filter_map(|point| plan.shown_point(point.at));
        let lines = self.lines.iter().filter_map(|[a, b]| Some([plan.shown_point(*a)?, plan.shown_point(*b)?]));
        Skeletons { points: points.map(|at| Point { at, name: String::new() }).collect(), lines: lines.collect() }
    }

    /// Returns the number of points.
    pub(super) fn len(&self) -> usize {
        self.points.len()
    }

    /// Renders the shapes; `unit` is half the width of a line.
    pub(super) fn svg(&self, unit: f64) -> Markup {
        html! {
            g.points data-layer="keypoints" {
                @for [[x1, y1], [x2, y2]] in &self.lines {
                    line.bone x1=(format!("{x1:.1}")) y1=(format!("{y1:.1}")) x2=(format!("{x2:.1}")) y2=(format!("{y2:.1}"))
                        stroke-width=(format!("{:.2}", 1.5 * unit)) {}
                }
                @for Point { at: [x, y], name } in &self.points {
                    circle cx=(format!("{x:.1}")) cy=(format!("{y:.1}")) r=(format!("{:.2}", 3.5 * unit)) {
                        @if !name.is_empty() { title { (name) } }
                    }
                }
            }
        }
    }
}

/// Returns the place of a point; `None` if it is not labelled.
fn place([x, y, visibility]: &[f64; 3], size: (u32, u32)) -> Option<[f64; 2]> {
    let [x, y, ..] = scaled([*x, *y, 0.0, 0.0], size);
    (*visibility > 0.0).then_some([x, y])
}
