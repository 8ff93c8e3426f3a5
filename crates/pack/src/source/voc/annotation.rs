//! One file of annotations: XML with the size of the image and its objects.

use super::super::annotated::problem;
use crate::Reason;
use crate::sample::Number;
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes of a file, at most.
const NODES: u32 = 10_000_000;
/// What a flag is if the annotation does not say.
pub(super) const UNKNOWN: i64 = -1;
/// Members of an image that say where it was, not what it is, or that other columns have.
const NOT_KEPT: [&str; 5] = ["folder", "path", "filename", "width", "height"];
/// Members of an object whose columns have a meaning that these do not have.
const NOT_OF_OBJECTS: [&str; 3] = ["bbox", "keypoints", "segmentation"];

/// Members of a box.
const SIDES: [&str; 4] = ["xmin", "ymin", "xmax", "ymax"];

/// Returns the reason for a problem at an element.
type Wrong<'w> = dyn Fn(Node<'_, '_>, String) -> Reason + 'w;

/// The annotations of an image.
pub(super) struct Annotation {
    /// Width and height of the annotated image.
    pub(super) size: Option<(i64, i64)>,
    pub(super) objects: Vec<Object>,
    /// Other members that are a number or a text.
    pub(super) others: Map<String, Value>,
    /// What has no place in a record.
    pub(super) left_out: Vec<String>,
}

/// One object.
pub(super) struct Object {
    /// Name of its class.
    pub(super) name: String,
    /// `xmin`, `ymin`, `xmax` and `ymax` as in the file.
    pub(super) bounds: [f64; 4],
    /// 0, 1, or [`UNKNOWN`].
    pub(super) flags: BTreeMap<&'static str, i64>,
    /// Empty if the file does not say.
    pub(super) pose: String,
    /// Other members that are a number or a text.
    pub(super) others: Map<String, Value>,
}

/// Flags of objects.
pub(super) const FLAGS: [&str; 3] = ["difficult", "occluded", "truncated"];

/// Parses a file, which messages name as `file`. Document types are refused, so that no entity expands.
///
/// # Errors
/// [`Reason::Annotation`].
pub(super) fn parse(file: &str, xml: &str) -> Result<Annotation, Reason> {
    let options = ParsingOptions { nodes_limit: NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(xml, options).map_err(|error| {
        let line = error.pos().row;
        problem(file, Some(line.into()), format!("not XML as Pascal VOC has it: {error}"))
    })?;
    let root = document.root_element();
    let wrong = |node: Node<'_, '_>, text: String| {
        let line = document.text_pos_at(node.range().start).row;
        problem(file, Some(line.into()), text)
    };
    if root.tag_name().name() != "annotation" {
        return Err(wrong(root, format!("expected <annotation>, found <{}>", root.tag_name().name())));
    }
    let mut found = Annotation { size: None, objects: vec![], others: Map::new(), left_out: vec![] };
    let mut sized = false;
    found.left_out.extend(root.attributes().map(|attribute| format!("`{}` of <annotation>", attribute.name())));
    for member in root.children().filter(Node::is_element) {
        match member.tag_name().name() {
            "size" => {
                if std::mem::replace(&mut sized, true) {
                    return Err(wrong(member, "another <size>".to_owned()));
                }
                found.size = size(member, &wrong)?;
                if found.size.is_none() {
                    found.left_out.push("`size` of 0, in place of which the image's own is used".to_owned());
                }
                found.left_out.extend(others(member, &["width", "height"], "size"));
            }
            "object" => found.objects.push(object(member, &mut found.left_out, &wrong)?),
            "filename" if stem(&text(member)) == stem(file.rsplit('/').next().unwrap_or_default()) => {}
            name if NOT_KEPT.contains(&name) || !is_plain(member) => found.left_out.push(format!("`{name}`")),
            name => keep(name, member, &mut found.others, &wrong)?,
        }
    }
    Ok(found)
}

fn object(node: Node<'_, '_>, left_out: &mut Vec<String>, wrong: &Wrong<'_>) -> Result<Object, Reason> {
    let (mut name, mut bounds, mut pose) = (None, None, None);
    let (mut flags, mut flagged) = (BTreeMap::from(FLAGS.map(|flag| (flag, UNKNOWN))), BTreeSet::new());
    let mut members = Map::new();
    left_out.extend(node.attributes().map(|attribute| format!("`{}` of <object>", attribute.name())));
    for member in node.children().filter(Node::is_element) {
        let twice = || wrong(member, format!("another <{}> of an object", member.tag_name().name()));
        match member.tag_name().name() {
            "name" => {
                if name.replace(text(member)).is_some() {
                    return Err(twice());
                }
            }
            "bndbox" => {
                let side = |name: &str| {
                    let side = number(child(member, name, wrong)?, wrong)?;
                    side.ok_or_else(|| wrong(member, format!("<bndbox> has no <{name}>")))
                };
                if bounds.replace([side("xmin")?, side("ymin")?, side("xmax")?, side("ymax")?]).is_some() {
                    return Err(twice());
                }
                left_out.extend(others(member, &SIDES, "bndbox"));
            }
            "pose" => {
                if pose.replace(text(member)).is_some() {
                    return Err(twice());
                }
            }
            other => match FLAGS.into_iter().find(|flag| *flag == other) {
                Some(flag) => {
                    let value = match text(member).as_str() {
                        "0" => 0,
                        "1" => 1,
                        "" | "Unspecified" => UNKNOWN,
                        found => return Err(wrong(member, format!("<{flag}> is 0 or 1, found `{found}`"))),
                    };
                    if !flagged.insert(flag) {
                        return Err(twice());
                    }
                    flags.insert(flag, value);
                }
                None if is_plain(member) && !NOT_OF_OBJECTS.contains(&other) => {
                    keep(other, member, &mut members, wrong)?
                }
                None => left_out.push(format!("`{other}` of objects")),
            },
        }
    }
    let name =
        name.filter(|name| !name.is_empty()).ok_or_else(|| wrong(node, "an object without <name>".to_owned()))?;
    let bounds = bounds.ok_or_else(|| wrong(node, format!("object `{name}` has no <bndbox>")))?;
    Ok(Object { name, bounds, flags, pose: pose.unwrap_or_default(), others: members })
}

fn stem(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(stem, _)| stem)
}

