//! Which part of an epoch a process takes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shardtool_order::Policy;

/// Which replicas of a distributed run a process serves, and how replicas share an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Replica")]
#[non_exhaustive]
pub struct Replicas {
    /// Number of this process, from 0. Default: from `torch.distributed` if it is initialised, else from the environment (torchrun,
    /// Open MPI, MPICH, SLURM steps).
    #[schemars(extend("x-positional" = true))]
    pub rank: Option<u32>,
    /// Number of processes; given with `rank` only.
    #[schemars(range(min = 1), extend("x-positional" = true))]
    pub world_size: Option<u32>,
    /// Number of replicas that this process serves with one set of workers and one budget; a batch then is a list of that many. If
    /// each of `world_size` processes serves that many, the replicas of process `rank` start at `rank * local_replicas`.
    #[schemars(range(min = 1))]
    pub local_replicas: Option<u32>,
    /// How replicas share an epoch: by `"sample"`, by `"shard"`, or `"off"`: each replica gets every sample.
    pub policy: Policy,
}
