//! The features of a dataset, and checks of images and byte strings against them.

use crate::classes::describe;
use crate::error::{Error, Result};
use crate::splits::Splits;
use shardtool_format::manifest::DType;
use shardtool_format::names;
use shardtool_read::Split;

/// Checks that the records have images. Opaque records are images themselves.
pub(crate) fn check_images(splits: &Splits) -> Result<()> {
    match splits.as_slice().iter().find(|split| !split.manifest().has_images()) {
        Some(split) => {
            let (feature, known) = (names::IMAGE_ENCODED.to_owned(), Features::new(split).names());
            Err(Error::NoFeature { split: describe(split), feature, known })
        }
        None => Ok(()),
    }
}

/// Checks that all splits have a feature of byte strings, for `what`.
pub(crate) fn check_bytes(feature: &str, what: &'static str, splits: &Splits) -> Result<()> {
    splits.as_slice().iter().try_for_each(|split| {
        let known = Features::new(split);
        match known.dtype(feature) {
            Some((DType::Bytes, _)) => Ok(()),
            Some((dtype, _)) => Err(wrong_layout(feature, dtype, what)),
            None => Err(Error::NoFeature { split: describe(split), feature: feature.to_owned(), known: known.names() }),
        }
    })
}

/// The features of a split: name, type, and whether every record holds exactly one number.
pub(crate) struct Features {
    features: Vec<(String, DType, bool)>,
}

impl Features {
    /// Takes types from the manifest, and scalar features from an index. For bare files, which have neither, takes both
    /// from the first record.
    pub(crate) fn new(split: &Split) -> Self {
        let first = (0..split.entry().shards.len()).find(|n| split.entry().shards[*n].live_records() > 0);
        // The code that reads the column reports damage.
        let indexed = |name: &str| first.is_some_and(|first| split.has_one_value_each(first, name).unwrap_or(false));
        let listed = &split.manifest().features;
        let mut features: Vec<_> = listed.iter().map(|f| (f.name.clone(), f.dtype, indexed(&f.name))).collect();
        if features.is_empty() {
            let record = first.and_then(|_| split.get(0).ok());
            let example = record.as_ref().and_then(|r| r.example().ok());
            features.extend(
                example
                    .iter()
                    .flat_map(|e| e.features())
                    .filter_map(|(name, feature)| Some((name.to_string(), feature.dtype()?, feature.count() == 1))),
            );
        }
        Features { features }
    }

    /// Returns the type of a feature, and whether it is scalar.
    pub(crate) fn dtype(&self, feature: &str) -> Option<(DType, bool)> {
        self.features.iter().find(|(name, ..)| name == feature).map(|(_, dtype, scalar)| (*dtype, *scalar))
    }

    /// Returns the names of all features.
    pub(crate) fn names(&self) -> Vec<String> {
        self.features.iter().map(|(name, ..)| name.clone()).collect()
    }
}

/// The error of a feature whose type does not fit a layout.
pub(crate) fn wrong_layout(feature: &str, dtype: DType, layout: &'static str) -> Error {
    Error::Layout { feature: feature.to_owned(), dtype: dtype.name(), layout }
}
