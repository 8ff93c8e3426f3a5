//! Decides which field of a sample is the image, the label and the key, and the feature names of the others.

use super::files::ArchiveKind;
use super::sample::Sample;
use crate::class_ids::{self, ClassIds};
use crate::sample::{self, SampleSchema, Values};
use crate::source::nested::Nesting;
use crate::source::objects;
use crate::{MemberKey, Options, Reason};
use shardtool_format::names;
use std::collections::BTreeMap;

/// Field names of images, in order of preference. Extensions of WebDataset samples are field names too.
const IMAGES: [&str; 15] = [
    names::IMAGE_ENCODED,
    "image",
    "jpg",
    "jpeg",
    "png",
    "webp",
    "gif",
    "bmp",
    "tif",
    "tiff",
    "image_raw",
    "image_bytes",
    "image/raw",
    "img",
    "pil",
];
/// Field names of labels, in order of preference; the field must hold an integer or text.
const LABELS: [&str; 5] = [names::CLASS_LABEL, "label", "cls", "class", "target"];
/// Field names of keys, for samples that have no name in the archive.
const KEYS: [&str; 5] = [names::IMAGE_KEY, names::IMAGE_FILENAME, "key", "__key__", "filename"];

/// Given in place of the name of the label's field: samples have no label, and all fields are features.
const NO_LABEL: &str = "none";

/// Which field has which role.
#[derive(Clone)]
pub(super) struct Roles {
    image: Vec<String>,
    /// Whether the user named the image's field.
    pub(super) image_given: bool,
    label: Vec<String>,
    /// Whether the user named the label's field.
    label_given: bool,
    key: Vec<String>,
    class: String,
    /// Whether the user named the key's field, which then takes precedence over the sample's name in the archive.
    key_given: bool,
    /// Fields that the user named, but that of the image.
    given: Vec<String>,
    /// Features that the user renamed: old and new name.
    renamed: Vec<(String, String)>,
    offset: i64,
    /// Which members of a tar are one sample, if the user said it.
    pub(super) member_key: Option<MemberKey>,
    /// How nested values become columns.
    pub(super) nesting: Nesting,
}

/// A label as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StoredLabel {
    Id(i64),
    Name(String),
}

/// How labels become class ids.
#[derive(Clone)]
pub(super) enum Labels {
    None,
    /// By name, from the names of the source or of a file.
    Names(ClassIds),
    /// As ids, after the offset is subtracted; checked if a file names the classes.
    Ids(Option<ClassIds>),
}

impl Labels {
    /// Returns how labels become class ids, as a word for checksums.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Labels::None => "none",
            Labels::Names(_) => "names",
            Labels::Ids(None) => "ids",
            Labels::Ids(Some(_)) => "listed ids",
        }
    }
}

/// Columns of a sample by name.
pub(super) type Columns = BTreeMap<String, Values>;

/// The fields of a sample, by role.
pub(super) struct RoleFields {
    pub(super) key: Option<String>,
    pub(super) label: Option<StoredLabel>,
    /// The other fields by feature name, the class name included.
    pub(super) columns: Columns,
}

