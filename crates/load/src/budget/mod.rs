//! The memory budget: the plan that divides a budget, and the reservations of this process's loaders. The limits of the
//! system and the admission of scratch memory in bytes are those of `shardtool-host`.

mod memory_plan;
mod reservation;

pub(crate) use memory_plan::Demand;
pub use memory_plan::MemoryPlan;
pub(crate) use reservation::{Live, Reservation};
pub(crate) use shardtool_host::system_memory::SystemLimits;
pub use shardtool_host::system_memory::{Limit, LimitSource, Usage};
