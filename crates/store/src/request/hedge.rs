//! Makes a second request if the first one lasts unusually long.

use crate::client::Purpose;
use crate::failure::Failure;
use crate::stats::{self, add};
use crate::verb::requests::{Request, Store};
use object_store::path::Path as Key;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A straggler lasts this many times as long as usual, and at least [`MIN_STRAGGLER`].
const STRAGGLER: u32 = 4;
const MIN_STRAGGLER: Duration = Duration::from_secs(1);
/// At most one request of this many is sent twice, so that a slow server is not overloaded.
const HEDGED_OF: u64 = 10;

/// Smoothed duration of requests that read, in microseconds.
static USUAL_MICROS: AtomicU64 = AtomicU64::new(0);

/// A store that gets a second request if a request that reads is a straggler. The first good answer counts.
pub(super) struct Hedge<S>(pub(super) S);

impl<S: Store> Store for Hedge<S> {
    async fn call<V: Request>(&self, key: &Key, verb: &V) -> Result<V::Answer, Failure> {
        if V::PURPOSE == Purpose::Write {
            // Large parts take long on a slow network, which a second copy of them would not make faster.
            return self.0.call(key, verb).await;
        }
        let mut first = pin!(self.measured(key, verb));
        let usual = Duration::from_micros(USUAL_MICROS.load(Ordering::Relaxed));
        if let Ok(result) = tokio::time::timeout((STRAGGLER * usual).max(MIN_STRAGGLER), &mut first).await {
            return result;
        }
        let (requests, hedged) = (stats::REQUESTS.load(Ordering::Relaxed), stats::HEDGED.load(Ordering::Relaxed));
        if hedged * HEDGED_OF > requests {
            return first.await;
        }
        add(&stats::HEDGED, 1);
        let mut second = pin!(self.measured(key, verb));
        tokio::select! {
            result = &mut first => if result.is_ok() { result } else { second.await },
            result = &mut second => if result.is_ok() { result } else { first.await },
        }
    }
}

impl<S: Store> Hedge<S> {
    async fn measured<V: Request>(&self, key: &Key, verb: &V) -> Result<V::Answer, Failure> {
        let since = Instant::now();
        let answer = self.0.call(key, verb).await?;
        let took = since.elapsed().as_micros() as u64;
        let _ = USUAL_MICROS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |usual| {
            Some(if usual == 0 { took } else { (7 * usual + took) / 8 })
        });
        Ok(answer)
    }
}
