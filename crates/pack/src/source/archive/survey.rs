//! The survey of archives before they are packed: types of columns, class names, number of samples per shard, and repeated keys.

use super::SurveyedFile;
use super::files::{ArchiveFile, SampleCount};
use super::roles::{Labels, RoleFields, Roles, StoredLabel};
use super::sample::{SampleVisitor, VisitedSample};
use crate::class_ids::{ClassIds, ClassNames};
use crate::error::ArchiveError;
use crate::progress::{Progress, check};
use crate::sample::{Conflict, Number, Numbers, SampleSchema, Values};
use crate::source::doubtful_files::Neighbours;
use crate::source::objects;
use crate::source::split_marks::SplitMarks;
use crate::{Error, Options, Rejection};
use shardtool_format::checksum::Crc32c;
use shardtool_format::manifest::DType;
use shardtool_format::names;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The name that declares the label's type in `--column`, whichever field holds the label.
const LABEL: &str = "label";
/// What has the names of splits if the folders in an archive do.
const FOLDERS: &str = "the first folder of the names";
/// More columns than real datasets have: beyond this, field names are probably values.
const MOST_COLUMNS: usize = 4096;
/// More class names than real datasets have: beyond this, labels are probably captions.
const MOST_CLASSES: usize = 1 << 17;