impl Roles {
    /// Makes the roles that options give.
    pub(super) fn new(options: &Options) -> Self {
        let Options { map, label_offset, boxes, member_key, .. } = options;
        let given = |ours: &[&str]| -> Vec<String> {
            map.iter().filter(|(name, _)| ours.contains(&name.as_str())).map(|(_, theirs)| theirs.clone()).collect()
        };
        let or = |given: Vec<String>, known: &[&str]| match given.is_empty() {
            true => known.iter().map(|name| (*name).to_owned()).collect(),
            false => given,
        };
        let given_image = given(&["image", names::IMAGE_ENCODED]);
        let given_label = given(&["label", names::CLASS_LABEL]);
        let special = ["image", "label", "key", "class", names::IMAGE_ENCODED, names::CLASS_LABEL, names::IMAGE_KEY];
        let key = given(&["key", names::IMAGE_KEY]);
        let is_image = |name: &str| ["image", names::IMAGE_ENCODED].contains(&name);
        let fields = map.iter().filter(|(name, field)| !is_image(name) && field != NO_LABEL).map(|(_, field)| field);
        Roles {
            given: fields.cloned().collect(),
            image_given: !given_image.is_empty(),
            image: or(given_image, &IMAGES),
            label_given: !given_label.is_empty(),
            label: match &given_label[..] {
                [none] if none == NO_LABEL => vec![],
                _ => or(given_label, &LABELS),
            },
            key_given: !key.is_empty(),
            key: or(key, &KEYS),
            class: or(given(&["class", names::CLASS_TEXT]), &[names::CLASS_TEXT]).swap_remove(0),
            renamed: map
                .iter()
                .filter(|(ours, _)| !special.contains(&ours.as_str()))
                .map(|(ours, theirs)| (theirs.clone(), ours.clone()))
                .collect(),
            offset: *label_offset,
            member_key: *member_key,
            nesting: Nesting::new(*boxes),
        }
    }

    /// Makes the roles of archives whose samples have these columns.
    pub(super) fn of_schema(options: &Options, kind: ArchiveKind, schema: &SampleSchema) -> Self {
        let mut roles = Roles::new(options);
        // Only these formats have nested values; in others the user chose such names.
        if matches!(kind, ArchiveKind::Webdataset | ArchiveKind::Parquet) {
            roles.nesting.learn(schema.columns.iter().map(|(name, _)| name));
        }
        roles
    }

    /// Returns whether the user named the label's field, or said that samples have no label.
    pub(super) fn label_given(&self) -> bool {
        self.label_given
    }

    /// Returns the fields that the user named, but that of the image.
    pub(super) fn given(&self) -> impl Iterator<Item = &str> {
        self.given.iter().map(String::as_str)
    }

    /// Returns whether the user named a field.
    pub(super) fn is_given(&self, name: &str) -> bool {
        self.given.iter().any(|given| given == name)
    }

    /// Returns the rank of a name as the image, where 0 is the best; `None` if it is not an image's name.
    pub(super) fn image_rank(&self, name: &str) -> Option<usize> {
        self.image.iter().position(|image| image == name)
    }

