//! Checks that buckets and packing have in common.

use crate::Error;
use crate::bucket::MAX_MEMBERS;
use crate::order::{EpochOrder, Order};
use crate::schedule::Policy;
use crate::source::Source;

/// Checks that a source of `entries` bucket numbers or lengths can be batched. `order` is that of bucket batches; `None`
/// if any order will do.
pub(crate) fn check_batching(source: &Source, policy: Policy, order: Option<Order>, entries: u64) -> Result<(), Error> {
    let len = source.len();
    EpochOrder::new(Order::Sequential, len, 0, 0)?;
    if policy == Policy::Shard {
        return Err(Error::BatchingPolicy);
    }
    let source_kind = match source {
        Source::All(_) | Source::List(_) => None,
        Source::Balanced(_) => Some("balanced"),
        Source::Weighted(_) => Some("weighted"),
        Source::Mixture(_) => Some("mixture"),
        Source::Scheduled(_) => Some("scheduled"),
    };
    if let Some(source_kind) = source_kind {
        return Err(Error::BatchingSource { source_kind });
    }
    if let Some(Order::Interleaved { .. }) = order {
        return Err(Error::BatchingOrder);
    }
    if len > MAX_MEMBERS {
        return Err(Error::TooManyMembers { len });
    }
    if entries != len {
        return Err(Error::MemberCount { entries, len });
    }
    Ok(())
}
