//! Boxes and points in an image, which get the geometry of its pixels.

use crate::cell::Cell;
use crate::classes::describe;
use crate::columns::{ResolvedColumn, Shape};
use crate::error::{Error, SampleError};
use crate::features::{Features, wrong_layout};
use crate::keypoints::DescribedKeypoints;
use crate::options::{CLASS_NAMES, CLASSES, Classes, Column, Layout, Objects, View};
use crate::splits::Splits;
use shardtool_decode::Plan;
use shardtool_format::manifest::SidesError;
use shardtool_format::{BoxUnit, LARGEST_FRACTION};
use shardtool_read::Split;

/// What a column of a batch holds of the objects in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectRole {
    /// Four numbers for each box: left, top, right, bottom in pixels of the result.
    Boxes,
    /// Three numbers for each point: x, y and visibility.
    Keypoints,
    /// The class of each object.
    Labels,
    /// Height times width bytes for each object: 1 where it is.
    Masks,
}

impl ObjectRole {
    /// Returns the name of the array in a batch, as in torchvision's detection targets.
    pub fn name(self) -> &'static str {
        match self {
            ObjectRole::Boxes => "boxes",
            ObjectRole::Keypoints => "keypoints",
            ObjectRole::Labels => "labels",
            ObjectRole::Masks => "masks",
        }
    }

    /// Returns the shape of those values that belong together, in a batch of images of `size` (width, height); `[]` if each is one of
    /// its own.
    pub(crate) fn item(self, (width, height): (u32, u32)) -> Vec<usize> {
        match self {
            ObjectRole::Boxes => vec![BOX],
            ObjectRole::Keypoints => vec![POINT],
            ObjectRole::Labels => vec![],
            ObjectRole::Masks => vec![height as usize, width as usize],
        }
    }
}

/// Which columns of a batch belong to its objects.
#[derive(Clone, Debug)]
pub(crate) struct ObjectColumns {
    objects: Objects,
    pub(crate) boxes: usize,
    properties: Vec<usize>,
    pub(crate) keypoints: Option<usize>,
    /// Points of each object, if the dataset says it.
    points: Option<usize>,
    /// Why the names of points do not say which change places in a mirrored object.
    unclear: Option<SidesError>,
    pub(crate) masks: Option<usize>,
}

/// Boxes of the result: left, top, right, bottom in pixels; `None` for objects that are dropped.
pub(crate) type MappedBoxes = Vec<Option<[f64; 4]>>;

/// The feature that says which objects are crowds, as COCO's `iscrowd`.
const CROWD: &str = "image/object/iscrowd";
/// Values of one box, and of one keypoint.
pub(crate) const BOX: usize = 4;
pub(crate) const POINT: usize = 3;

impl ObjectColumns {
    /// Adds the columns of `objects` to `columns`. Where the splits have names of classes and no ids, the ids are those of the names.
    ///
    /// # Errors
    /// Those of [`with_labels`].
    pub(crate) fn add(
        objects: &Objects,
        columns: &mut Vec<Column>,
        (splits, classes): (&Splits, &Classes),
    ) -> Result<Self, Error> {
        let objects = with_labels(objects, splits, classes)?;
        let numbers: Vec<_> =
            [&objects.boxes].into_iter().chain(&objects.properties).chain(&objects.keypoints).collect();
        for feature in numbers {
            columns.retain(|column| column.feature != *feature);
            columns.push(Column::with_layout(feature, Layout::Ragged));
        }
        if let Some(feature) = objects.masks.then_some(&objects.segmentation) {
            columns.retain(|column| column.feature != *feature);
            columns.push(Column::with_layout(feature, Layout::Bytes));
        }
        let at = |feature: &String| columns.iter().position(|c| c.feature == *feature).unwrap_or_default();
        Ok(ObjectColumns {
            boxes: at(&objects.boxes),
            properties: objects.properties.iter().map(at).collect(),
            keypoints: objects.keypoints.as_ref().map(at),
            points: None,
            unclear: None,
            masks: objects.masks.then(|| at(&objects.segmentation)),
            objects,
        })
    }

