//! Repeats requests that fail.

use crate::failure::Failure;
use crate::stats::{self, add};
use crate::url::Url;
use crate::verb::requests::{Request, Store};
use object_store::path::Path as Key;
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// Waits before a repeated request: the first time, doubled each time up to the last.
const PAUSES: Range<Duration> = Duration::from_millis(100)..Duration::from_secs(5);

/// A store that repeats requests within the time of the verb, as often as their failures permit.
pub(super) struct Retry<'u, S> {
    pub(super) url: &'u Url,
    pub(super) inner: S,
}

impl<S: Store> Store for Retry<'_, S> {
    async fn call<V: Request>(&self, key: &Key, verb: &V) -> Result<V::Answer, Failure> {
        let limit = verb.limit();
        let deadline = Instant::now() + limit;
        let (mut failures, mut pause, mut last) = (0, PAUSES.start, None);
        while let Ok(result) = timeout_at(deadline, self.inner.call(key, verb)).await {
            let failure = match result {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            failures += 1;
            if failure.repeats().is_some_and(|most| failures > most) {
                return Err(failure);
            }
            log::debug!("{}/{}: attempt {failures} failed: {failure:?}", self.url.root, self.url.key);
            last = Some(Box::new(failure));
            let wait = shortened(pause);
            if Instant::now() + wait >= deadline {
                break;
            }
            sleep(wait).await;
            pause = (2 * pause).min(PAUSES.end);
            add(&stats::RETRIES, 1);
        }
        Err(Failure::TimedOut { limit, last })
    }
}

/// Returns between half of a pause and all of it, so that processes whose requests failed together do not repeat them together.
fn shortened(pause: Duration) -> Duration {
    // The keys of a `RandomState` are random, and different for each.
    let random = RandomState::new().hash_one(0) as u32;
    pause / 2 + (pause / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_shortened_by_half_at_most_and_differ() {
        let pauses: std::collections::HashSet<_> = (0..100).map(|_| shortened(PAUSES.start)).collect();
        assert!(pauses.iter().all(|pause| (PAUSES.start / 2..=PAUSES.start).contains(pause)));
        assert!(pauses.len() > 50);
    }
}
