//! Which replica this process is: given, or read from what the launcher left in the environment.

use std::fmt;

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

    /// Replica `rank` of `world`, `0 <= rank < world`.
    ///
    /// # Errors
    /// [`Error::Rank`] outside that range.
    pub fn new(rank: u32, world: u32) -> Result<Self, Error> {
        if rank < world { Ok(Replica { rank, world }) } else { Err(Error::Rank { rank, world }) }
    }

    /// The replica's number, from 0.
    pub fn rank(self) -> u32 {
        self.rank
    }

    /// How many replicas there are, at least 1.
    pub fn world(self) -> u32 {
        self.world
    }
}

/// Who said which replica this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// The caller.
    Given,
    /// torchrun, or whoever else set RANK and WORLD_SIZE.
    Torch,
    /// Open MPI's mpirun.
    OpenMpi,
    /// SLURM's srun.
    Slurm,
    /// Nobody: the only replica.
    None,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Launcher::Given => "as given",
            Launcher::Torch => "from RANK and WORLD_SIZE",
            Launcher::OpenMpi => "from OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE",
            Launcher::Slurm => "from SLURM_PROCID and SLURM_NTASKS",
            Launcher::None => "no launcher",
        })
    }
}

/// What is known of how this process was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// This process's replica.
    pub replica: Replica,
    /// Replicas on this machine, which share its memory and processors, 1 to world size; `None` where the launcher
    /// does not tell.
    pub local_world: Option<u32>,
    /// Where `replica` came from.
    pub launcher: Launcher,
}

impl Launch {
    /// Reads the environment through `lookup`, which returns a variable's value; `given` wins over it.
    ///
    /// Of several launchers the innermost counts: RANK and WORLD_SIZE, then Open MPI's variables, then SLURM's. An outer
    /// one may differ only where it started the inner one: it is a single task, or one task for each machine (its world
    /// size × the local world size = the world size), or torchrun says that it ran (TORCHELASTIC_RUN_ID). SLURM
    /// without both SLURM_PROCID and SLURM_NTASKS started no tasks and is ignored. A SLURM batch script has both even
    /// where it starts its tasks by mpirun instead of srun: then give rank and world size, or unset SLURM_PROCID.
    ///
    /// # Errors
    /// A value that is no number or out of range, half of a pair, or launchers that contradict each other.
    pub fn from_env(given: Option<Replica>, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let claims = claims(&lookup)?;
        if let Some(replica) = given {
            let local_world = claims.iter().find_map(|c| c.local_world).filter(|&local| local <= replica.world);
            return Ok(Launch { replica, local_world, launcher: Launcher::Given });
        }
        let Some((inner, outer)) = claims.split_first() else {
            return Ok(Launch { replica: Replica::SINGLE, local_world: Some(1), launcher: Launcher::None });
        };
        let torchrun = inner.launcher == Launcher::Torch && lookup("TORCHELASTIC_RUN_ID").is_some();
        for claim in outer {
            if !torchrun && !inner.may_run_inside(claim) {
                return Err(inner.contradiction(claim));
            }
        }
        let agreeing = outer.iter().filter(|c| c.replica == inner.replica);
        let local_world = std::iter::once(inner).chain(agreeing).find_map(|c| c.local_world);
        Ok(Launch { replica: inner.replica, local_world, launcher: inner.launcher })
    }
}

/// What one launcher says.
struct Claim {
    launcher: Launcher,
    names: Names,
    replica: Replica,
    local_world: Option<u32>,
}

/// A launcher's variables.
#[derive(Clone, Copy)]
struct Names {
    rank: &'static str,
    world: &'static str,
}

const TORCH: Names = Names { rank: "RANK", world: "WORLD_SIZE" };
const OPEN_MPI: Names = Names { rank: "OMPI_COMM_WORLD_RANK", world: "OMPI_COMM_WORLD_SIZE" };
const SLURM: Names = Names { rank: "SLURM_PROCID", world: "SLURM_NTASKS" };

