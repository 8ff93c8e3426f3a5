//! COCO annotation files: images, and the objects in each.

use super::coco_annotation::Annotation;
use super::coco_captions;
use super::coco_keypoints::{self, Described};
use super::coco_members::Members;
use super::coco_panoptic::{PANOPTIC, Panoptic};
use super::layouts::listed;
use super::listing::{Entry, Listing};
use super::objects;
use crate::class_ids::{self, ClassIds};
use crate::error::SourceError;
use crate::input::{self, Objects, Times, open_list, place};
use crate::sample::{SampleSchema, Values};
use crate::{Error, Options, Reason, Rejection};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use shardtool_format::BoxFormat;
use shardtool_format::manifest::DType;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::BufReader;
use std::path::Path;

/// The ids of an image's objects.
pub(crate) const OBJECT_ID: &str = "image/object/id";

/// Number of bytes at the start of a file that are searched for the members of a COCO file.
const LOOKED_AT: u64 = 1 << 20;

#[derive(Deserialize)]
struct Document {
    images: Vec<Image>,
    #[serde(default)]
    annotations: Vec<Annotation>,
    #[serde(default)]
    categories: Vec<Category>,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

#[derive(Deserialize)]
struct Image {
    id: i64,
    #[serde(default)]
    file_name: String,
    /// `width` and `height` of the annotated image, and all others.
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Image {
    /// Takes the path of the image from its address if it has no name, as in LVIS: the folder and the name of the file.
    ///
    /// # Errors
    /// What is missing.
    fn named(self) -> Result<Self, String> {
        if !self.file_name.is_empty() {
            return Ok(self);
        }
        let url = self.others.get("coco_url").and_then(Value::as_str).unwrap_or_default();
        // The path ends before a query or a fragment.
        let url = url.split(['?', '#']).next().unwrap_or_default();
        match url.rsplit('/').take(2).collect::<Vec<_>>()[..] {
            [file, folder] if !file.is_empty() && !folder.is_empty() && folder != ".." && file != ".." => {
                Ok(Image { file_name: format!("{folder}/{file}"), ..self })
            }
            _ => Err(format!("image {} has no `file_name`, and no `coco_url` that names its folder and file", self.id)),
        }
    }
}

#[derive(Deserialize)]
struct Category {
    id: i64,
    name: String,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

impl Category {
    /// Returns what it says of its keypoints. `with_points` are the categories whose objects have some.
    fn points(&self, with_points: &HashSet<i64>) -> Described<'_> {
        let members = coco_keypoints::MEMBERS.map(|name| self.others.get(name));
        Described { name: &self.name, members, has_points: with_points.contains(&self.id) }
    }
}

/// Returns whether a file is a COCO annotation file: a JSON object with `images`, `annotations` or `file_name` near its
/// beginning.
///
/// # Errors
/// [`Error::Io`].
pub(super) fn is(path: &Path) -> Result<bool, Error> {
    let json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    if !json {
        return Ok(false);
    }
    let start = input::start_of(path, LOOKED_AT).map_err(Error::io("read", path))?;
    let has = |name: &[u8]| start.windows(name.len()).any(|window| window == name);
    let members: [&[u8]; 3] = [b"\"images\"", b"\"annotations\"", b"\"file_name\""];
    Ok(start.trim_ascii_start().starts_with(b"{") && members.into_iter().any(has))
}

/// Lists the images of a COCO file with their objects, or with their captions. Images lie in `options.images`, by default in the file's folder.
/// Class ids are those of the `given` classes of the same names, by default the ranks of the category ids (`class_ids::by_rank`); category
/// ids are stored too.
///
/// # Errors
/// [`SourceError::Coco`], [`Error::Io`].
pub(super) fn list(file: &Path, given: Option<&ClassIds>, options: &Options) -> Result<Listing, Error> {
    let wrong = |problem: String| Error::Source(SourceError::Coco { path: file.to_owned(), problem });
    let opened = open_list(file).map_err(Error::io("read", file))?;
    let Document { images, annotations, categories, others } =
        serde_json::from_reader(BufReader::new(opened)).map_err(|e| wrong(e.to_string()))?;
    let mut images = images.into_iter().map(Image::named).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    let with_points = annotations.iter().filter(|annotation| annotation.has_points());
    let counts = with_points.clone().filter_map(|annotation| Some(annotation.keypoints.as_ref()?.len() / 3)).collect();
    let with_points: HashSet<i64> = with_points.filter_map(|annotation| annotation.category_id).collect();
    let of_points = categories.iter().map(|category| category.points(&with_points));
    let (described, unused) = coco_keypoints::of_categories(&of_points.collect::<Vec<_>>(), &counts);
    let mut left_out = left_out(&others, &categories);
    left_out.extend(unused);
    let (mut classes, mut names) = class_ids::by_rank(categories.iter().map(|c| (c.id, c.name.clone())).collect());
    let mut sorted: Vec<_> = names.iter().collect();
    sorted.sort();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(wrong(format!("two categories have the name `{}`", twice[0])));
    }
    if classes.len() < names.len() {
        let of = |id: i64| categories.iter().filter(move |category| category.id == id);
        let twice = categories.iter().find(|category| of(category.id).count() > 1).expect("fewer ids than names");
        let names = listed(of(twice.id).map(|category| category.name.as_str()));
        return Err(wrong(format!("the categories {names} have the same id {}; give each its own id", twice.id)));
    }
    if let Some(given) = given {
        classes = categories.iter().map(|c| Ok((c.id, given.id(&c.name)?))).collect::<Result<_, Error>>()?;
        names = given.names().to_vec();
    }
    let mut ids: Vec<_> = images.iter().map(|image| image.id).collect();
    ids.sort_unstable();
    if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        let id = twice[0];
        let names: Vec<_> =
            images.iter().filter(|image| image.id == id).map(|image| image.file_name.as_str()).collect();
        return Err(wrong(format!(
            "{} have the same id {id}, so that it is unknown of which one the annotations are; give each image its own id",
            listed(names.into_iter())
        )));
    }
    let (panoptic, mut annotations) = Panoptic::of(file, annotations).map_err(wrong)?;
    let captioned = coco_captions::are(&annotations);
    if captioned {
        annotations = annotations.into_iter().map(Annotation::into_caption).collect();
    }
    let keypoints = annotations.iter().any(Annotation::has_keypoints);
    let most = annotations.iter().filter_map(|annotation| annotation.keypoints.as_ref()).map(Vec::len).max();
    for annotation in annotations.iter().filter(|_| !captioned) {
        let category = annotation.category().map_err(wrong)?;
        if !classes.contains_key(&category) {
            let id = annotation.id;
            return Err(wrong(format!("annotation {id} has category {category}, which is not among the categories")));
        }
    }
    let without_area = annotations.iter().filter(|annotation| !captioned && annotation.area.is_none()).count();
    if without_area > 0 {
        left_out.push(format!("{without_area} objects have no `area`, and are stored with 0"));
    }
    let of_images = Members::of_images(images.iter().map(|image| &image.others));
    let members = annotations.iter().map(|annotation| &annotation.others);
    let of_annotations = if captioned { coco_captions::members(members) } else { Members::of_annotations(members) };
    let further = [&of_images, &of_annotations];
    let columns =
        if captioned { coco_captions::columns(further) } else { columns(keypoints, panoptic.is_some(), further) };
    let mut by_image: HashMap<i64, Vec<Annotation>> = HashMap::new();
    for annotation in annotations {
        by_image.entry(annotation.image_id).or_default().push(annotation);
    }
    let root = options.images.clone().unwrap_or_else(|| file.parent().unwrap_or(Path::new("")).to_owned());
    let (mut entries, mut rejected) = (vec![], vec![]);
    images.sort_by(|a, b| a.file_name.cmp(&b.file_name));
    if let Some(twice) = images.windows(2).find(|pair| pair[0].file_name == pair[1].file_name) {
        return Err(wrong(format!("two images have the file name `{}`", twice[0].file_name)));
    }
    let mut objects = Objects::default();
    objects.examine(images.iter().map(|image| place(&root, &image.file_name)))?;
    for Image { id, file_name, others } in images {
        let annotations = by_image.remove(&id).unwrap_or_default();
        let meta = match objects.at(&place(&root, &file_name)) {
            Ok(meta) if meta.is_file() => meta,
            Ok(_) => {
                rejected.push(Rejection::new(file_name, Reason::NotAFile)?);
                continue;
            }
            Err(e) => {
                rejected.push(Rejection::new(file_name, Reason::of_stat(e))?);
                continue;
            }
        };
        let members = annotations.iter().map(|annotation| &annotation.others);
        let further: Vec<_> = of_images.of_image(&others).chain(of_annotations.of_objects(members)).collect();
        let values = match captioned {
            true => Ok(coco_captions::values(id, &annotations, further, &columns)),
            false => {
                let png = panoptic.as_ref().map(|panoptic| panoptic.value(id, &file_name, options)).transpose();
                png.and_then(|png| {
                    let further = further.into_iter().chain(png.map(|png| (PANOPTIC.to_owned(), png))).collect();
                    values(id, &annotations, (further, most.unwrap_or(0)), &classes, options.boxes, &columns)
                })
            }
        };
        match values {
            Ok(values) => entries.push(Entry::new(file_name, None, None, values, (&meta, Times::of(options)))),
            Err(reason) => rejected.push(Rejection::new(file_name, reason)?),
        }
    }
    if let Some(id) = by_image.keys().min() {
        return Err(wrong(format!("annotations of image {id}, which is not among the images")));
    }
    let schema =
        SampleSchema { classes: names, images: true, labelled: false, columns, keypoints: Box::new(described) };
    Ok(Listing { entries, schema, rejected, left_out, root, stored: false })
}

