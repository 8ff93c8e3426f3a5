//! The one loop that fills a row: memory is admitted, the row's values are obtained, and the row is written; again from the start
//! if a step cannot continue with what it has.
//!
//! What may wait for what, as the model in `tests/model.rs` checks:
//!
//! - To be admitted memory, a row waits for rows that hold scratch, and for batches. It holds no scratch meanwhile: an attempt's
//!   values are dropped, and its memory is returned, before the next attempt requests the sum.
//! - To obtain its values, a row waits for a request, with its memory held. Requests wait neither for scratch nor for batches, and a
//!   row whose values were not requested, for want of room, reads them itself.
//! - While a row is written, it waits for nothing: its memory is extended without waiting, or not at all.

use crate::memory_pressure::{Admission, Lender, Refused, ScratchAdmission};

/// Whether a step of an attempt was done.
pub(crate) enum Step<T> {
    /// With this result.
    Done(T),
    /// The attempt begins again, with this many bytes in total.
    Again(u64),
}

/// What fills a row, in steps.
pub(crate) trait Attempt {
    /// Memory that was admitted; returned when dropped.
    type Memory;
    /// The values of a row, in memory or mapped.
    type Values;
    /// Why the row is not filled.
    type Error;

    /// Waits for `bytes` of memory.
    fn admit(&mut self, bytes: u64) -> Result<Self::Memory, Self::Error>;

    /// Obtains the row's values, waiting for a request if they were requested.
    fn obtain(&mut self) -> Result<Step<Self::Values>, Self::Error>;

    /// Writes the row, with its memory extended to what that takes if it is free.
    fn write(&mut self, values: &Self::Values, memory: &mut Self::Memory) -> Result<Step<()>, Self::Error>;
}

/// A row that was filled.
pub(crate) struct Filled<V, M> {
    /// The first member, so that it is dropped before the memory that counts it.
    pub(crate) values: V,
    _memory: M,
}

/// Fills a row whose values take `bytes`.
///
/// # Errors
/// The first one of a step.
pub(crate) fn fill<A: Attempt>(attempt: &mut A, mut bytes: u64) -> Result<Filled<A::Values, A::Memory>, A::Error> {
    loop {
        // The values are dropped before the memory that counts them.
        let mut memory = attempt.admit(bytes)?;
        let values = match attempt.obtain()? {
            Step::Done(values) => values,
            Step::Again(more) => {
                bytes = more;
                continue;
            }
        };
        match attempt.write(&values, &mut memory)? {
            Step::Done(()) => return Ok(Filled { values, _memory: memory }),
            Step::Again(more) => bytes = more,
        }
    }
}

/// The memory of a row that is being filled, beyond its place in the batch.
pub(crate) struct RowMemory<'a, S: Lender> {
    pool: &'a ScratchAdmission<S>,
    /// Bytes of values that are not mapped; 0 if they are.
    pub(crate) values: u64,
    /// `None` if these alone are too large, which [`RowMemory::extend`] reports.
    admission: Option<Admission<'a, S>>,
}

impl<'a, S: Lender> RowMemory<'a, S> {
    /// Waits for `bytes`, of which the row's values take `values`. `None` if the batch was cancelled.
    pub(crate) fn admit(pool: &'a ScratchAdmission<S>, batch: &S::Work, bytes: u64, values: u64) -> Option<Self> {
        let admission = match pool.admit(batch, bytes) {
            Ok(admission) => Some(admission),
            Err(Refused::Cancelled) => return None,
            Err(Refused::TooLarge(_)) => None,
        };
        Some(RowMemory { pool, values, admission })
    }

    /// Extends it by `scratch` bytes in addition to the row's values. A row that holds values does not wait, since others may wait
    /// for their memory: it begins again with the sum.
    pub(crate) fn extend(&mut self, batch: &S::Work, scratch: u64) -> Result<Step<()>, Refused> {
        let needed = self.values + scratch;
        match &mut self.admission {
            Some(admission) if self.values > 0 => {
                if !admission.extend(needed) {
                    return Ok(Step::Again(needed));
                }
            }
            admission => *admission = Some(self.pool.admit(batch, needed)?),
        }
        Ok(Step::Done(()))
    }
}