    /// Checks that no column of the user is one of the objects, which would take its place.
    ///
    /// # Errors
    /// [`Error::TwoColumns`].
    pub(crate) fn check_columns(&self, columns: &[Column]) -> Result<(), Error> {
        let Objects { boxes, properties, keypoints, masks, segmentation, .. } = &self.objects;
        let own = [boxes].into_iter().chain(properties).chain(keypoints).chain(masks.then_some(segmentation));
        match own.into_iter().find(|feature| columns.iter().any(|column| column.feature == **feature)) {
            Some(feature) => Err(Error::TwoColumns { feature: feature.clone() }),
            None => Ok(()),
        }
    }

    /// Returns the names of the classes of objects, if they are not those of other columns.
    pub(crate) fn class_names(&self) -> Option<&[String]> {
        self.objects.classes.as_deref()
    }

    /// Returns the column that says which objects are crowds; `None` if batches do not have it.
    pub(crate) fn crowds(&self) -> Option<usize> {
        let named = self.objects.properties.iter().position(|feature| feature == CROWD)?;
        Some(self.properties[named])
    }

    /// Returns the number that each keypoint has in a mirrored object; `None` without keypoints, or if it is not known.
    pub(crate) fn flip_index(&self) -> Option<&[usize]> {
        self.objects.keypoints.as_ref().and(self.objects.flip_index.as_deref())
    }

    /// Takes what the datasets say of the keypoints, as far as the options do not say it.
    ///
    /// # Errors
    /// [`Error::Keypoints`].
    pub(crate) fn describe_keypoints(&mut self, splits: &Splits) -> Result<(), Error> {
        let Some(feature) = &self.objects.keypoints else { return Ok(()) };
        let given = self.objects.flip_index.is_some();
        let DescribedKeypoints { count, flip_index } = DescribedKeypoints::new(splits, feature, given)?;
        self.points = count;
        match flip_index.filter(|_| !given) {
            Some(Ok(order)) => self.objects.flip_index = Some(order),
            Some(Err(unclear)) => self.unclear = Some(unclear),
            None => {}
        }
        Ok(())
    }

    /// Checks that points can follow the steps of `views`: steps that mirror need the order of the mirrored points.
    ///
    /// # Errors
    /// [`Error::FlipIndex`].
    pub(crate) fn check_flips(&self, views: &[View]) -> Result<(), Error> {
        let wrong = |problem: &str| Err(Error::FlipIndex { problem: problem.to_owned() });
        match (&self.objects.keypoints, &self.objects.flip_index) {
            (None, Some(_)) => {
                wrong("the objects have no keypoints whose order it could be: give `keypoints`, or leave it out")
            }
            (Some(_), None) if views.iter().any(|view| view.pipeline.mirrors()) => {
                let names = match &self.unclear {
                    Some(unclear) => format!(" (the dataset names its points, but {unclear})"),
                    None => String::new(),
                };
                Err(Error::FlipIndex {
                    problem: format!(
                        "a step flips, and the left and the right points of an object change places{names}: give the number that \
                         each point has in the mirrored object, such as 0, 2, 1 for a nose and two eyes, or 0, 1, 2 for points \
                         without sides"
                    ),
                })
            }
            (_, Some(order)) if self.points.is_some_and(|points| points != order.len()) => Err(Error::FlipIndex {
                problem: format!(
                    "it has {} numbers, and the objects of the dataset have {} points",
                    order.len(),
                    self.points.unwrap_or_default()
                ),
            }),
            // Two flips restore the order.
            (_, Some(order)) if !order.iter().enumerate().all(|(i, j)| order.get(*j) == Some(&i)) => {
                wrong("it does not exchange pairs of points: two flips would not restore the order")
            }
            _ => Ok(()),
        }
    }

    /// Makes the column of texts one of masks. Checks that boxes and keypoints are floats, and other values numbers.
    ///
    /// # Errors
    /// [`Error::Layout`] if they are not.
    pub(crate) fn resolve(&self, columns: &mut [ResolvedColumn]) -> Result<(), Error> {
        if let Some(column) = self.masks.and_then(|column| columns.get_mut(column)) {
            column.shape = Shape::Masks;
        }
        let wrong = |column: usize, allowed: &[Shape], layout| match columns.get(column) {
            Some(column) if !allowed.contains(&column.shape) => {
                Err(wrong_layout(&column.feature, column.dtype(), layout))
            }
            _ => Ok(()),
        };
        wrong(self.boxes, &[Shape::RaggedFloat], "boxes")?;
        self.keypoints.iter().try_for_each(|column| wrong(*column, &[Shape::RaggedFloat], "keypoints"))?;
        let numbers = [Shape::RaggedFloat, Shape::RaggedInt64, Shape::RaggedFloat64, Shape::RaggedUint64];
        self.properties.iter().try_for_each(|column| wrong(*column, &numbers, "numbers of objects"))
    }