/// Hashes a key, to find repeated ones.
pub(super) fn hash(key: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// A sample: its file and number.
type Place = (String, u64);

/// What is known of a column.
struct ColumnSurvey {
    /// A sample that has it.
    first: Place,
    content: ColumnContent,
}

enum ColumnContent {
    /// Byte strings.
    Bytes,
    Numbers(Numbers<Place>),
    /// Any that fit the type that the user gives.
    Declared(DType),
}

impl ColumnSurvey {
    /// Returns the type, for messages.
    fn dtype(&self) -> DType {
        match &self.content {
            ColumnContent::Bytes => DType::Bytes,
            ColumnContent::Declared(dtype) => *dtype,
            ColumnContent::Numbers(numbers) => numbers.dtype().ok().flatten().unwrap_or(DType::Float64),
        }
    }
}

/// What the samples of a file have in common.
pub(super) struct Survey {
    columns: BTreeMap<String, ColumnSurvey>,
    /// Whether labels are integers or names, and a sample with one.
    label: Option<(DType, Place)>,
    /// The first label that is a float: its file, sample, field and value.
    float_label: Option<(String, u64, String, f64)>,
    /// Whether such a label is not a whole number and so not a class id.
    fractions: bool,
    names: BTreeSet<String>,
    pairs: ClassNames,
    /// Names of splits in the samples.
    marks: SplitMarks,
    pub(super) neighbours: Neighbours,
    /// The fields that the user named, of those that some sample has.
    found: BTreeSet<String>,
    keys: Vec<u64>,
}

/// The result of a survey.
pub(super) struct SurveyResult {
    pub(super) schema: SampleSchema,
    pub(super) labels: Labels,
}

impl Survey {
    pub(super) fn new() -> Self {
        Survey {
            columns: BTreeMap::new(),
            label: None,
            float_label: None,
            fractions: false,
            names: BTreeSet::new(),
            pairs: ClassNames::new(names::CLASS_LABEL, 0),
            marks: SplitMarks::default(),
            neighbours: Neighbours::default(),
            found: BTreeSet::new(),
            keys: vec![],
        }
    }

    /// Adds the survey of another file.
    ///
    /// # Errors
    /// [`ArchiveError::ColumnTypes`], [`ArchiveError::TooManyColumns`], [`ArchiveError::TooManyClasses`].
    pub(super) fn join(&mut self, other: Survey) -> Result<(), Error> {
        for (name, column) in other.columns {
            self.column(name, column)?;
        }
        if let Some((dtype, place)) = other.label {
            self.labelled(dtype, place)?;
        }
        self.float_label = self.float_label.take().or(other.float_label);
        self.fractions |= other.fractions;
        self.names.extend(other.names);
        self.few_classes()?;
        self.pairs.join(other.pairs);
        self.marks.join(other.marks);
        self.neighbours.join(other.neighbours);
        self.found.extend(other.found);
        self.keys.extend(other.keys);
        Ok(())
    }

    /// Adds what is known of a column. The types of numbers are decided at the end.
    fn column(&mut self, name: String, column: ColumnSurvey) -> Result<(), Error> {
        let known = self.columns.len();
        let Some(there) = self.columns.get_mut(&name) else {
            if known == MOST_COLUMNS {
                let (file, number) = column.first;
                return Err(Error::Archive(ArchiveError::TooManyColumns { most: MOST_COLUMNS, file, number }));
            }
            self.columns.insert(name, column);
            return Ok(());
        };
        match (&mut there.content, column.content) {
            (ColumnContent::Bytes, ColumnContent::Bytes) | (ColumnContent::Declared(_), _) => Ok(()),
            (ColumnContent::Numbers(numbers), ColumnContent::Numbers(more)) => {
                numbers.join(more);
                Ok(())
            }
            (_, content) => {
                let here = ColumnSurvey { content, ..column };
                Err(types(&name, (there.dtype(), &there.first), (here.dtype(), &here.first)))
            }
        }
    }

    /// Adds the values of a sample's column.
    fn values(&mut self, name: String, values: &Values, place: &Place) -> Result<(), Error> {
        let is_bytes = values.dtype() == Some(DType::Bytes);
        // The most frequent case, without allocations.
        if let Some(ColumnSurvey { content: ColumnContent::Numbers(numbers), .. }) = self.columns.get_mut(&name)
            && !is_bytes
        {
            numbers.add_values(values, place);
            return Ok(());
        }
        let content = match is_bytes {
            true => ColumnContent::Bytes,
            false => {
                let mut numbers = Numbers::default();
                numbers.add_values(values, place);
                ColumnContent::Numbers(numbers)
            }
        };
        self.column(name, ColumnSurvey { first: place.clone(), content })
    }

    /// Records the type of a label; all must be integers, or all names.
    fn labelled(&mut self, dtype: DType, place: Place) -> Result<(), Error> {
        match &self.label {
            Some((known, first)) if *known != dtype => Err(types(LABEL, (*known, first), (dtype, &place))),
            Some(_) => Ok(()),
            None => {
                self.label = Some((dtype, place));
                Ok(())
            }
        }
    }

    fn few_classes(&self) -> Result<(), Error> {
        match self.names.len() {
            ..=MOST_CLASSES => Ok(()),
            _ => Err(Error::Archive(ArchiveError::TooManyClasses {
                most: MOST_CLASSES,
                name: self.names.first().cloned().unwrap_or_default(),
            })),
        }
    }

    /// Returns whether a sample has a label.
    pub(super) fn is_labelled(&self) -> bool {
        self.label.is_some()
    }

    /// Returns the names of splits since the last call.
    pub(super) fn take_marks(&mut self) -> SplitMarks {
        std::mem::take(&mut self.marks)
    }

    /// Returns the hashes of keys that occur more than once since the last call, sorted.
    pub(super) fn take_repeated(&mut self) -> Box<[u64]> {
        repeated(std::mem::take(&mut self.keys))
    }

    /// Decides the schema. `classes` are the names in a `--classes` file, `stored` those in the archives' metadata.
    ///
    /// # Errors
    /// [`ArchiveError::UnknownColumn`], [`SourceError::UnknownClass`](crate::SourceError).
    pub(super) fn describe(
        mut self,
        classes: Option<ClassIds>,
        stored: Option<Vec<String>>,
        roles: &Roles,
        options: &Options,
    ) -> Result<SurveyResult, Error> {
        if let Some(field) = roles.given().find(|field| !self.found.contains(*field)) {
            let known: Vec<_> = self.columns.keys().map(String::as_str).take(20).collect();
            let (field, known) = (field.to_owned(), known.join(", "));
            return Err(Error::Archive(ArchiveError::UnknownField { field, known }));
        }
        for (name, dtype) in &options.columns {
            match self.columns.get_mut(name) {
                Some(there) => there.content = ColumnContent::Declared(*dtype),
                None if name == LABEL && self.label.is_some() => {}
                None => return Err(Error::Archive(ArchiveError::UnknownColumn { column: name.clone() })),
            }
        }
        if let Some((file, number, field, value)) = self.float_label.filter(|_| self.label.is_none() && !self.fractions)
        {
            return Err(Error::Archive(ArchiveError::FloatLabels { file, number, field, value }));
        }
        let in_order =
            |names: &[String]| names.iter().cloned().enumerate().map(|(id, name)| (id as i64, name)).collect();
        let check = |named: Vec<(i64, String)>| match &classes {
            Some(classes) => classes.check_names(named.iter().map(|(id, name)| (*id, name.as_str()))),
            None => Ok(()),
        };
        let offset = options.label_offset;
        let (labels, class_names) = match self.label.map(|(dtype, _)| dtype) {
            None => {
                // Without labels of images, the classes are those of objects.
                let objects = self.columns.contains_key(objects::CLASS);
                check(stored.as_deref().filter(|_| objects).map_or(vec![], in_order))?;
                let names = classes.map(ClassIds::into_names).or(stored).filter(|_| objects);
                (Labels::None, names.unwrap_or_default())
            }
            Some(DType::Bytes) if offset != 0 => {
                let expected = "0: the labels of the source are names, which have no offset";
                return Err(Error::Option { option: "label offset", expected });
            }
            Some(DType::Bytes) => {
                let classes = classes.map_or_else(|| ClassIds::sorted(self.names.iter().cloned()), Ok)?;
                self.names.iter().try_for_each(|name| classes.id(name).map(drop))?;
                let names = classes.names().to_vec();
                (Labels::Names(classes), names)
            }
            Some(_) => {
                // The source names labels, and class ids are labels minus the offset.
                let stored = match (stored, usize::try_from(offset)) {
                    (Some(_), Err(_)) => {
                        let expected = "at least 0: the source names its labels, and has no names below 0";
                        return Err(Error::Option { option: "label offset", expected });
                    }
                    (stored, offset) => {
                        stored.map(|names| names.into_iter().skip(offset.unwrap_or(0)).collect::<Vec<_>>())
                    }
                };
                check(match &stored {
                    Some(stored) => in_order(stored),
                    None => self.pairs.named().map(|(id, name)| (id, name.to_owned())).collect(),
                })?;
                // A label beyond the names that the source lists is rejected.
                let classes = classes.or_else(|| stored.map(|names| ClassIds::in_order(names, None)));
                let names =
                    classes.as_ref().map_or_else(|| self.pairs.into_names(), |classes| classes.names().to_vec());
                (Labels::Ids(classes), names)
            }
        };
        let labelled = !matches!(labels, Labels::None);
        if labelled && !class_names.is_empty() {
            // The class name is written from the list of names.
            self.columns.remove(names::CLASS_TEXT);
        }
        let columns = self.columns.into_iter().map(|(name, column)| {
            let dtype = match column.content {
                ColumnContent::Bytes => DType::Bytes,
                ColumnContent::Declared(dtype) => dtype,
                ColumnContent::Numbers(numbers) => {
                    let exact = numbers.dtype().map_err(|found| conflict(&name, found))?;
                    objects::dtype(&name, exact.expect("a column has a value"))
                }
            };
            Ok((name, dtype))
        });
        let columns = columns.collect::<Result<_, Error>>()?;
        let schema =
            SampleSchema { classes: class_names, images: true, labelled, columns, keypoints: Default::default() };
        Ok(SurveyResult { schema, labels })
    }
}

/// The error of a column whose values have two types.
fn types(column: &str, first: (DType, &Place), second: (DType, &Place)) -> Error {
    let seen = |(dtype, place): (DType, &Place)| (place.0.clone(), place.1, dtype);
    Error::Archive(ArchiveError::ColumnTypes { column: column.to_owned(), first: seen(first), second: seen(second) })
}

/// The error of a column with two numbers that no type holds.
fn conflict(column: &str, found: Conflict<Place>) -> Error {
    let seen = |(number, (file, sample)): (Number, Place)| (number.to_string(), file, sample);
    let numbers = Box::new([seen(found.first), seen(found.second)]);
    Error::Archive(ArchiveError::Numbers { column: column.to_owned(), numbers })
}

/// Returns the hashes that occur more than once, sorted.
fn repeated(mut keys: Vec<u64>) -> Box<[u64]> {
    keys.sort_unstable();
    let mut twice: Vec<_> = keys.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    twice.dedup();
    twice.into_boxed_slice()
}

/// Returns the hashes of names that several groups of members have, sorted. Groups of the same members are samples of the same
/// name; of other members, the parts of one sample.
fn scattered(mut members: Vec<(u64, u64)>) -> Vec<u64> {
    members.sort_unstable();
    members.dedup();
    let mut twice: Vec<_> = members.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0).collect();
    twice.dedup();
    twice
}

