//! Conditions on the records of a split: `--where`, and [`Split::matching`].

use crate::condition::{Condition, ConditionError, Operator};
use crate::{Error, Result, Shard, Split, Value};
use shardtool_format::manifest::{DType, Manifest};
use shardtool_format::{index, printable};
use std::sync::Arc;

/// Conditions that must all hold for a record.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conditions(Vec<Condition>);

/// Returns the type of what conditions may name: the key, the bytes of the image, or a feature. `None` for others.
fn dtype(name: &str, manifest: &Manifest) -> Option<DType> {
    match name {
        index::KEY => Some(DType::Bytes),
        index::IMAGE_LENGTH => Some(DType::Int64),
        name => manifest.dtype(name),
    }
}

impl Conditions {
    /// Parses conditions on records of a dataset: each the name of a feature, one of `= != < <= > >= ~`, and a value.
    ///
    /// # Errors
    /// The first one that cannot be parsed, and what is wrong with it.
    pub fn parse<'t>(
        texts: impl IntoIterator<Item = &'t str>,
        manifest: &Manifest,
    ) -> std::result::Result<Self, (&'t str, ConditionError)> {
        let known = || manifest.features.iter().map(|feature| feature.name.clone()).collect();
        let parse = |text| {
            Condition::parse(text, |name| dtype(name, manifest)).map_err(|error| match error {
                ConditionError::Unknown { name, .. } => (text, ConditionError::Unknown { name, known: known() }),
                error => (text, error),
            })
        };
        texts.into_iter().map(parse).collect::<std::result::Result<_, _>>().map(Conditions)
    }

    /// Returns whether all records meet them, since there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the features that they are about.
    pub fn features(&self) -> Vec<String> {
        let own = |name: &&str| ![index::KEY, index::IMAGE_LENGTH].contains(name);
        self.0.iter().map(Condition::name).filter(own).map(str::to_owned).collect()
    }

    /// Returns whether a record meets all conditions.
    ///
    /// # Errors
    /// Those of [`Condition::holds_in`], if the other conditions hold.
    pub fn hold(&self, shard: &Arc<Shard>, row: u64) -> Result<bool> {
        let mut refused = None;
        for condition in &self.0 {
            match condition.holds_in(shard, row) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        refused.map_or(Ok(true), Err)
    }
}

impl Condition {
    /// Returns whether a record meets the condition. Several values of a feature are not the lack of one, and not compared.
    ///
    /// # Errors
    /// [`Error::Condition`] for a value that is to be compared with several; those of [`Shard::value`] and [`Shard::key`].
    pub fn holds_in(&self, shard: &Arc<Shard>, row: u64) -> Result<bool> {
        let value = match self.name() {
            index::KEY => Some(Value::Bytes(shard.key(row)?)),
            index::IMAGE_LENGTH => {
                let length = shard.column::<u32>(index::IMAGE_LENGTH)?.and_then(|lengths| lengths.get(row));
                length.map(|length| Value::Int64(length.into()))
            }
            name => shard.value(row, name)?.and_then(|value| value.of_type(self.dtype())),
        };
        let is_feature = ![index::KEY, index::IMAGE_LENGTH].contains(&self.name());
        let several = value.is_none() && is_feature && shard.has_values(row, self.name())?;
        match (several, self.operand()) {
            (true, Some(_)) => {
                let key = printable(&String::from_utf8_lossy(&shard.key(row)?)).into_owned();
                let source = ConditionError::Several { name: self.name().to_owned(), key };
                Err(Error::Condition { condition: self.text().to_owned(), source })
            }
            (true, None) => Ok(self.operator() == Operator::NotEqual),
            (false, _) => Ok(self.holds(value.as_ref())),
        }
    }
}

impl Split {
    /// Returns the ids of the records that meet all conditions, ascending: for a list of samples to train on. Columns of the index
    /// need no record.
    ///
    /// ```
    /// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/conformance/golden/tiny");
    /// # let dataset = shardtool_read::Dataset::open(folder)?;
    /// let train = dataset.split("train")?;
    /// let cats = train.matching(["image/class/label=0"])?;
    /// assert!(cats.len() < train.len() as usize);
    /// # Ok::<(), shardtool_read::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Condition`]; those of [`Split::shard`] and of reading the values.
    pub fn matching<'t>(&self, conditions: impl IntoIterator<Item = &'t str>) -> Result<Vec<u64>> {
        let conditions = Conditions::parse(conditions, self.manifest())
            .map_err(|(text, source)| Error::Condition { condition: text.to_owned(), source })?;
        let mut ids = vec![];
        for number in 0..self.entry().shards.len() {
            let shard = self.shard(number)?;
            for (id, row) in self.rows(number)? {
                if conditions.hold(&shard, row)? {
                    ids.push(id);
                }
            }
            shard.check_index_readable()?;
        }
        Ok(ids)
    }
}