/// Returns width and height of the annotated image; `None` if both are 0 or missing, as tools write what they do not know.
fn size(node: Node<'_, '_>, wrong: &Wrong<'_>) -> Result<Option<(i64, i64)>, Reason> {
    let side = |name| Ok::<_, Reason>(number(child(node, name, wrong)?, wrong)?.unwrap_or_default());
    let sides = (side("width")?, side("height")?);
    let is_side = |side: f64| side.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&side);
    match sides {
        (0.0, 0.0) => Ok(None),
        (width, height) if is_side(width) && is_side(height) => Ok(Some((width as i64, height as i64))),
        (width, height) => Err(wrong(
            node,
            format!(
                "<size> is {width} x {height}; expected a <width> and a <height> of whole pixels, or 0 for both if they are unknown"
            ),
        )),
    }
}

/// Returns the member of this name.
///
/// # Errors
/// [`Reason::Annotation`] if there are two.
fn child<'a, 'i>(node: Node<'a, 'i>, name: &str, wrong: &Wrong<'_>) -> Result<Option<Node<'a, 'i>>, Reason> {
    let mut found = node.children().filter(|child| child.tag_name().name() == name);
    let first = found.next();
    match found.next() {
        Some(twice) => Err(wrong(twice, format!("another <{name}> of <{}>", node.tag_name().name()))),
        None => Ok(first),
    }
}

/// Names the attributes of an element, and its members except for `known`.
fn others(node: Node<'_, '_>, known: &[&str], name: &str) -> Vec<String> {
    let attributes = node.attributes().map(|attribute| format!("`{}` of <{name}>", attribute.name()));
    let members = node.children().filter(|member| member.is_element() && !known.contains(&member.tag_name().name()));
    attributes.chain(members.map(|member| format!("`{name}/{}`", member.tag_name().name()))).collect()
}

/// Returns the text of an element, without the space around it.
fn text(node: Node<'_, '_>) -> String {
    let parts = node.children().filter(Node::is_text).filter_map(|part| part.text());
    parts.collect::<String>().trim().to_owned()
}

/// Returns the number that is the text of an element; `None` without an element.
fn number(node: Option<Node<'_, '_>>, wrong: &Wrong<'_>) -> Result<Option<f64>, Reason> {
    let Some(node) = node else { return Ok(None) };
    let text = text(node);
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.map(Some).ok_or_else(|| wrong(node, format!("<{}> is a number, found `{text}`", node.tag_name().name())))
}

/// Returns whether an element holds nothing but a text.
fn is_plain(node: Node<'_, '_>) -> bool {
    !node.children().any(|child| child.is_element()) && node.attributes().len() == 0
}

/// Keeps a member as a number or a text.
fn keep(name: &str, node: Node<'_, '_>, members: &mut Map<String, Value>, wrong: &Wrong<'_>) -> Result<(), Reason> {
    let text = text(node);
    let value = match Number::parse(&text) {
        // Digits with leading zeros are text.
        Some(Number::Int64(number)) if number.to_string() == text => Value::from(number),
        Some(Number::Uint64(number)) if number.to_string() == text => Value::from(number),
        Some(Number::Float64(number)) => Value::from(number),
        _ => Value::from(text),
    };
    match members.insert(name.to_owned(), value) {
        Some(_) => Err(wrong(node, format!("another <{name}>"))),
        None => Ok(()),
    }
}
