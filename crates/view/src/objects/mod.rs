//! Counts of the objects in the images of a split: boxes per image, their sizes, classes, classes that appear together, visibility of
//! keypoints, and boxes that cannot be right. Every record is read once, with its CRC; none is kept.

mod boxes;
mod classes;
mod json;
mod per_image;
mod problems;
mod record;
mod tables;

use crate::split_view::SplitView;
use boxes::BoxCounts;
use classes::{ClassCounts, ClassNames};
use per_image::PerImage;
use problems::Problems;
use rayon::prelude::*;
use record::Objects;
use shardtool_format::manifest::{DType, Manifest};
use shardtool_load::{BOXES, CLASS_NAMES, CLASSES, KEYPOINTS};
use shardtool_read::{Error, Split};
use std::sync::{Mutex, PoisonError};
pub(crate) use tables::Table;

/// What a report says of the objects of a split.
#[derive(Debug)]
pub(crate) enum Examined {
    /// The dataset has no objects, and no column of labels was named.
    Nothing,
    /// The split is in a store, where each record would take a request. Says whether the dataset has objects.
    InStore {
        has_objects: bool,
    },
    Counted(Box<Counts>),
}

/// Counts of the records of a split. Memory is bounded by the numbers of classes and pairs that are counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Whether the dataset has objects.
    pub(crate) has_objects: bool,
    has_boxes: bool,
    has_keypoints: bool,
    /// Records that were read, and those that could not be.
    pub(crate) records: u64,
    pub(crate) unreadable: u64,
    per_image: PerImage,
    boxes: BoxCounts,
    classes: ClassCounts,
    /// Names of classes by the label that they are counted as, in byte order; empty if objects have labels.
    names: ClassNames,
    /// Keypoints of the visibilities 0, 1 and 2, and of another one.
    keypoints: [u64; 4],
    problems: Problems,
    /// Labels of the column that was named, with its name.
    lists: Option<(String, ClassCounts)>,
}

/// Returns whether a dataset has a feature of a type.
fn has(manifest: &Manifest, feature: &str, dtype: DType) -> bool {
    manifest.features.iter().any(|f| f.name == feature && f.dtype == dtype)
}

/// Counts the objects of a split and, if a column is named, the labels in it.
pub(crate) fn examine(view: &SplitView, labels: Option<&str>) -> Examined {
    let manifest = view.split.manifest();
    let has_boxes = has(manifest, BOXES, DType::Float);
    let has_keypoints = has(manifest, KEYPOINTS, DType::Float);
    let has_objects = has_boxes || has(manifest, CLASSES, DType::Int64) || has(manifest, CLASS_NAMES, DType::Bytes);
    if !has_objects && labels.is_none() {
        return Examined::Nothing;
    }
    if view.split.is_in_store() {
        return Examined::InStore { has_objects };
    }
    let lists = labels.map(|name| (name.to_owned(), ClassCounts::default()));
    let counts = Mutex::new(Counts { has_objects, has_boxes, has_keypoints, lists, ..Counts::default() });
    (0..view.split.len()).into_par_iter().for_each(|id| {
        let objects = read(&view.split, id, labels);
        counts.lock().unwrap_or_else(PoisonError::into_inner).add(id, objects);
    });
    let mut counts = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ranks = counts.names.sort();
    counts.classes.renumber(&ranks);
    Examined::Counted(Box::new(counts))
}

/// Reads the objects of a record.
fn read(split: &Split, id: u64, labels: Option<&str>) -> Result<Objects, Error> {
    let record = split.get(id)?;
    let objects = Objects::of(&record, labels)?;
    record.check_readable()?;
    Ok(objects)
}

impl Counts {
    /// Returns the name of a class of objects; `named` is that of a label.
    fn class_name(&self, label: i64, named: impl Fn(i64) -> String) -> String {
        self.names.name(label).map_or_else(|| named(label), str::to_owned)
    }

    fn add(&mut self, id: u64, objects: Result<Objects, Error>) {
        let Ok(objects) = objects else {
            self.unreadable += 1;
            return;
        };
        self.records += 1;
        self.per_image.add(objects.number());
        for measured in &objects.boxes {
            self.boxes.add(measured);
            if let Some(problem) = measured.problem {
                self.problems.add(problem, id, &objects.key);
            }
        }
        if objects.misfit {
            self.problems.add(problems::Problem::Misfit, id, &objects.key);
        }
        match objects.class_names.is_empty() {
            true => self.classes.add(&objects.labels),
            false => {
                let labels: Vec<_> = objects.class_names.into_iter().map(|name| self.names.label(name)).collect();
                self.classes.add(&labels);
            }
        }
        self.keypoints.iter_mut().zip(objects.keypoints).for_each(|(a, b)| *a += b);
        if let Some((_, classes)) = &mut self.lists {
            classes.add(&objects.listed);
        }
    }
}
