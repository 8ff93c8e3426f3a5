//! What is drawn over an image: boxes, keypoints, what objects cover, and the rows at which JPEG decoding can start.

use super::coordinates::{MOST, floats, scaled};
use super::covered::Covered;
use super::keypoints::Skeletons;
use crate::app::SplitView;
use crate::picture::Stored;
use crate::text;
use maud::{Markup, html};
use shardtool_decode::{Orientation, Plan};
use shardtool_format::checksum::crc32c;
use shardtool_format::example::{Example, Feature};
use shardtool_load::{BOXES, CLASS_NAMES, CLASSES, SEGMENTATION};

/// Colours of classes in `view.css`: `.class-0` and so on.
const COLOURS: i64 = 10;

/// Shapes in pixels of the stored image.
pub(crate) struct Overlay {
    /// Width and height of the image as it is shown, upright.
    pub(crate) size: (u32, u32),
    stored: (u32, u32),
    orientation: u8,
    boxes: Vec<Object>,
    covered: Vec<Covered>,
    points: Skeletons,
    /// Offsets from the top.
    entries: Vec<f64>,
}

/// A box, and the class of its object.
struct Object {
    /// Left, top, right, bottom.
    corners: [f64; 4],
    name: String,
    /// The number of its class's colour.
    colour: i64,
}

impl Overlay {
    pub(crate) fn of(
        view: &SplitView,
        stored: &Stored<'_>,
        example: Option<&Example<'_>>,
        entries: Option<&[u8]>,
    ) -> Self {
        let size = Orientation::from_exif(stored.orientation).size(stored.size);
        let entries = entries.map_or(vec![], |payload| entry_rows(stored, payload));
        let (mut boxes, mut covered, mut points) = (vec![], vec![], Skeletons::default());
        if let Some(example) = example {
            boxes = objects(view, stored, example);
            covered = covered_by(stored, example);
            points = Skeletons::of(example, stored, view.keypoints());
        }
        Overlay { size, stored: stored.size, orientation: stored.orientation, boxes, covered, points, entries }
    }

    /// Returns the boxes and keypoints of what a trainer sees, where the plan of its pixels puts them. As in a loader, boxes that become
    /// narrower or lower than a pixel are left out.
    pub(crate) fn drawn(view: &SplitView, stored: &Stored<'_>, example: Option<&Example<'_>>, plan: &Plan) -> Self {
        let boxes = example.map_or(vec![], |example| objects(view, stored, example)).into_iter().enumerate();
        let boxes = boxes.filter_map(|(number, object)| {
            let corners = plan.map_box(number, object.corners)?;
            let [left, top, right, bottom] = corners;
            (right - left >= 1.0 && bottom - top >= 1.0).then_some(Object { corners, ..object })
        });
        let covered = example.map_or(vec![], |example| covered_by(stored, example));
        let covered = covered.iter().map(|covered| covered.moved(plan)).collect();
        let points = example.map_or(Skeletons::default(), |example| Skeletons::of(example, stored, view.keypoints()));
        let (size, points) = (plan.output_size(), points.moved(plan));
        let boxes = boxes.collect();
        Overlay { size, stored: size, orientation: 1, boxes, covered, points, entries: vec![] }
    }

    /// Returns the names of the layers that have shapes, and how many.
    pub(crate) fn layers(&self) -> Vec<(&'static str, usize)> {
        let all = [
            ("boxes", self.boxes.len()),
            ("objects", self.covered.len()),
            ("keypoints", self.points.len()),
            ("entries", self.entries.len()),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).collect()
    }

    /// Renders the shapes.
    pub(crate) fn svg(&self) -> Markup {
        let (width, height) = self.size;
        // A line of about two pixels on the screen, a letter of about twelve.
        let unit = f64::from(width.max(height)) / 500.0;
        if self.layers().is_empty() {
            return html! {};
        }
        html! {
            svg.overlay viewBox=(format!("0 0 {width} {height}")) role="img" aria-label="Boxes, masks, keypoints and entry points" {
                g transform=(self.transform()) {
                    g.entries data-layer="entries" {
                        @for y in &self.entries {
                            line x1="0" x2=(self.stored.0) y1=(format!("{y:.1}")) y2=(format!("{y:.1}")) stroke-width=(format!("{:.2}", unit / 1.5)) {}
                        }
                    }
                    g.objects data-layer="objects" {
                        @for covered in &self.covered {
                            path class=(covered.class()) d=(covered.path()) stroke-width=(format!("{:.2}", unit)) {}
                        }
                    }
                    g.boxes data-layer="boxes" {
                        @for Object { corners: [left, top, right, bottom], name, colour } in &self.boxes {
                            rect class=(format!("class-{colour}")) x=(format!("{left:.1}")) y=(format!("{top:.1}")) width=(format!("{:.1}", right - left))
                                height=(format!("{:.1}", bottom - top)) stroke-width=(format!("{:.2}", 2.0 * unit)) {
                                title { (name) }
                            }
                            text x=(format!("{:.1}", left + 3.0 * unit)) y=(format!("{:.1}", top + 14.0 * unit)) font-size=(format!("{:.1}", 13.0 * unit)) {
                                (text::fit(name, 40))
                            }
                        }
                    }
                    (self.points.svg(unit))
                }
            }
        }
    }

