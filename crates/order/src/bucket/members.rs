//! The members of each bucket, and the batches they form.

use std::ops::Range;

use super::{Bucket, MAX_BUCKETS, Shape};
use crate::Error;
use shardtool_format::checksum::{Crc32c, crc32c};

/// Buckets with their members: what decides which batches an epoch has. Holds 4 bytes per source position.
#[derive(Clone, Debug)]
pub struct Buckets {
    buckets: Box<[Bucket]>,
    /// Source positions grouped by bucket, ascending inside a bucket.
    members: Box<[u32]>,
    /// P_y, the start of each bucket in `members`, and their end.
    starts: Box<[u64]>,
    /// End of each bucket among the complete batches.
    complete_ends: Box<[u64]>,
    /// The buckets that have an incomplete batch, ascending.
    incomplete: Box<[u16]>,
    crc: u32,
}

impl Buckets {
    /// Makes buckets from the number of the bucket of each source position. Iterates twice, so that no memory beyond the
    /// result is needed.
    ///
    /// # Errors
    /// [`Error::BucketCount`] unless there are 1 to 2¹⁶ buckets; [`Error::BucketNumber`] for a number that is not below
    /// theirs; [`Error::TooManyMembers`] for more than 2³² source positions.
    pub fn new(buckets: Vec<Bucket>, members: impl Iterator<Item = u16> + Clone) -> Result<Self, Error> {
        if buckets.is_empty() || buckets.len() > MAX_BUCKETS {
            return Err(Error::BucketCount { count: buckets.len() });
        }
        let mut starts = vec![0; buckets.len() + 1];
        let (mut len, mut numbers) = (0u64, Crc32c::new());
        for number in members.clone() {
            let Some(count) = starts[1..].get_mut(usize::from(number)) else {
                return Err(Error::BucketNumber { index: len, number, buckets: buckets.len() });
            };
            *count += 1;
            len += 1;
            numbers.update(&u64::from(number).to_le_bytes());
        }
        if len > MAX_MEMBERS {
            return Err(Error::TooManyMembers { len });
        }
        for y in 1..starts.len() {
            starts[y] += starts[y - 1];
        }
        let mut free = starts.clone();
        let mut grouped = vec![0; len as usize];
        for (v, number) in (0..=u32::MAX).zip(members) {
            let slot = &mut free[usize::from(number)];
            grouped[*slot as usize] = v;
            *slot += 1;
        }
        let rows = |y: usize| u64::from(buckets[y].batch.get());
        let count = |y: usize| starts[y + 1] - starts[y];
        let complete = (0..buckets.len()).scan(0, |end, y| {
            *end += count(y) / rows(y);
            Some(*end)
        });
        let complete_ends = complete.collect();
        let incomplete = (0..buckets.len()).filter(|&y| count(y) % rows(y) > 0).map(|y| y as u16).collect();
        let crc = crc32c(canonical_json(&buckets, len, numbers.value()).as_bytes());
        Ok(Buckets {
            members: grouped.into(),
            starts: starts.into(),
            complete_ends,
            incomplete,
            crc,
            buckets: buckets.into(),
        })
    }

    /// Returns the shape and batch size of each bucket.
    pub fn as_slice(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Returns N, the number of source positions.
    #[expect(clippy::len_without_is_empty, reason = "the number of source positions; a plan refuses none")]
    pub fn len(&self) -> u64 {
        self.members.len() as u64
    }

    /// Returns the number of members of a bucket.
    ///
    /// # Panics
    /// If the bucket does not exist.
    pub fn members(&self, bucket: usize) -> u64 {
        let Range { start, end } = self.positions(bucket);
        end - start
    }

    /// Returns the number of complete batches of all buckets, A.
    pub fn complete_batches(&self) -> u64 {
        self.complete_ends[self.complete_ends.len() - 1]
    }

    /// Returns the number of batches of all buckets, A + D.
    pub fn batches(&self) -> u64 {
        self.complete_batches() + self.incomplete.len() as u64
    }

    /// Returns the buckets whose members do not fill one batch. `drop` never delivers these members.
    pub fn without_complete_batch(&self) -> impl Iterator<Item = usize> {
        let smaller = |y: &usize| (1..self.buckets[*y].batch.get().into()).contains(&self.members(*y));
        (0..self.buckets.len()).filter(smaller)
    }

    /// Returns the batching checksum, which resume states contain: it covers shapes, batch sizes and members.
    pub fn crc(&self) -> u32 {
        self.crc
    }

    /// Returns the memory of the members in bytes, for a memory budget.
    pub fn bytes(&self) -> u64 {
        4 * self.len()
    }

    /// Returns the positions of a bucket: [P_y, P_y + N_y).
    pub(crate) fn positions(&self, bucket: usize) -> Range<u64> {
        self.starts[bucket]..self.starts[bucket + 1]
    }

    /// Returns the bucket of a position below N.
    pub(crate) fn bucket_of(&self, q: u64) -> usize {
        self.starts[1..].partition_point(|&end| end <= q)
    }

    /// Returns the source position that is member number `i` of all, bucket after bucket.
    pub(super) fn source_position(&self, i: u64) -> u64 {
        self.members[i as usize].into()
    }

    /// Returns (y, f) of the complete batch with this number, below A.
    pub(super) fn complete(&self, number: u64) -> (usize, u64) {
        let y = self.complete_ends.partition_point(|&end| end <= number);
        (y, number - y.checked_sub(1).map_or(0, |before| self.complete_ends[before]))
    }

    /// Returns (y, f) of the incomplete batch with this number, below D.
    pub(super) fn incomplete(&self, number: u64) -> (usize, u64) {
        let y = usize::from(self.incomplete[number as usize]);
        (y, self.members(y) / u64::from(self.buckets[y].batch.get()))
    }
}

/// The largest number of source positions with buckets or packing.
pub(crate) const MAX_MEMBERS: u64 = 1 << 32;

fn canonical_json(buckets: &[Bucket], len: u64, crc: u32) -> String {
    let bucket = |b: &Bucket| match b.shape {
        Shape::Image(shape) => format!(r#"{{"shape":[{},{}],"batch":{}}}"#, shape.height, shape.width, b.batch),
        Shape::Length(tokens) => format!(r#"{{"shape":[{tokens}],"batch":{}}}"#, b.batch),
    };
    let buckets: Vec<String> = buckets.iter().map(bucket).collect();
    format!(r#"{{"batching":"buckets","buckets":[{}],"count":{len},"crc32c":"{crc:08x}"}}"#, buckets.join(","))
}
