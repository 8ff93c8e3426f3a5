//! Boxes that cannot be right, and the records that have them.

use std::collections::BTreeMap;

/// Records that are listed of each kind.
const LISTED: usize = 5;

/// What is wrong with a box, or with the lists of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Problem {
    /// The box leaves the image, and some of it is inside.
    PartlyOutside,
    /// Nothing of the box is inside the image.
    Outside,
    /// The right or bottom edge is not behind the left or top one.
    NoArea,
    /// A coordinate is infinite, or not a number.
    NotFinite,
    /// The record has not four numbers and one label for each object.
    Misfit,
}

impl Problem {
    pub(super) const ALL: [Problem; 5] =
        [Problem::PartlyOutside, Problem::Outside, Problem::NoArea, Problem::NotFinite, Problem::Misfit];

    /// Returns the name in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Problem::PartlyOutside => "partly_outside",
            Problem::Outside => "outside",
            Problem::NoArea => "no_area",
            Problem::NotFinite => "not_finite",
            Problem::Misfit => "misfit",
        }
    }

    /// Describes it in a few words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Problem::PartlyOutside => "boxes partly outside the image",
            Problem::Outside => "boxes outside the image",
            Problem::NoArea => "boxes without an area",
            Problem::NotFinite => "boxes with coordinates that are not finite",
            Problem::Misfit => "records without 4 numbers and 1 label per box",
        }
    }
}

/// How often each problem occurs, and where first.
#[derive(Debug, Default)]
pub(super) struct Problems(BTreeMap<Problem, Places>);

/// The boxes that have a problem, and the first of their records: their numbers and keys.
#[derive(Debug, Default)]
struct Places {
    number: u64,
    first: BTreeMap<u64, String>,
}

impl Problems {
    /// Adds a box of the record `id`, or that record.
    pub(super) fn add(&mut self, problem: Problem, id: u64, key: &str) {
        let places = self.0.entry(problem).or_default();
        places.number += 1;
        if places.first.len() < LISTED || places.first.last_key_value().is_some_and(|(last, _)| id < *last) {
            places.first.insert(id, key.to_owned());
        }
        if places.first.len() > LISTED {
            places.first.pop_last();
        }
    }

    /// Returns the number of boxes, or records, with a problem, and the keys of the first records that have one.
    pub(super) fn of(&self, problem: Problem) -> (u64, Vec<&str>) {
        self.0
            .get(&problem)
            .map_or((0, vec![]), |places| (places.number, places.first.values().map(String::as_str).collect()))
    }
}
