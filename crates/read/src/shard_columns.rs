//! The columns of a shard: those of its index, and those of the dataset's version.

use crate::Result;
use crate::overlay::{Overlaid, Overlay};
use crate::shard::Shard;
use crate::shard_index::ShardIndex;
use shardtool_format::example::Feature;
use shardtool_format::index::{Column, Element, Fixed, Scalar, Variable};

impl Shard {
    /// Returns the minor version and the optional flags in the header of the index; `None` for a bare file.
    pub fn index_version(&self) -> Option<(u16, u32)> {
        self.index().map(ShardIndex::version)
    }

    /// Returns the columns that the index lists, unchecked; none for a bare file.
    pub fn columns(&self) -> &[Column] {
        self.index().map(ShardIndex::columns).unwrap_or_default()
    }

    /// Returns a column of numbers, checked on its first use; `None` if the shard has no column of that name and type.
    ///
    /// # Errors
    /// [`crate::Error::Index`].
    pub fn column<T: Scalar>(&self, name: &str) -> Result<Option<Fixed<'_, T>>> {
        self.in_index(|index| index.position(name), |index, column| index.fixed(column))
    }

    /// Returns the column of a feature that holds at most one number in every record of this shard; `None` if there is
    /// no such column of that type. Its rows are then unknown, not null.
    ///
    /// # Errors
    /// [`crate::Error::Index`].
    pub fn feature<T: Scalar>(&self, name: &str) -> Result<Option<Fixed<'_, T>>> {
        if let Some(overlay) = self.overlaid(name) {
            return overlay.fixed(name);
        }
        self.in_index(|index| index.position_of_feature(name), |index, column| index.fixed(column))
    }

    /// As [`Shard::feature`], for a feature that holds at most one short byte string in every record.
    ///
    /// # Errors
    /// [`crate::Error::Index`].
    pub fn feature_bytes(&self, name: &str) -> Result<Option<Variable<'_>>> {
        if let Some(overlay) = self.overlaid(name) {
            return overlay.variable(name);
        }
        self.in_index(|index| index.position_of_feature(name), |index, column| index.variable(column))
    }

    /// Returns a variable column by its whole name, checked on its first use: `index::KEY`, `index::JPEG_ENTRIES`.
    ///
    /// # Errors
    /// [`crate::Error::Index`].
    pub fn variable(&self, name: &str) -> Result<Option<Variable<'_>>> {
        self.in_index(|index| index.position(name), |index, column| index.variable(column))
    }

    /// Returns the column that `position` finds, as `get` returns it; `None` if `position` finds no column.
    fn in_index<'s, C>(
        &'s self,
        position: impl FnOnce(&ShardIndex) -> Option<usize>,
        get: impl FnOnce(&'s ShardIndex, usize) -> Result<Option<C>>,
    ) -> Result<Option<C>> {
        let Some(index) = self.index() else { return Ok(None) };
        position(index).map_or(Ok(None), |column| get(index, column))
    }

    /// Returns the overlay, if the version has something in the place of this feature.
    fn overlaid(&self, feature: &str) -> Option<&Overlay> {
        self.overlay.as_deref().filter(|overlay| overlay.of(feature) != Overlaid::Stored)
    }

    /// Returns the elements of the column that holds a feature with at most one value in each record of this shard, in the index or
    /// in a column of the version; `None` if there is no such column. Opens and checks nothing.
    pub fn indexed_feature(&self, name: &str) -> Option<Element> {
        match self.overlay.as_ref().map_or(Overlaid::Stored, |overlay| overlay.of(name)) {
            Overlaid::Column(element) => Some(element),
            Overlaid::Dropped | Overlaid::Encoded => None,
            Overlaid::Stored => {
                self.columns().iter().find(|column| column.feature() == Some(name)).map(Column::element)
            }
        }
    }

    /// Returns the names of the features for which [`Shard::indexed_feature`] finds a column: those of the index in its order, then
    /// those that only the version has.
    pub fn indexed_features(&self) -> Vec<&str> {
        let stored = self.columns().iter().filter_map(Column::feature);
        let mut names: Vec<_> = stored.filter(|name| self.indexed_feature(name).is_some()).collect();
        let added: Vec<_> = self.overlay.iter().flat_map(|overlay| overlay.features()).collect();
        names.extend(
            added
                .into_iter()
                .filter(|name| self.indexed_feature(name).is_some() && !names.contains(name))
                .collect::<Vec<_>>(),
        );
        names
    }

    /// Returns which rows of a column have a value, as a bitmap of the least significant bit first: `Some(None)` if all have, `None`
    /// if the feature has no column.
    ///
    /// # Errors
    /// As [`Shard::feature`].
    pub(crate) fn validity(&self, name: &str) -> Result<Option<Option<&[u8]>>> {
        Ok(match self.indexed_feature(name) {
            None => None,
            Some(Element::I64) => self.feature::<i64>(name)?.map(|column| column.validity()),
            Some(Element::F32) => self.feature::<f32>(name)?.map(|column| column.validity()),
            Some(_) => self.feature_bytes(name)?.map(|column| column.validity()),
        })
    }

    /// Returns whether a column of the index has no null, without reading its rows.
    pub(crate) fn is_stored_without_nulls(&self, name: &str) -> bool {
        self.is_stored(name) && self.columns().iter().any(|column| column.feature() == Some(name) && !column.nullable())
    }

    /// Returns the feature of a record if a column of the version holds it: `None` if the version has what is stored, `Some(None)`
    /// if the record has no such feature.
    ///
    /// # Errors
    /// [`crate::Error::MissingCompanion`], [`crate::Error::Companion`], [`crate::Error::IndexMismatch`], [`crate::Error::RecordCount`], [`crate::Error::Io`].
    pub fn changed_feature(&self, row: u64, name: &str) -> Result<Option<Option<Feature<'_>>>> {
        self.overlaid(name).map_or(Ok(None), |overlay| overlay.feature(row, name))
    }

    /// Returns whether the version has what is stored for a feature.
    pub(crate) fn is_stored(&self, feature: &str) -> bool {
        self.overlaid(feature).is_none()
    }
}
