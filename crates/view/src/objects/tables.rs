//! Counts of objects as tables, which a page and a card show in their own ways.

use super::boxes::SHARES;
use super::classes::ClassCounts;
use super::problems::Problem;
use super::{Counts, Examined};
use crate::text;

/// Classes and pairs that a table lists.
const LISTED: usize = 20;
/// Letters of a class in a pair, so that the line of a pair has 80, and of a key.
const NAME: usize = 16;
const KEY: usize = 60;

/// Counts with a name each.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) title: &'static str,
    /// What is counted.
    pub(crate) unit: &'static str,
    pub(crate) rows: Vec<Row>,
    /// What the table does not list.
    pub(crate) more: Option<String>,
}

/// A line of a table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) count: u64,
    /// A further count, or a share of the whole.
    pub(crate) further: String,
}

impl Examined {
    /// Returns sentences about a split: what was counted, and what was not.
    pub(crate) fn sentences(&self) -> Vec<String> {
        match self {
            Examined::Nothing => vec![],
            Examined::InStore { .. } => {
                vec!["Objects and labels were not counted: in a store, each record would take a request.".to_owned()]
            }
            Examined::Counted(counts) => counts.sentences(),
        }
    }

    /// Returns the tables of a split, without those that would be empty. `class_name` names the classes of objects.
    pub(crate) fn tables(&self, class_name: impl Fn(i64) -> String) -> Vec<Table> {
        let Examined::Counted(counts) = self else { return vec![] };
        let mut tables = vec![];
        if counts.has_objects {
            tables.push(counts.per_image());
            tables.extend(counts.has_boxes.then(|| counts.sizes()));
            tables.extend(counts.has_boxes.then(|| counts.shares()));
            let class_name = |label| counts.class_name(label, &class_name);
            tables.extend(of_classes(&counts.classes, ["Classes of objects", "objects"], class_name));
            tables.extend(together(&counts.classes, "Classes in the same image", class_name));
            tables.extend(counts.has_keypoints.then(|| counts.visibilities()));
        }
        if let Some((_, classes)) = &counts.lists {
            let name = |label: i64| label.to_string();
            tables.extend(of_classes(classes, ["Labels", "values"], name));
            tables.extend(together(classes, "Labels of the same record", name));
        }
        tables.retain(|table| !table.rows.is_empty() || table.more.is_some());
        tables
    }

    /// Returns each kind of boxes that cannot be right with its number, and the keys of the first records.
    pub(crate) fn problems(&self) -> Vec<(String, Vec<String>)> {
        let Examined::Counted(counts) = self else { return vec![] };
        let kinds = Problem::ALL.iter().map(|problem| (problem, counts.problems.of(*problem)));
        kinds
            .filter(|(_, (number, _))| *number > 0)
            .map(|(problem, (number, keys))| {
                let keys = keys.into_iter().map(|key| text::fit(key, KEY)).collect();
                (format!("{} {}", text::count(number), problem.words()), keys)
            })
            .collect()
    }
}

