//! Rank and world size of this process: given, or read from the launcher's environment variables.

use std::fmt;

use crate::{Error, Replica};

/// The source of rank and world size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Launcher {
    /// Given as arguments.
    Given,
    /// torchrun, or another launcher that sets RANK and WORLD_SIZE.
    Torch,
    /// Open MPI's mpirun.
    OpenMpi,
    /// MPICH's or Intel MPI's mpiexec, or another one that sets PMI_RANK and PMI_SIZE.
    Mpich,
    /// SLURM's srun.
    Slurm,
    /// No launcher: the only replica.
    None,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Launcher::Given => "as given",
            Launcher::Torch => "from RANK and WORLD_SIZE",
            Launcher::OpenMpi => "from OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE",
            Launcher::Mpich => "from PMI_RANK and PMI_SIZE",
            Launcher::Slurm => "from SLURM_PROCID and SLURM_STEP_NUM_TASKS",
            Launcher::None => "no launcher",
        })
    }
}

/// Variables that look like a launcher's and were not used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ignored {
    /// One variable of a pair without the other.
    Half {
        /// Name and value of the variable that is set.
        present: (&'static str, String),
        /// The variable that is not set.
        missing: &'static str,
    },
    /// SLURM allocated several tasks, and this process is not one that srun started.
    SlurmOutsideStep {
        /// Value of SLURM_NTASKS.
        tasks: String,
    },
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ignored::Half { present: (name, value), missing } => write!(
                f,
                "{name}={value} is ignored because {missing} is not set: set both, or give rank and world size"
            ),
            Ignored::SlurmOutsideStep { tasks } => write!(
                f,
                "SLURM_NTASKS={tasks} is ignored because this process is not part of a SLURM step (no SLURM_STEP_ID): start \
                 it with srun, or give rank and world size"
            ),
        }
    }
}

/// How this process was started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Launch {
    /// This process's replica.
    pub replica: Replica,
    /// Number of replicas on this machine, which share its memory and processors, 1 to world size; `None` if unknown.
    pub local_world: Option<u32>,
    /// The source of `replica`.
    pub launcher: Launcher,
    /// Variables that were not used although they look like a launcher's.
    pub ignored: Vec<Ignored>,
}

impl Launch {
    /// Reads the environment of this process.
    ///
    /// # Errors
    /// As [`Launch::from_env`].
    pub fn of_process() -> Result<Self, Error> {
        Self::from_env(None, |name| std::env::var(name).ok())
    }

    /// Reads the environment through `lookup`, which returns a variable's value.
    ///
    /// If `given` is present, it is used: the environment then only gives the number of replicas on this machine, and is
    /// never an error. Otherwise the innermost launcher is used: RANK and WORLD_SIZE, then the variables of Open MPI, of MPICH,
    /// and of SLURM. An outer launcher may differ only if it started the inner one: it is a single task, or one task for each
    /// machine (its world size × the local world size = the world size), or fewer tasks of SLURM than processes of Open MPI
    /// or MPICH, which start their daemons by srun; or torchrun ran (TORCHELASTIC_RUN_ID). SLURM's variables are used only in a process
    /// that srun started (SLURM_STEP_ID), with the number of tasks of the step: a batch script and an interactive shell have
    /// SLURM_PROCID and SLURM_NTASKS as well. One variable of a pair without the other is ignored, and listed in
    /// [`Launch::ignored`].
    ///
    /// # Errors
    /// A value that is not a number or out of range, or launchers that contradict each other.
    pub fn from_env(given: Option<Replica>, lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        if let Some(replica) = given {
            let local_world = local_world_of(replica, &lookup);
            return Ok(Launch { replica, local_world, launcher: Launcher::Given, ignored: vec![] });
        }
        let mut ignored = vec![];
        let claims = claims(&lookup, &mut ignored)?;
        let Some((inner, outer)) = claims.split_first() else {
            let (replica, launcher) = (Replica::SINGLE, Launcher::None);
            return Ok(Launch { replica, local_world: Some(1), launcher, ignored });
        };
        let torchrun = inner.launcher == Launcher::Torch && lookup("TORCHELASTIC_RUN_ID").is_some();
        for claim in outer {
            if !torchrun && !inner.may_run_inside(claim) {
                return Err(inner.contradiction(claim));
            }
        }
        let agreeing = outer.iter().filter(|c| c.replica == inner.replica);
        let local_world = std::iter::once(inner).chain(agreeing).find_map(|c| c.local_world);
        let local_world = local_world.or_else(|| all_local(inner.replica, &lookup));
        Ok(Launch { replica: inner.replica, local_world, launcher: inner.launcher, ignored })
    }
}

/// Returns the number of replicas on this machine if rank and world size were given: the first number that a launcher
/// set, if it is valid, otherwise from the rendezvous address.
fn local_world_of(replica: Replica, lookup: &impl Fn(&str) -> Option<String>) -> Option<u32> {
    let torch = number("LOCAL_WORLD_SIZE", lookup).ok().flatten();
    let open_mpi = || number("OMPI_COMM_WORLD_LOCAL_SIZE", lookup).ok().flatten();
    let mpich = || number(MPICH_LOCAL_WORLD, lookup).ok().flatten();
    let slurm = || in_slurm_step(lookup).then(|| slurm_local_world(lookup).ok().flatten()).flatten();
    let local =
        torch.or_else(open_mpi).or_else(mpich).or_else(slurm).filter(|local| (1..=replica.world()).contains(local));
    local.or_else(|| all_local(replica, lookup))
}