/// Returns what the file has and the dataset does not, for people.
fn left_out(others: &BTreeMap<String, IgnoredAny>, categories: &[Category]) -> Vec<String> {
    let file = others.keys().map(|name| format!("the member `{name}` of the file"));
    let of_categories = categories.iter().flat_map(|category| category.others.keys());
    let of_categories: BTreeSet<_> =
        of_categories.filter(|name| !coco_keypoints::MEMBERS.contains(&name.as_str())).collect();
    file.chain(of_categories.into_iter().map(|name| format!("`{name}` of the categories"))).collect()
}

/// Returns the columns of a COCO file, in byte order of their names.
fn columns(keypoints: bool, panoptic: bool, further: [&Members; 2]) -> Vec<(String, DType)> {
    let mut columns = vec![
        ("image/id", DType::Int64),
        (objects::AREA, DType::Float),
        (objects::BBOX, DType::Float),
        ("image/object/category_id", DType::Int64),
        (objects::CLASS, DType::Int64),
        (OBJECT_ID, DType::Int64),
        ("image/object/iscrowd", DType::Int64),
        // Of segments, the image shows which pixels they have.
        (if panoptic { PANOPTIC } else { "image/object/segmentation" }, DType::Bytes),
    ];
    if keypoints {
        columns.extend([(objects::KEYPOINTS, DType::Float), ("image/object/keypoints/shape", DType::Int64)]);
    }
    let mut columns: Vec<_> = columns.into_iter().map(|(name, dtype)| (name.to_owned(), dtype)).collect();
    columns.extend(further.into_iter().flat_map(Members::columns));
    columns.sort_by(|a, b| a.0.cmp(&b.0));
    columns
}