impl Claim {
    fn may_run_inside(&self, outer: &Claim) -> bool {
        let tasks = outer.replica.world;
        let one_a_machine = self.local_world.is_some_and(|local| {
            tasks < self.replica.world && u64::from(tasks) * u64::from(local) == u64::from(self.replica.world)
        });
        self.replica == outer.replica || tasks == 1 || one_a_machine
    }

    fn contradiction(&self, outer: &Claim) -> Error {
        let (a, b) = (self.replica, outer.replica);
        let (first, first_value, second, second_value) = if a.world != b.world {
            (self.names.world, a.world, outer.names.world, b.world)
        } else {
            (self.names.rank, a.rank, outer.names.rank, b.rank)
        };
        Error::Contradiction { first, first_value, second, second_value }
    }
}

/// What the launchers say, the innermost first.
fn claims(lookup: &impl Fn(&str) -> Option<String>) -> Result<Vec<Claim>, Error> {
    let mut claims = Vec::new();
    if let Some(replica) = pair(TORCH, lookup)? {
        let local = number("LOCAL_WORLD_SIZE", lookup)?;
        claims.push(Claim { launcher: Launcher::Torch, names: TORCH, replica, local_world: local });
    }
    if let Some(replica) = pair(OPEN_MPI, lookup)? {
        let local = number("OMPI_COMM_WORLD_LOCAL_SIZE", lookup)?;
        claims.push(Claim { launcher: Launcher::OpenMpi, names: OPEN_MPI, replica, local_world: local });
    }
    if lookup(SLURM.rank).is_some()
        && lookup(SLURM.world).is_some()
        && let Some(replica) = pair(SLURM, lookup)?
    {
        let local = slurm_local_world(lookup)?;
        claims.push(Claim { launcher: Launcher::Slurm, names: SLURM, replica, local_world: local });
    }
    for Claim { local_world, replica, .. } in &claims {
        if let Some(local) = *local_world
            && !(1..=replica.world).contains(&local)
        {
            return Err(Error::LocalWorld { local, world: replica.world });
        }
    }
    Ok(claims)
}

fn pair(names: Names, lookup: &impl Fn(&str) -> Option<String>) -> Result<Option<Replica>, Error> {
    match (number(names.rank, lookup)?, number(names.world, lookup)?) {
        (Some(rank), Some(world)) => Replica::new(rank, world).map(Some),
        (Some(_), None) => Err(Error::MissingVariable { present: names.rank, missing: names.world }),
        (None, Some(_)) => Err(Error::MissingVariable { present: names.world, missing: names.rank }),
        (None, None) => Ok(None),
    }
}

fn number(name: &'static str, lookup: &impl Fn(&str) -> Option<String>) -> Result<Option<u32>, Error> {
    let Some(value) = lookup(name) else { return Ok(None) };
    match value.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Error::Variable { name, value, expected: "a whole number below 2^32" }),
    }
}

/// Tasks on this node, from lists such as `4(x2),3`: four tasks on each of two nodes, three on the next.
fn slurm_local_world(lookup: &impl Fn(&str) -> Option<String>) -> Result<Option<u32>, Error> {
    let node = number("SLURM_NODEID", lookup)?.unwrap_or(0);
    for name in ["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"] {
        if let Some(value) = lookup(name) {
            return match tasks_of_node(&value, node) {
                Some(tasks) => Ok(Some(tasks)),
                None => Err(Error::Variable { name, value, expected: "tasks for each node, such as 4(x2),3" }),
            };
        }
    }
    Ok(None)
}

fn tasks_of_node(list: &str, node: u32) -> Option<u32> {
    let mut left = node;
    for item in list.split(',') {
        let (tasks, nodes) = match item.trim().split_once("(x") {
            Some((tasks, nodes)) => (tasks, nodes.strip_suffix(')')?.parse::<u32>().ok()?),
            None => (item.trim(), 1),
        };
        if left < nodes {
            return tasks.parse().ok();
        }
        left -= nodes;
    }
    None
}
