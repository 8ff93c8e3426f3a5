//! Linux.

use rustix::mm::Advice;

/// The advice to back memory by huge pages.
pub(crate) const HUGE_PAGES: Option<Advice> = Some(Advice::LinuxHugepage);
