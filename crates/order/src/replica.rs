//! One of the processes that share the work of an epoch: rank and world size.

use crate::Error;

/// One of several processes (or of several loaders in one process) that share the work of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Replica {
    rank: u32,
    world: u32,
}

impl Replica {
    /// The only replica.
    pub const SINGLE: Replica = Replica { rank: 0, world: 1 };

    /// Makes replica `rank` of `world`, `0 <= rank < world`.
    ///
    /// # Errors
    /// [`Error::Rank`] outside that range.
    pub fn new(rank: u32, world: u32) -> Result<Self, Error> {
        if rank < world { Ok(Replica { rank, world }) } else { Err(Error::Rank { rank, world }) }
    }

    /// Returns the rank, from 0.
    pub fn rank(self) -> u32 {
        self.rank
    }

    /// Returns the number of replicas, at least 1.
    pub fn world(self) -> u32 {
        self.world
    }
}
