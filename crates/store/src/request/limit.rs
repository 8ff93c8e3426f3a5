//! Few verbs are under way at once.

use crate::failure::Failure;
use crate::verb::requests::{Request, Store};
use object_store::path::Path as Key;
use tokio::sync::Semaphore;

/// A store that carries out as many verbs at once as there are permits. Others wait, without a time limit: the time of a verb
/// begins when its first request may be sent.
pub(super) struct Limit<'p, S> {
    pub(super) permits: &'p Semaphore,
    pub(super) inner: S,
}

impl<S: Store> Store for Limit<'_, S> {
    async fn call<V: Request>(&self, key: &Key, verb: &V) -> Result<V::Answer, Failure> {
        let _permit = self.permits.acquire().await;
        self.inner.call(key, verb).await
    }
}