    /// Returns what a column holds; `None` if the batch names it by its feature.
    pub(crate) fn role(&self, column: usize) -> Option<ObjectRole> {
        let classes =
            self.objects.properties.iter().position(|feature| [CLASSES, CLASS_NAMES].contains(&feature.as_str()));
        if column == self.boxes {
            Some(ObjectRole::Boxes)
        } else if Some(column) == self.keypoints {
            Some(ObjectRole::Keypoints)
        } else if Some(column) == self.masks {
            Some(ObjectRole::Masks)
        } else if classes.is_some_and(|at| self.properties[at] == column) {
            Some(ObjectRole::Labels)
        } else {
            None
        }
    }

    /// Checks that each object of a record has all its values.
    ///
    /// # Errors
    /// [`SampleError::Values`] if a feature has another number of values; [`SampleError::BoxUnit`] for fractions that can only be pixels.
    pub(crate) fn check(&self, cells: &[Cell]) -> Result<(), SampleError> {
        let wrong =
            |feature: &str, expected, found| Err(SampleError::Values { feature: feature.to_owned(), expected, found });
        let values = cells[self.boxes].floats().len();
        let objects = values / BOX;
        if !values.is_multiple_of(BOX) {
            return wrong(&self.objects.boxes, (objects + 1) * BOX, values);
        }
        let beyond = |number: &&f32| self.objects.unit == BoxUnit::Fraction && number.abs() > LARGEST_FRACTION;
        if let Some(number) = cells[self.boxes].floats().iter().find(beyond) {
            return Err(SampleError::BoxUnit { feature: self.objects.boxes.clone(), number: *number });
        }
        for (feature, column) in self.objects.properties.iter().zip(&self.properties) {
            if cells[*column].len() != objects {
                return wrong(feature, objects, cells[*column].len());
            }
        }
        if let Some((feature, column)) = self.objects.keypoints.as_ref().zip(self.keypoints) {
            let found = cells[column].len();
            let points = self.objects.flip_index.as_ref().map(Vec::len).or(self.points);
            if let Some(points) = points.filter(|points| found != objects * POINT * points) {
                return wrong(feature, objects * POINT * points, found);
            }
            if (objects == 0 && found > 0) || (objects > 0 && !found.is_multiple_of(POINT * objects)) {
                return wrong(feature, objects * POINT, found);
            }
        }
        Ok(())
    }

    /// Returns the boxes of a record: left, top, right, bottom in pixels of the stored image, whose size (width, height) is
    /// given.
    pub(crate) fn boxes(&self, cells: &[Cell], stored: (u32, u32)) -> Vec<[f64; 4]> {
        let [width, height] = self.scale(stored);
        let boxes = cells[self.boxes].floats().as_chunks::<BOX>().0.iter();
        let boxes = boxes.map(|b| self.objects.box_format.corners(b.map(f64::from)));
        boxes.map(|[a, b, c, d]| [a * width, b * height, c * width, d * height]).collect()
    }

    fn scale(&self, stored: (u32, u32)) -> [f64; 2] {
        match self.objects.unit {
            BoxUnit::Fraction => [stored.0.into(), stored.1.into()],
            BoxUnit::Pixel => [1.0; 2],
        }
    }

    /// Returns the feature that masks are drawn from; `None` if there are none.
    pub(crate) fn segmentation(&self) -> Option<&str> {
        self.masks.map(|_| &*self.objects.segmentation)
    }

    /// Returns where the objects of a record lie in the result, `None` for those that are too small there. `boxes` lie in the image
    /// that the plan was made for.
    pub(crate) fn mapped(&self, plan: &Plan, boxes: &[[f64; 4]]) -> MappedBoxes {
        boxes.iter().enumerate().map(|(n, b)| plan.map_box(n, *b).filter(|b| self.is_large(b))).collect()
    }