    /// Returns the position of the field that is the image.
    pub(super) fn image<'n>(&self, fields: impl Iterator<Item = &'n str>) -> Option<usize> {
        let ranked = fields.enumerate().filter_map(|(i, name)| Some((self.image_rank(name)?, i)));
        ranked.min().map(|(_, i)| i)
    }

    /// Returns the field names of labels, in order of preference.
    #[cfg(feature = "parquet")]
    pub(super) fn labels(&self) -> impl Iterator<Item = &str> {
        self.label.iter().map(String::as_str)
    }

    /// Returns the names of two fields that both may be the label, of the same type and with different values, unless the user
    /// named the label's field.
    pub(super) fn two_labels(&self, sample: &Sample<'_>) -> Option<(String, String)> {
        let labels = sample.fields.iter().filter(|(name, _)| !self.label_given && self.label.iter().any(|l| l == name));
        let mut labels = labels.filter_map(|(name, values)| Some((name, label(values)?)));
        let (name, first) = labels.next()?;
        let differs = |other: &StoredLabel| {
            *other != first && matches!(first, StoredLabel::Id(_)) == matches!(other, StoredLabel::Id(_))
        };
        labels.find(|(_, other)| differs(other)).map(|(other, _)| (name.to_string(), other.to_string()))
    }

    /// Returns a field that has the name of a label and a floating-point number, if no other field is the label.
    pub(super) fn float_label<'s>(&self, sample: &'s Sample<'_>) -> Option<(&'s str, f64)> {
        let labels = || sample.fields.iter().filter(|(name, _)| self.label.iter().any(|l| l == name));
        if labels().any(|(_, values)| label(values).is_some()) {
            return None;
        }
        labels().find_map(|(name, values)| match values.numbers()?[..] {
            [number] if number.int().is_none() => Some((&**name, number.to_f64())),
            _ => None,
        })
    }

    /// Assigns the fields of a sample to roles and takes them out of it.
    ///
    /// # Errors
    /// [`Reason::TwoValues`] if two fields have the same name.
    pub(super) fn resolve(&self, sample: &mut Sample<'_>) -> Result<RoleFields, Reason> {
        let mut columns = Columns::new();
        for (name, values) in sample.fields.drain(..).filter(|(name, _)| !name.is_empty()) {
            if let Some(other) = columns.insert(name.to_string(), values)
                && columns.get(&*name) != Some(&other)
            {
                return Err(Reason::TwoValues { name: name.into_owned() });
            }
        }
        let own = sample.key.take().map(|key| key.into_owned()).filter(|_| !self.key_given);
        // Exports of this crate write the field `image/key`, which is exact where a tar's file names are not.
        let ours = columns.get(names::IMAGE_KEY).and_then(key).filter(|_| !self.key_given);
        let key = ours.or(own).or_else(|| self.key.iter().find_map(|name| key(columns.get(name)?)));
        let label = self.label.iter().find_map(|name| Some((name, label(columns.get(name)?)?)));
        let label = label.map(|(name, label)| {
            columns.remove(&name.clone());
            label
        });
        let class = columns.remove(&self.class);
        for (theirs, ours) in &self.renamed {
            if let Some(values) = columns.remove(theirs) {
                columns.insert(ours.clone(), values);
            }
        }
        objects::join_tensorflow(&mut columns);
        // Pack derives these features from the image.
        columns.retain(|name, _| !sample::is_written(name));
        if let Some(class @ Values::Bytes(_)) = class {
            columns.insert(names::CLASS_TEXT.to_owned(), class);
        }
        Ok(RoleFields { key, label, columns })
    }

    /// Returns the class id of a stored label.
    ///
    /// # Errors
    /// [`Reason::Label`].
    pub(super) fn class_id(&self, label: StoredLabel, classes: Option<&ClassIds>) -> Result<i64, Reason> {
        match label {
            StoredLabel::Id(stored) => class_ids::id_of_stored(stored, self.offset, classes),
            StoredLabel::Name(label) => Err(Reason::Label { label, offset: self.offset }),
        }
    }

    pub(super) fn each_bytes(&self, text: &mut dyn FnMut(&[u8])) {
        for names in [&self.image, &self.label, &self.key] {
            names.iter().for_each(|name| text(name.as_bytes()));
            text(&[]);
        }
        text(self.class.as_bytes());
        self.renamed.iter().for_each(|(theirs, ours)| [theirs, ours].iter().for_each(|name| text(name.as_bytes())));
        text(&self.offset.to_le_bytes());
        // Nothing by default, so that plan files of earlier versions still match.
        self.member_key.iter().for_each(|key| text(key.name().as_bytes()));
    }
}

fn key(values: &Values) -> Option<String> {
    match values {
        Values::Bytes(bytes) => std::str::from_utf8(bytes).ok().filter(|key| !key.is_empty()).map(str::to_owned),
        values => match values.numbers()?[..] {
            [number] if number.int().is_some() => Some(number.to_string()),
            _ => None,
        },
    }
}

fn label(values: &Values) -> Option<StoredLabel> {
    match values {
        Values::Bytes(name) => std::str::from_utf8(name).ok().map(|name| StoredLabel::Name(name.trim().to_owned())),
        values => match values.numbers()?[..] {
            // Above int64 it is not a class id, but may be a name.
            [number] => {
                number.int().map(|id| i64::try_from(id).map_or(StoredLabel::Name(id.to_string()), StoredLabel::Id))
            }
            _ => None,
        },
    }
}
