//! Counts requests, and bytes of answers.

use crate::failure::Failure;
use crate::stats::{self, add};
use crate::verb::requests::{Request, Store};
use object_store::path::Path as Key;

/// A store whose requests are counted for all stores together.
pub(super) struct Count<S>(pub(super) S);

impl<S: Store> Store for Count<S> {
    async fn call<V: Request>(&self, key: &Key, verb: &V) -> Result<V::Answer, Failure> {
        add(&stats::REQUESTS, 1);
        let answer = self.0.call(key, verb).await?;
        add(&stats::BYTES, V::bytes(&answer) as u64);
        Ok(answer)
    }
}