    /// Replaces the boxes and points of a record by those of the result, and drops objects that are too small. `mapped` are the boxes
    /// of the result; `before` returns where a point of the stored image, whose size (width, height) is given, lies in the image that
    /// the plan was made for.
    pub(crate) fn apply(
        &self,
        plan: &Plan,
        mapped: &MappedBoxes,
        (stored, before): ((u32, u32), impl Fn([f64; 2]) -> [f64; 2]),
        cells: &mut [Cell],
    ) {
        let kept: Vec<bool> = mapped.iter().map(Option::is_some).collect();
        let values = cells[self.boxes].floats_mut();
        values.clear();
        values.extend(mapped.iter().flatten().flatten().map(|x| *x as f32));
        for column in &self.properties {
            cells[*column].keep(&kept, 1);
        }
        if let Some(column) = self.keypoints {
            let points = cells[column].len() / POINT / kept.len().max(1);
            cells[column].keep(&kept, points * POINT);
            self.map_points(plan, (stored, before), cells[column].floats_mut());
            if let Some(order) = self.objects.flip_index.as_ref().filter(|_| is_mirrored(plan)) {
                exchange(cells[column].floats_mut(), order);
            }
        }
    }

    /// Returns whether an object with this box in pixels of the result is kept.
    pub(crate) fn is_large(&self, [left, top, right, bottom]: &[f64; 4]) -> bool {
        let (width, height) = (right - left, bottom - top);
        width >= self.objects.min_size && height >= self.objects.min_size && width * height >= self.objects.min_area
    }

    /// Returns the numbers of all columns.
    pub(crate) fn all(&self) -> impl Iterator<Item = usize> {
        [self.boxes].into_iter().chain(self.properties.iter().copied()).chain(self.keypoints).chain(self.masks)
    }

    fn map_points(
        &self,
        plan: &Plan,
        (stored, before): ((u32, u32), impl Fn([f64; 2]) -> [f64; 2]),
        values: &mut [f32],
    ) {
        let [x_scale, y_scale] = self.scale(stored);
        for [x, y, visibility] in values.as_chunks_mut::<POINT>().0 {
            // An invisible point has no position.
            if *visibility == 0.0 {
                (*x, *y) = (0.0, 0.0);
                continue;
            }
            match plan.shown_point(before([f64::from(*x) * x_scale, f64::from(*y) * y_scale])) {
                Some(point) => [*x, *y] = point.map(|x| x as f32),
                None => (*x, *y, *visibility) = (0.0, 0.0, 0.0),
            }
        }
    }
}

/// Returns the objects, with the names of their classes in place of ids where the splits have only names, or where labels are mapped by
/// name and the datasets do not name the ids.
///
/// # Errors
/// [`Error::ObjectClasses`] if some splits have ids, others names; [`Error::ObjectNames`] if names are given, and the splits have ids.
fn with_labels(objects: &Objects, splits: &Splits, classes: &Classes) -> Result<Objects, Error> {
    let mut objects = objects.clone();
    let has = |split: &Split, feature| Features::new(split).dtype(feature).is_some();
    let all = |feature| splits.as_slice().iter().all(|split| has(split, feature));
    let by_name = objects.classes.is_some() || matches!(classes, Classes::Names(_) | Classes::Union);
    let given = objects.classes.is_some();
    if let Some(ids) = objects.properties.iter_mut().find(|feature| *feature == CLASSES) {
        let unnamed = splits.as_slice().iter().any(|split| split.manifest().classes.is_empty());
        if all(CLASS_NAMES) && (!all(CLASSES) || (by_name && (unnamed || given))) {
            CLASS_NAMES.clone_into(ids);
        } else if let Some(names) =
            splits.as_slice().iter().find(|split| !has(split, CLASSES) && has(split, CLASS_NAMES))
            && let Some(ids) = splits.as_slice().iter().find(|split| has(split, CLASSES))
        {
            return Err(Error::ObjectClasses { ids: describe(ids), names: describe(names) });
        }
    }
    match given && !objects.properties.iter().any(|feature| feature == CLASS_NAMES) {
        true => Err(Error::ObjectNames),
        false => Ok(objects),
    }
}

/// Returns whether the result shows the image mirrored.
fn is_mirrored(plan: &Plan) -> bool {
    let [origin, right, down] = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]].map(|point| plan.map_point(point));
    let [a, b] = [right, down].map(|to| [to[0] - origin[0], to[1] - origin[1]]);
    a[0] * b[1] < a[1] * b[0]
}

/// Puts the points of each object in another order.
fn exchange(values: &mut [f32], order: &[usize]) {
    for object in values.as_chunks_mut::<POINT>().0.chunks_exact_mut(order.len().max(1)) {
        let points = object.to_vec();
        object.iter_mut().zip(order).for_each(|(point, from)| *point = points[*from]);
    }
}
