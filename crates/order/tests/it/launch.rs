//! Rank and world size from environments as launchers leave them.

use shardtool_order::{Error, Ignored, Launch, Launcher, Replica};

fn launch(given: Option<Replica>, variables: &[(&str, &str)]) -> Result<Launch, Error> {
    Launch::from_env(given, |name| variables.iter().find(|v| v.0 == name).map(|v| v.1.to_owned()))
}

fn found(variables: &[(&str, &str)]) -> (u32, u32, Option<u32>, Launcher) {
    let l = launch(None, variables).expect("an environment without contradiction");
    (l.replica.rank(), l.replica.world(), l.local_world, l.launcher)
}

const TORCH: [(&str, &str); 3] = [("RANK", "11"), ("WORLD_SIZE", "32"), ("LOCAL_WORLD_SIZE", "8")];
const MPI: [(&str, &str); 3] =
    [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "2")];
// As Hydra sets them, with which mpiexec of MPICH and Intel MPI starts processes.
const MPICH: [(&str, &str); 3] = [("PMI_RANK", "5"), ("PMI_SIZE", "6"), ("MPI_LOCALNRANKS", "3")];
const SLURM: [(&str, &str); 5] = [
    ("SLURM_PROCID", "7"),
    ("SLURM_STEP_NUM_TASKS", "11"),
    ("SLURM_NODEID", "2"),
    ("SLURM_TASKS_PER_NODE", "4(x2),3"),
    ("SLURM_STEP_ID", "0"),
];

fn ignored(variables: &[(&str, &str)]) -> (Launch, Vec<String>) {
    let launch = launch(None, variables).expect("an environment without contradiction");
    let ignored = launch.ignored.iter().map(Ignored::to_string).collect();
    (launch, ignored)
}

#[test]
fn each_launcher_alone() {
    assert_eq!(found(&[]), (0, 1, Some(1), Launcher::None));
    assert_eq!(found(&TORCH), (11, 32, Some(8), Launcher::Torch));
    assert_eq!(found(&TORCH[..2]), (11, 32, None, Launcher::Torch));
    assert_eq!(found(&MPI), (3, 4, Some(2), Launcher::OpenMpi));
    assert_eq!(found(&MPICH), (5, 6, Some(3), Launcher::Mpich));
    assert_eq!(found(&MPICH[..2]), (5, 6, None, Launcher::Mpich));
    assert_eq!(found(&SLURM), (7, 11, Some(3), Launcher::Slurm));
    // `srun --mpi=pmi2` sets those of MPICH as well.
    let pmi = [&SLURM[..], &[("PMI_RANK", "7"), ("PMI_SIZE", "11")]].concat();
    assert_eq!(found(&pmi), (7, 11, Some(3), Launcher::Slurm));
    assert_eq!(found(&[&SLURM[..], &[("SLURM_STEP_TASKS_PER_NODE", "2(x4),1")]].concat()).2, Some(2));
}

#[test]
fn slurm_counts_only_inside_a_step() {
    // What `sbatch --ntasks=8` leaves in its script, and `salloc` in an interactive shell, which has a reserved number.
    let script = [("SLURM_NTASKS", "8"), ("SLURM_PROCID", "0"), ("SLURM_TASKS_PER_NODE", "8")];
    let shell = [&script[..], &[("SLURM_STEP_ID", "4294967290")]].concat();
    for variables in [&script[..], &shell] {
        let (launch, ignored) = ignored(variables);
        assert_eq!((launch.replica, launch.launcher), (Replica::SINGLE, Launcher::None));
        assert!(ignored[0].contains("SLURM_NTASKS=8 is ignored") && ignored[0].contains("srun"), "{ignored:?}");
    }
    assert_eq!(ignored(&[("SLURM_NTASKS", "1"), ("SLURM_PROCID", "0")]).1, [""; 0], "a single task is not reported");
    // A step that is smaller than the job.
    assert_eq!(found(&[&SLURM[..], &[("SLURM_NTASKS", "64")]].concat()), (7, 11, Some(3), Launcher::Slurm));
}

#[test]
fn one_variable_of_a_pair_is_ignored_and_listed() {
    // As Lightning's own launcher leaves it in the main process.
    let lightning = [("WORLD_SIZE", "2"), ("LOCAL_RANK", "0"), ("NODE_RANK", "0"), ("MASTER_ADDR", "127.0.0.1")];
    let (launch, listed) = ignored(&lightning);
    assert_eq!((launch.replica, launch.launcher), (Replica::SINGLE, Launcher::None));
    assert!(listed[0].contains("WORLD_SIZE=2 is ignored because RANK is not set"), "{listed:?}");
    for half in [("RANK", "3"), ("RANK", "x"), ("OMPI_COMM_WORLD_SIZE", "3")] {
        assert_eq!(ignored(&[half]).1.len(), 1);
    }
    // A complete pair of another launcher is still used.
    assert_eq!(found(&[&SLURM[..], &[("WORLD_SIZE", "2")]].concat()), (7, 11, Some(3), Launcher::Slurm));
}

#[test]
fn replicas_with_a_loopback_rendezvous_share_the_machine() {
    assert_eq!(found(&[TORCH[0], TORCH[1], ("MASTER_ADDR", "127.0.0.1")]).2, Some(32));
    assert_eq!(found(&[TORCH[0], TORCH[1], ("MASTER_ADDR", "10.0.0.7")]).2, None);
    let given = launch(Replica::new(1, 2).ok(), &[("MASTER_ADDR", "localhost")]).expect("a launch");
    assert_eq!(given.local_world, Some(2));
}