impl Counts {
    fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![];
        if self.has_objects {
            let (objects, images) = (self.per_image.objects(), self.per_image.images());
            sentences.push(format!(
                "{} in {}; {} without objects.",
                text::plural(objects, "object"),
                text::plural(images, "record"),
                text::count(self.per_image.empty())
            ));
            if let (Some(mean), Some(median)) = (self.per_image.mean(), self.per_image.median()) {
                let most = text::count(self.per_image.most());
                let (mean, median) = (text::number((mean * 100.0).round() / 100.0), text::number(median));
                sentences.push(format!("Objects of an image: median {median}, mean {mean}, at most {most}."));
            }
        }
        if let Some((column, _)) = &self.lists {
            sentences.push(format!("Labels are those of the column {}.", text::printable_text(column)));
        }
        if self.unreadable > 0 {
            let records = text::plural(self.unreadable, "record");
            sentences.push(format!("{records} could not be read and counted: see shardtool verify."));
        }
        sentences
    }

    fn per_image(&self) -> Table {
        let images = self.per_image.images();
        let row = |(first, last, count): (u64, u64, u64)| {
            let name = if first == last {
                text::count(first)
            } else {
                format!("{} to {}", text::count(first), text::count(last))
            };
            share(name, count, images)
        };
        let rows = self.per_image.ranges().into_iter().map(row).collect();
        Table { title: "Objects of an image", unit: "images", rows, more: None }
    }

    fn sizes(&self) -> Table {
        let boxes = &self.boxes;
        let sizes = [
            ("small: below 32² pixels", boxes.small),
            ("medium: 32² to 96² pixels", boxes.medium),
            ("large: 96² pixels and more", boxes.large),
            ("in images of unknown size", boxes.unknown),
        ];
        let whole = sizes.iter().map(|(_, count)| count).sum();
        // Of known sizes, those without a box are listed too.
        let known = boxes.unknown < whole;
        let rows = sizes.iter().enumerate().filter(|(at, (_, count))| *count > 0 || (known && *at < 3));
        let rows = rows.map(|(_, (name, count))| share((*name).to_owned(), *count, whole)).collect();
        Table { title: "Sizes of boxes", unit: "boxes", rows, more: None }
    }

    fn shares(&self) -> Table {
        let percent = |bound: f64| text::number(100.0 * bound);
        let mut names = vec![format!("below {} %", percent(SHARES[0]))];
        names.extend(SHARES.windows(2).map(|pair| format!("{} to {} %", percent(pair[0]), percent(pair[1]))));
        names.extend(SHARES.last().map(|bound| format!("{} % and more", percent(*bound))));
        let whole = self.boxes.shares.iter().sum();
        let rows = names.into_iter().zip(self.boxes.shares).filter(|_| whole > 0);
        let rows = rows.map(|(name, count)| share(name, count, whole)).collect();
        Table { title: "Boxes as shares of the image", unit: "boxes", rows, more: None }
    }

    fn visibilities(&self) -> Table {
        let names = ["0: not labelled", "1: labelled, not visible", "2: visible", "another"];
        let whole = self.keypoints.iter().sum();
        let rows = names
            .into_iter()
            .zip(self.keypoints)
            .filter(|(name, count)| whole > 0 && (*count > 0 || *name != "another"));
        let rows = rows.map(|(name, count)| share(name.to_owned(), count, whole)).collect();
        Table { title: "Visibility of keypoints", unit: "keypoints", rows, more: None }
    }
}

/// Makes a line with the share of a whole.
fn share(name: String, count: u64, whole: u64) -> Row {
    Row { name, count, further: text::percent(count, whole) }
}

/// Makes a table of the most frequent classes.
fn of_classes(counts: &ClassCounts, [title, unit]: [&'static str; 2], name: impl Fn(i64) -> String) -> Option<Table> {
    let Some(labels) = counts.labels() else {
        return Some(Table { title, unit, rows: vec![], more: Some("More labels than are counted.".to_owned()) });
    };
    let mut labels: Vec<_> = labels.iter().collect();
    labels.sort_by_key(|(label, class)| (std::cmp::Reverse(class.objects), **label));
    let more = labels.len().saturating_sub(LISTED) as u64;
    let rows = labels.iter().take(LISTED).map(|(label, class)| Row {
        name: text::fit(&name(**label), 3 * NAME),
        count: class.objects,
        further: format!("in {}", text::plural(class.images, "image")),
    });
    let more = (more > 0).then(|| format!("And {}.", text::plural_irregular(more, "more class", "more classes")));
    Some(Table { title, unit, rows: rows.collect(), more })
}

/// Makes a table of the pairs of classes that most images have.
fn together(counts: &ClassCounts, title: &'static str, name: impl Fn(i64) -> String) -> Option<Table> {
    let unit = "images";
    let Some(pairs) = counts.pairs() else {
        return Some(Table {
            title,
            unit,
            rows: vec![],
            more: Some("More pairs of labels than are counted.".to_owned()),
        });
    };
    let short = |label: i64| text::fit(&name(label), NAME);
    let rows = counts.top_pairs(LISTED).into_iter().map(|([a, b], images)| {
        // The share of the images with the rarer class, in which the other one is too.
        let of = |label| counts.labels().and_then(|labels| labels.get(&label)).map_or(0, |class| class.images);
        let rarer = if of(b) <= of(a) { b } else { a };
        Row {
            name: format!("{} + {}", short(a), short(b)),
            count: images,
            further: format!("{} of {}", text::percent(images, of(rarer)), short(rarer)),
        }
    });
    let more = pairs.saturating_sub(LISTED as u64);
    let more = (more > 0).then(|| format!("And {}.", text::plural(more, "more pair")));
    Some(Table { title, unit, rows: rows.collect(), more })
}