/// Surveys one file.
pub(super) struct Surveyor<'a> {
    file: &'a ArchiveFile,
    shard_size: u64,
    roles: &'a Roles,
    declared: &'a [(String, DType)],
    progress: &'a dyn Progress,
    shards: Vec<SampleCount>,
    /// Hashes of the names of samples of a tar, and of the names of their members.
    members: Vec<(u64, u64)>,
    /// Of what was read: all but the images.
    crc: Crc32c,
    survey: Survey,
}

impl<'a> Surveyor<'a> {
    pub(super) fn new(
        file: &'a ArchiveFile,
        shard_size: u64,
        roles: &'a Roles,
        declared: &'a [(String, DType)],
        progress: &'a dyn Progress,
    ) -> Self {
        let shards = vec![SampleCount::default(); file.shards(shard_size) as usize];
        let mut crc = Crc32c::new();
        file.layout().iter().for_each(|layout| crc.update(layout.as_bytes()));
        Surveyor { file, shard_size, roles, declared, progress, shards, members: vec![], crc, survey: Survey::new() }
    }

    /// Returns the file with the counts of each shard, and the survey.
    pub(super) fn finish(self) -> (SurveyedFile, Survey) {
        let (file, shards, scattered) = (self.file.clone(), self.shards, scattered(self.members));
        (SurveyedFile { file, shards, scattered, crc: self.crc.value() }, self.survey)
    }

