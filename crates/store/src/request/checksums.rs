//! Gives requests the checksums that they carry.

use crate::checksum::with_checksums;
use crate::failure::Failure;
use crate::verb::requests::{Request, Store};
use object_store::path::Path as Key;

/// A store whose requests carry the checksums that their verbs name.
pub(super) struct Checksums<S>(pub(super) S);

impl<S: Store> Store for Checksums<S> {
    async fn call<V: Request>(&self, key: &Key, verb: &V) -> Result<V::Answer, Failure> {
        with_checksums(verb.checksums(), self.0.call(key, verb)).await
    }
}
