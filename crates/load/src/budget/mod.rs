//! The memory budget: the limits of the system, the plan that divides a budget, the reservations of this process's
//! loaders, and admission of scratch memory in bytes.

mod memory_plan;
mod reservation;
mod scratch;
mod system_limits;

pub use memory_plan::MemoryPlan;
pub(crate) use memory_plan::{DEFAULT_PREFETCH, Demand, MIN_BATCHES};
pub(crate) use reservation::{Live, Reservation};
pub(crate) use scratch::{Admitted, ScratchPool};
pub(crate) use system_limits::Limits;
pub use system_limits::{Limit, LimitSource, Usage};