/// Returns the values of an image, in the order of `columns`. `most` numbers are those of an object's keypoints in an image without any.
fn values(
    id: i64,
    annotations: &[Annotation],
    (further, most): (Vec<(String, Values)>, usize),
    classes: &HashMap<i64, i64>,
    boxes: BoxFormat,
    columns: &[(String, DType)],
) -> Result<Box<[Values]>, Reason> {
    let ints = |of: &dyn Fn(&Annotation) -> i64| Values::Int64s(annotations.iter().map(of).collect());
    let mut found = BTreeMap::from([
        ("image/id", Values::Int64(id)),
        ("image/object/area", Values::Floats(annotations.iter().map(|a| a.area.unwrap_or_default() as f32).collect())),
        ("image/object/category_id", ints(&|a| a.category_id.unwrap_or_default())),
        (objects::CLASS, ints(&|a| a.category_id.map_or(0, |category| classes[&category]))),
        (OBJECT_ID, ints(&|a| a.id)),
        ("image/object/iscrowd", ints(&|a| a.iscrowd.unwrap_or_default())),
    ]);
    let texts = annotations.iter().map(|a| a.segmentation.as_deref().unwrap_or("null").as_bytes().into());
    found.insert("image/object/segmentation", Values::BytesList(texts.collect()));
    // Boxes and keypoints are converted like those of other sources.
    let mut members = Map::new();
    members.insert(
        "bbox".to_owned(),
        annotations.iter().map(|a| Value::from(a.bbox.clone().unwrap_or_default())).collect(),
    );
    if columns.iter().any(|(name, _)| name == objects::KEYPOINTS) {
        let here = annotations.iter().filter_map(|a| a.keypoints.as_ref()).map(Vec::len).max();
        let count = here.filter(|count| *count > 0).unwrap_or(most);
        // An object without keypoints gets as many as the others, all unlabelled.
        let given = |a: &Annotation| a.keypoints.clone().filter(|points| !points.is_empty());
        let points = |a: &Annotation| Value::from(given(a).unwrap_or_else(|| vec![0.0; count]));
        members.insert("keypoints".to_owned(), annotations.iter().map(points).collect());
    }
    let mut flat = Map::new();
    objects::flat(Value::Object(members), boxes, |_, _, _| (), &mut flat)?;
    let numbers = |value: &Value| value.as_array().map(|l| l.iter().filter_map(Value::as_f64).collect::<Vec<_>>());
    for (name, _) in columns {
        let Some(list) = flat.get(name).and_then(numbers) else { continue };
        let value = match objects::PIXELS.contains(&name.as_str()) {
            true => Values::Pixels(list.iter().map(|v| *v as f32).collect()),
            false => Values::Int64s(list.iter().map(|v| *v as i64).collect()),
        };
        found.insert(name, value);
    }
    let mut further: HashMap<_, _> = further.into_iter().collect();
    let mut value = |name: &String| found.remove(name.as_str()).or_else(|| further.remove(name));
    Ok(columns.iter().map(|(name, _)| value(name).unwrap_or(Values::Missing)).collect())
}
