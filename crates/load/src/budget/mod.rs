//! The memory budget: the plan that divides a budget, and the reservations of this process's loaders. The limits of the
//! system and the admission of scratch memory in bytes are those of `shardtool-decode`.

mod memory_plan;
mod reservation;

pub use memory_plan::MemoryPlan;
pub(crate) use memory_plan::{Demand, MIN_BATCHES};
pub(crate) use reservation::{Live, Reservation};
pub(crate) use shardtool_decode::scratch_pool::{Admitted, ScratchPool};
pub(crate) use shardtool_decode::system_memory::SystemLimits;
pub use shardtool_decode::system_memory::{Limit, LimitSource, Usage};