    /// Returns the transform from the stored to the upright image.
    fn transform(&self) -> String {
        let (w, h) = self.stored;
        let [a, b, c, d, e, f] = match self.orientation {
            2 => [-1, 0, 0, 1, i64::from(w), 0],
            3 => [-1, 0, 0, -1, w.into(), h.into()],
            4 => [1, 0, 0, -1, 0, h.into()],
            5 => [0, 1, 1, 0, 0, 0],
            6 => [0, 1, -1, 0, h.into(), 0],
            7 => [0, -1, -1, 0, h.into(), w.into()],
            8 => [0, -1, 1, 0, 0, w.into()],
            _ => [1, 0, 0, 1, 0, 0],
        };
        format!("matrix({a} {b} {c} {d} {e} {f})")
    }
}

/// Returns the class ids of a record's objects.
fn labels(example: &Example<'_>) -> Vec<i64> {
    match example.get(CLASSES) {
        Some(Feature::Int64(list)) => list.iter().take(MOST).collect(),
        _ => vec![],
    }
}

/// Returns the number of the colour of each object: that of its class, by its id or, without ids, by its name.
fn colours(example: &Example<'_>) -> Vec<i64> {
    let mut classes = labels(example);
    if classes.is_empty() {
        let names = example.byte_strings(CLASS_NAMES).unwrap_or_default();
        classes.extend(names.into_iter().take(MOST).map(|name| i64::from(crc32c(name))));
    }
    classes.into_iter().map(|class| class.rem_euclid(COLOURS)).collect()
}

/// Returns what the objects of a record cover, in pixels of the stored image.
fn covered_by(stored: &Stored<'_>, example: &Example<'_>) -> Vec<Covered> {
    let (colours, texts) = (colours(example), example.byte_strings(SEGMENTATION).unwrap_or_default());
    let texts = texts.into_iter().take(MOST).enumerate();
    Covered::of(texts.map(|(at, text)| (text, colours.get(at).copied().unwrap_or_default())), stored.size)
}

/// Returns the boxes of a record in pixels of the stored image, with their classes.
fn objects(view: &SplitView, stored: &Stored<'_>, example: &Example<'_>) -> Vec<Object> {
    let labels = labels(example);
    let (names, colours) = (example.byte_strings(CLASS_NAMES).unwrap_or_default(), colours(example));
    let corners = floats(example.get(BOXES));
    let boxes = corners.as_chunks::<4>().0.iter().take(MOST).enumerate();
    let object = |(at, corners): (usize, &[f64; 4])| {
        let label = labels.get(at).copied();
        let text = names.get(at).filter(|_| label.is_none());
        Object {
            corners: scaled(*corners, stored.size),
            name: match (label, text) {
                (Some(label), _) => view.class_name(label),
                (None, Some(name)) => text::printable(name),
                (None, None) => String::new(),
            },
            colour: colours.get(at).copied().unwrap_or_default(),
        }
    };
    boxes.map(object).collect()
}

/// Returns the first pixel row of each group of MCU rows that has an entry. The payload is a hint, which is not checked here.
fn entry_rows(stored: &Stored<'_>, payload: &[u8]) -> Vec<f64> {
    let (Some(step), Some(components)) = (payload.first(), payload.get(1)) else { return vec![] };
    let bytes = 4 + 2 * usize::from(*components);
    let groups = (payload.len() - 2) / bytes + 1;
    let entries = 1..groups.min(4096);
    // Rows of a group: all groups have the same number of MCU rows but the last one.
    let rows = mcu_rows(stored.bytes)
        .map_or(f64::from(stored.size.1) / groups as f64, |mcu| f64::from(*step) * f64::from(mcu));
    entries.map(|group| group as f64 * rows).filter(|y| *y < f64::from(stored.size.1)).collect()
}

/// Returns the pixel rows of an MCU of a JPEG: eight times its largest vertical sampling factor.
fn mcu_rows(jpeg: &[u8]) -> Option<u32> {
    let header = shardtool_jpeg::Header::parse(jpeg, &shardtool_jpeg::Limits::default()).ok()?;
    header.components().iter().map(|component| 8 * u32::from(component.v)).max()
}
