//! Any Unix.

use rustix::mm::Advice;

/// None: the system decides.
pub(crate) const HUGE_PAGES: Option<Advice> = None;
