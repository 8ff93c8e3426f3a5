//! The thread that walks ahead of the workers.

use super::lookahead::Lookahead;
use super::planner::Planner;
use super::{Fetcher, PAUSE};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Plans until the fetcher is closed: the replica with the fewest rows ahead first.
pub(super) fn run(fetcher: &Arc<Fetcher>) {
    let caches = fetcher.config.splits.caches();
    let mut writable = caches.clone();
    let new = || (!caches.is_empty()).then(|| Lookahead::new(fetcher.clone(), caches.clone()));
    let mut lookaheads: Vec<_> = fetcher.config.ranks.iter().map(|_| new()).collect();
    let mut planner = Planner::new(fetcher.config.clone());
    let mut state = fetcher.lock();
    while !state.closed {
        let next = state.replicas.iter().enumerate();
        let next = next.filter(|(_, ahead)| ahead.next.is_some() && !ahead.refused && fetcher.has_room(ahead));
        let Some((replica, ahead)) = next.min_by_key(|(_, ahead)| ahead.rows.len()) else {
            // A worker whose row is not planned yet need not wait for it.
            fetcher.changed.notify_all();
            let refused = state.replicas.iter().any(|ahead| ahead.refused);
            state = if refused || fetcher.filling.load(Ordering::Relaxed) > 0 {
                fetcher.changed.wait_timeout(state, PAUSE).unwrap_or_else(PoisonError::into_inner).0
            } else {
                fetcher.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            };
            state.replicas.iter_mut().for_each(|ahead| ahead.refused = false);
            continue;
        };
        let (generation, Some(from)) = (ahead.generation, ahead.next) else { continue };
        let read = ahead.rows.iter().find(|planned| planned.is_open()).map(|planned| planned.row.key);
        drop(state);
        let planned = match &mut lookaheads[replica] {
            None => {
                planner.start(fetcher, replica, generation, from);
                true
            }
            Some(lookahead) => {
                lookahead.begin(from, read);
                lookahead.start(&mut planner, replica, generation)
            }
        };
        writable.retain(|cache| cache.failure().inspect(|problem| fetcher.report(cache, problem)).is_none());
        state = fetcher.lock();
        state.replicas[replica].refused = !planned;
    }
}
