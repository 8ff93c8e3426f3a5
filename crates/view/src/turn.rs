//! Work in the background, one at a time, so that no work disturbs what another measures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Gives turns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Turns(Arc<AtomicBool>);

/// A turn, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn(Turns);

impl Turns {
    /// Takes the turn; `None` while another one lasts.
    pub(crate) fn take(&self) -> Option<Turn> {
        (!self.0.swap(true, Ordering::AcqRel)).then(|| Turn(self.clone()))
    }

    /// Returns whether the turn is taken.
    pub(crate) fn is_taken(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.0.store(false, Ordering::Release);
    }
}