    /// Adds what an item holds, and where, to the checksum.
    fn add(&mut self, item: &VisitedSample<'_>) {
        let crc = &mut self.crc;
        let mut add = |bytes: &[u8]| {
            crc.update(&(bytes.len() as u64).to_le_bytes());
            crc.update(bytes);
        };
        [item.at, item.bytes].iter().for_each(|number| add(&number.to_le_bytes()));
        let Ok(sample) = &item.sample else { return };
        [sample.key.as_deref(), sample.image_name].iter().for_each(|name| add(name.unwrap_or_default().as_bytes()));
        add(&[u8::from(sample.key.is_some()), u8::from(sample.image.is_some())]);
        sample.stored.iter().flat_map(|value| &value.parts).for_each(|part| add(&part.offset.to_le_bytes()));
        for (name, values) in &sample.fields {
            add(name.as_bytes());
            values.each_bytes(&mut add);
        }
    }

    fn label(&mut self, label: StoredLabel, class: Option<&Values>, number: u64) -> Result<(), Error> {
        let place = || (self.file.name.clone(), number);
        let given = self.declared.iter().find(|(name, _)| name == LABEL).map(|(_, dtype)| *dtype);
        let label = match (label, given) {
            (StoredLabel::Id(id), Some(DType::Bytes)) => StoredLabel::Name(id.to_string()),
            // Packing rejects this sample.
            (StoredLabel::Name(_), Some(DType::Int64)) => return Ok(()),
            (label, _) => label,
        };
        match label {
            StoredLabel::Name(name) => {
                self.survey.labelled(DType::Bytes, place())?;
                if !self.survey.names.contains(&name) {
                    self.survey.names.insert(name);
                    self.survey.few_classes()?;
                }
                Ok(())
            }
            StoredLabel::Id(_) => {
                let text = match class {
                    Some(Values::Bytes(text)) => std::str::from_utf8(text).ok(),
                    _ => None,
                };
                if let (Some(text), Ok(id)) = (text, self.roles.class_id(label, None)) {
                    self.survey.pairs.put(id, text);
                }
                self.survey.labelled(DType::Int64, place())
            }
        }
    }
}