/// Returns the world size if the rendezvous address is this machine's loopback address.
fn all_local(replica: Replica, lookup: &impl Fn(&str) -> Option<String>) -> Option<u32> {
    let address = lookup("MASTER_ADDR")?;
    ["127.0.0.1", "localhost", "::1"].contains(&address.as_str()).then_some(replica.world())
}

/// Returns whether srun started this process. Batch scripts and interactive shells have no step number, or one of the
/// reserved numbers at the upper end (SLURM's `slurm.h`: SLURM_BATCH_SCRIPT, SLURM_INTERACTIVE_STEP and others).
fn in_slurm_step(lookup: &impl Fn(&str) -> Option<String>) -> bool {
    const RESERVED: u32 = 0xffff_fff0;
    number("SLURM_STEP_ID", lookup).ok().flatten().is_some_and(|step| step < RESERVED)
}

/// Rank and world size according to one launcher.
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
const MPICH: Names = Names { rank: "PMI_RANK", world: "PMI_SIZE" };
/// Processes on this machine, as Hydra, the launcher of MPICH and Intel MPI, sets it.
const MPICH_LOCAL_WORLD: &str = "MPI_LOCALNRANKS";
const SLURM: Names = Names { rank: "SLURM_PROCID", world: "SLURM_STEP_NUM_TASKS" };

impl Claim {
    fn may_run_inside(&self, outer: &Claim) -> bool {
        let tasks = outer.replica.world();
        let one_per_machine = self.local_world.is_some_and(|local| {
            tasks < self.replica.world() && u64::from(tasks) * u64::from(local) == u64::from(self.replica.world())
        });
        // Open MPI and MPICH start their daemons by srun, on the machines other than the first.
        let daemons = matches!(self.launcher, Launcher::OpenMpi | Launcher::Mpich)
            && outer.launcher == Launcher::Slurm
            && tasks < self.replica.world();
        self.replica == outer.replica || tasks == 1 || one_per_machine || daemons
    }

    fn contradiction(&self, outer: &Claim) -> Error {
        let (a, b) = (self.replica, outer.replica);
        let (first, first_value, second, second_value) = if a.world() != b.world() {
            (self.names.world, a.world(), outer.names.world, b.world())
        } else {
            (self.names.rank, a.rank(), outer.names.rank, b.rank())
        };
        Error::Contradiction { first, first_value, second, second_value }
    }
}

/// Returns the claims of all launchers, the innermost first.
fn claims(lookup: &impl Fn(&str) -> Option<String>, ignored: &mut Vec<Ignored>) -> Result<Vec<Claim>, Error> {
    let mut claims = Vec::new();
    if let Some(replica) = pair(TORCH, lookup, ignored)? {
        let local = number("LOCAL_WORLD_SIZE", lookup)?;
        claims.push(Claim { launcher: Launcher::Torch, names: TORCH, replica, local_world: local });
    }
    if let Some(replica) = pair(OPEN_MPI, lookup, ignored)? {
        let local = number("OMPI_COMM_WORLD_LOCAL_SIZE", lookup)?;
        claims.push(Claim { launcher: Launcher::OpenMpi, names: OPEN_MPI, replica, local_world: local });
    }
    let step = if in_slurm_step(lookup) { pair(SLURM, lookup, ignored)? } else { None };
    // With PMI2, srun sets the variables of MPICH as well.
    if let Some(replica) = pair(MPICH, lookup, ignored)?.filter(|replica| Some(*replica) != step) {
        let local = number(MPICH_LOCAL_WORLD, lookup)?;
        claims.push(Claim { launcher: Launcher::Mpich, names: MPICH, replica, local_world: local });
    }
    if in_slurm_step(lookup) {
        if let Some(replica) = step {
            let local = slurm_local_world(lookup)?;
            claims.push(Claim { launcher: Launcher::Slurm, names: SLURM, replica, local_world: local });
        }
    } else if claims.is_empty()
        && let Some(tasks) = lookup("SLURM_NTASKS").filter(|tasks| tasks.trim() != "1")
    {
        ignored.push(Ignored::SlurmOutsideStep { tasks });
    }
    for Claim { local_world, replica, .. } in &claims {
        if let Some(local) = *local_world
            && !(1..=replica.world()).contains(&local)
        {
            return Err(Error::LocalWorld { local, world: replica.world() });
        }
    }
    Ok(claims)
}

fn pair(
    names: Names,
    lookup: &impl Fn(&str) -> Option<String>,
    ignored: &mut Vec<Ignored>,
) -> Result<Option<Replica>, Error> {
    let mut half = |present: &'static str, missing| {
        ignored.push(Ignored::Half { present: (present, lookup(present).unwrap_or_default()), missing });
        Ok(None)
    };
    match (lookup(names.rank).is_some(), lookup(names.world).is_some()) {
        (true, false) => half(names.rank, names.world),
        (false, true) => half(names.world, names.rank),
        _ => {
            let (rank, world) = (number(names.rank, lookup)?, number(names.world, lookup)?);
            rank.zip(world).map(|(rank, world)| Replica::new(rank, world)).transpose()
        }
    }
}

fn number(name: &'static str, lookup: &impl Fn(&str) -> Option<String>) -> Result<Option<u32>, Error> {
    let Some(value) = lookup(name) else { return Ok(None) };
    match value.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => Err(Error::Variable { name, value, expected: "a whole number below 2^32" }),
    }
}

/// Returns the number of tasks on this node, from lists such as `4(x2),3`: four tasks on each of two nodes, three on the next.
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
