//! The memory budget: the limits of the system, the plan that divides a budget, what the loaders of this process reserve,
//! and scratch memory admitted in bytes.

mod limit;
mod plan;
mod reservation;
mod scratch;

pub(crate) use limit::Limits;
pub use limit::{Limit, LimitSource, Usage};
pub use plan::MemoryPlan;
pub(crate) use plan::{DEFAULT_PREFETCH, Demand, MIN_BATCHES};
pub(crate) use reservation::{Live, Reservation};
pub(crate) use scratch::{Admitted, ScratchPool};
