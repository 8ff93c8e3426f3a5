//! Finds what records of existing shards hold: Examples or opaque bytes, and which features.

use crate::Error;
use crate::class_ids::ClassNames;
use crate::error::ShardError;
use crate::frames::{FrameAt, Frames};
use crate::index_writer::{Indexed, Payload};
use crate::split::manifest_store;
use shardtool_format::example::{Example, Message, has_feature_lists};
use shardtool_format::manifest::{DType, FeatureType, Manifest, SEQUENCE_EXAMPLE};
use shardtool_format::names;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Which features hold the image and the label.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Conventions {
    /// The feature with the image. Default `image/encoded`.
    pub image: String,
    /// The feature with the label. Default `image/class/label`.
    pub label: String,
    /// Offset that is subtracted from a stored label to get the class id. Default 0.
    pub label_offset: i64,
}

impl Default for Conventions {
    fn default() -> Self {
        Conventions { image: names::IMAGE_ENCODED.to_owned(), label: names::CLASS_LABEL.to_owned(), label_offset: 0 }
    }
}

/// Returns the payload of the records, detected from the first record of each file: they are opaque if the first of all is
/// not an Example, and SequenceExamples if any has feature lists.
pub(crate) fn payload(files: &[&PathBuf], image: &str) -> Result<Payload, Error> {
    let (mut message, mut first) = (Message::Example, true);
    for file in files {
        let mut frames = Frames::open(file)?;
        if frames.bytes() == 0 {
            continue;
        }
        match frames.at(0)? {
            FrameAt::Record(data, _) if first && Example::parse(data).is_err() => return Ok(Payload::Opaque),
            FrameAt::Record(data, _) if has_feature_lists(data) => message = Message::SequenceExample,
            _ => {}
        }
        first = false;
    }
    Ok(Payload::Examples { message, image: Some(image.to_owned()), logical: BTreeMap::new() })
}

/// What the records of several shards have in common.
pub(crate) struct RecordSummary {
    /// Per feature name: a shard and a record that have it, and the type there.
    features: BTreeMap<String, (String, u64, DType)>,
    classes: ClassNames,
}

impl RecordSummary {
    pub(crate) fn new(conventions: &Conventions) -> Self {
        RecordSummary {
            features: BTreeMap::new(),
            classes: ClassNames::new(&conventions.label, conventions.label_offset),
        }
    }

    pub(crate) fn join(&mut self, indexed: &Indexed, classes: ClassNames) -> Result<(), Error> {
        self.classes.join(classes);
        for (name, dtype, record) in &indexed.features {
            let here = (indexed.shard.file.clone(), *record, *dtype);
            let first = self.features.entry(name.clone()).or_insert_with(|| here.clone());
            if first.2 != *dtype {
                return Err(Error::Shard(ShardError::FeatureType {
                    feature: name.clone(),
                    first: first.clone(),
                    second: here,
                }));
            }
        }
        Ok(())
    }

    pub(crate) fn manifest(self, payload: &Payload, conventions: &Conventions) -> Manifest {
        let dtype = |name: &str| self.features.get(name).map(|(.., dtype)| *dtype);
        let image = (dtype(&conventions.image) == Some(DType::Bytes)).then(|| conventions.image.clone());
        let label = (dtype(&conventions.label) == Some(DType::Int64)).then(|| conventions.label.clone());
        let opaque = *payload == Payload::Opaque;
        let sequences = matches!(payload, Payload::Examples { message: Message::SequenceExample, .. });
        Manifest {
            requires: if sequences { vec![SEQUENCE_EXAMPLE.to_owned()] } else { vec![] },
            image: image.filter(|_| !opaque),
            label_offset: label.as_ref().map_or(0, |_| conventions.label_offset),
            classes: if label.is_some() { self.classes.into_names() } else { vec![] },
            label,
            features: self.features.into_iter().map(|(name, (.., dtype))| FeatureType { name, dtype }).collect(),
            ..Manifest::new(manifest_store::CREATED_BY)
        }
    }
}