#[test]
fn given_rank_and_world_win_over_the_environment() {
    let given = Replica::new(1, 40).ok();
    let l = launch(given, &[&TORCH[..], &SLURM[..]].concat()).expect("a launch");
    assert_eq!((Some(l.replica), l.local_world, l.launcher), (given, Some(8), Launcher::Given));
    let smaller = launch(Replica::new(0, 2).ok(), &TORCH).expect("a launch");
    assert_eq!(smaller.local_world, None, "a local world size of 8 is invalid for a world size of 2");
    // Errors in the environment are ignored then.
    for wrong in [("WORLD_SIZE", "2"), ("RANK", "x"), ("LOCAL_WORLD_SIZE", "many"), ("SLURM_TASKS_PER_NODE", "(")] {
        let l = launch(given, &[wrong, ("SLURM_STEP_ID", "0")]).expect("a launch");
        assert_eq!((Some(l.replica), l.local_world, l.ignored.len()), (given, None, 0));
    }
}

#[test]
fn nested_launchers() {
    let one_task = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_STEP_ID", "0")];
    let one_a_node = [("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_STEP_ID", "0")];
    assert_eq!(found(&[&TORCH[..], &one_task].concat()).3, Launcher::Torch);
    assert_eq!(found(&[&TORCH[..], &one_a_node].concat()), (11, 32, Some(8), Launcher::Torch));
    // mpirun in a batch job of three machines: srun started the daemons on the other two.
    let mpi = [("OMPI_COMM_WORLD_RANK", "11"), ("OMPI_COMM_WORLD_SIZE", "24"), ("OMPI_COMM_WORLD_LOCAL_SIZE", "8")];
    let daemon = [("SLURM_PROCID", "0"), ("SLURM_STEP_NUM_TASKS", "2"), ("SLURM_STEP_ID", "0")];
    assert_eq!(found(&[&mpi[..], &daemon].concat()), (11, 24, Some(8), Launcher::OpenMpi));
    // The same, where srun sets the variables of PMI2 for its daemons.
    let daemon = [&daemon[..], &[("PMI_RANK", "0"), ("PMI_SIZE", "2")]].concat();
    assert_eq!(found(&[&mpi[..], &daemon].concat()), (11, 24, Some(8), Launcher::OpenMpi));
    let hydra = [&MPICH[..], &daemon[..3]].concat();
    assert_eq!(found(&hydra), (5, 6, Some(3), Launcher::Mpich));
    let elastic = [&TORCH[..], &SLURM, &[("TORCHELASTIC_RUN_ID", "none")]].concat();
    assert_eq!(found(&elastic), (11, 32, Some(8), Launcher::Torch));
    let agreeing = [&MPI[..], &[("RANK", "3"), ("WORLD_SIZE", "4")]].concat();
    assert_eq!(found(&agreeing), (3, 4, Some(2), Launcher::Torch));
}

#[test]
fn contradictions_name_both_variables_and_values() {
    let message = |variables: &[(&str, &str)]| launch(None, variables).unwrap_err().to_string();
    let worlds = message(&[&TORCH[..], &SLURM].concat());
    assert!(worlds.contains("WORLD_SIZE is 32") && worlds.contains("SLURM_STEP_NUM_TASKS is 11"), "{worlds}");
    let ranks = message(&[&MPI[..], &[("RANK", "2"), ("WORLD_SIZE", "4")]].concat());
    assert!(ranks.contains("RANK is 2") && ranks.contains("OMPI_COMM_WORLD_RANK is 3"), "{ranks}");
    let inner = message(&[&MPI[..], &SLURM].concat());
    assert!(inner.contains("OMPI_COMM_WORLD_SIZE is 4") && inner.contains("SLURM_STEP_NUM_TASKS is 11"), "{inner}");
}

#[test]
fn wrong_values_are_named() {
    let error = |variables: &[(&str, &str)]| launch(None, variables).unwrap_err();
    assert!(matches!(error(&[("RANK", "x"), ("WORLD_SIZE", "3")]), Error::Variable { name: "RANK", .. }));
    assert!(matches!(error(&[("RANK", "-1"), ("WORLD_SIZE", "3")]), Error::Variable { name: "RANK", .. }));
    assert!(matches!(error(&[("RANK", "3"), ("WORLD_SIZE", "3")]), Error::Rank { rank: 3, world: 3 }));
    assert!(matches!(error(&[("RANK", "0"), ("WORLD_SIZE", "0")]), Error::Rank { rank: 0, world: 0 }));
    for local in ["0", "33"] {
        let variables = [TORCH[0], TORCH[1], ("LOCAL_WORLD_SIZE", local)];
        assert!(matches!(error(&variables), Error::LocalWorld { world: 32, .. }));
    }
    for list in ["4(x2)", "4(x2,3", "", "a(x9)"] {
        let variables = [SLURM[0], SLURM[1], SLURM[2], SLURM[4], ("SLURM_TASKS_PER_NODE", list)];
        assert!(matches!(error(&variables), Error::Variable { name: "SLURM_TASKS_PER_NODE", .. }), "{list}");
    }
    assert!(matches!(Replica::new(4, 4), Err(Error::Rank { rank: 4, world: 4 })));
    assert_eq!(Replica::new(0, 1).ok(), Some(Replica::SINGLE));
}