impl SampleVisitor for Surveyor<'_> {
    fn needs_image(&self, _at: u64) -> bool {
        false
    }

    fn needs_places(&self) -> bool {
        false
    }

    fn item(&mut self, item: VisitedSample<'_>) -> Result<(), Error> {
        check(self.progress)?;
        self.add(&item);
        let shard = &mut self.shards[self.file.shard(item.at, self.shard_size)];
        shard.images += 1;
        shard.bytes += item.bytes;
        let mut sample = match item.sample {
            Ok(sample) => sample,
            // Packing rejects the sample; an error of the system stops the run here.
            Err(reason) => {
                return Rejection::new(format!("{}#{}", self.file.name, item.number), reason).map(drop);
            }
        };
        if let Some(key) = sample.key.as_deref().filter(|_| sample.members != 0) {
            self.members.push((hash(key), sample.members));
            self.survey.neighbours.add(key);
        }
        if let Some((first, second)) = self.roles.two_labels(&sample) {
            let (file, number) = (self.file.name.clone(), item.number);
            return Err(Error::Archive(ArchiveError::TwoLabels { file, number, first, second }));
        }
        if let Some((field, value)) = self.roles.float_label(&sample) {
            self.survey.fractions |= value.is_finite() && value.fract() != 0.0;
            let seen = || (self.file.name.clone(), item.number, field.to_owned(), value);
            self.survey.float_label.get_or_insert_with(seen);
        }
        for (name, _) in &sample.fields {
            if self.roles.is_given(name) && !self.survey.found.contains(&**name) {
                self.survey.found.insert(name.to_string());
            }
        }
        let key = sample.key.as_deref().map(|key| key.trim_start_matches("./"));
        if let Some((folder, _)) = key.and_then(|key| key.split_once('/')) {
            self.survey.marks.add(FOLDERS, &Values::text(folder));
        } else {
            self.survey.marks.add(FOLDERS, &Values::text(""));
        }
        // Packing rejects a sample whose fields are ambiguous.
        let Ok(RoleFields { key, label, columns }) = self.roles.resolve(&mut sample) else { return Ok(()) };
        self.survey.keys.extend(key.as_deref().map(hash));
        if let Some(label) = label {
            self.label(label, columns.get(names::CLASS_TEXT), item.number)?;
        }
        let place = (self.file.name.clone(), item.number);
        for (name, values) in columns {
            self.survey.marks.add(&name, &values);
            match self.declared.iter().find(|(declared, _)| *declared == name) {
                Some((_, dtype)) => {
                    let content = ColumnContent::Declared(*dtype);
                    self.survey.column(name, ColumnSurvey { first: place.clone(), content })?;
                }
                None if values == Values::Missing => {}
                None => self.survey.values(name, &values, &place)?,
            }
        }
        Ok(())
    }
}
