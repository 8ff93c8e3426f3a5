//! Rank and world size from environments as launchers leave them.

use shardtool_order::{Error, Launch, Launcher, Replica};

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
const SLURM: [(&str, &str); 4] =
    [("SLURM_PROCID", "7"), ("SLURM_NTASKS", "11"), ("SLURM_NODEID", "2"), ("SLURM_TASKS_PER_NODE", "4(x2),3")];

#[test]
fn each_launcher_alone() {
    assert_eq!(found(&[]), (0, 1, Some(1), Launcher::None));
    assert_eq!(found(&TORCH), (11, 32, Some(8), Launcher::Torch));
    assert_eq!(found(&TORCH[..2]), (11, 32, None, Launcher::Torch));
    assert_eq!(found(&MPI), (3, 4, Some(2), Launcher::OpenMpi));
    assert_eq!(found(&SLURM), (7, 11, Some(3), Launcher::Slurm));
    assert_eq!(found(&[&SLURM[..], &[("SLURM_STEP_TASKS_PER_NODE", "2(x4),1")]].concat()).2, Some(2));
    assert_eq!(found(&SLURM[..1]), (0, 1, Some(1), Launcher::None), "a batch script that started no tasks");
}

#[test]
fn explicit_wins_over_everything() {
    let given = Replica::new(1, 40).ok();
    let l = launch(given, &[&TORCH[..], &SLURM[..]].concat()).expect("a launch");
    assert_eq!((Some(l.replica), l.local_world, l.launcher), (given, Some(8), Launcher::Given));
    let smaller = launch(Replica::new(0, 2).ok(), &TORCH).expect("a launch");
    assert_eq!(smaller.local_world, None, "eight replicas on this machine cannot be of two");
}

#[test]
fn launchers_inside_launchers() {
    let one_task = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")];
    let one_a_node = [("SLURM_PROCID", "1"), ("SLURM_NTASKS", "4")];
    assert_eq!(found(&[&TORCH[..], &one_task].concat()).3, Launcher::Torch);
    assert_eq!(found(&[&TORCH[..], &one_a_node].concat()), (11, 32, Some(8), Launcher::Torch));
    let elastic = [&TORCH[..], &SLURM, &[("TORCHELASTIC_RUN_ID", "none")]].concat();
    assert_eq!(found(&elastic), (11, 32, Some(8), Launcher::Torch));
    let agreeing = [&MPI[..], &[("RANK", "3"), ("WORLD_SIZE", "4")]].concat();
    assert_eq!(found(&agreeing), (3, 4, Some(2), Launcher::Torch));
}

#[test]
fn contradictions_name_both_variables_and_values() {
    let message = |variables: &[(&str, &str)]| launch(None, variables).unwrap_err().to_string();
    let worlds = message(&[&TORCH[..], &SLURM].concat());
    assert!(worlds.contains("WORLD_SIZE is 32") && worlds.contains("SLURM_NTASKS is 11"), "{worlds}");
    let ranks = message(&[&MPI[..], &[("RANK", "2"), ("WORLD_SIZE", "4")]].concat());
    assert!(ranks.contains("RANK is 2") && ranks.contains("OMPI_COMM_WORLD_RANK is 3"), "{ranks}");
    let inner = message(&[&MPI[..], &SLURM].concat());
    assert!(inner.contains("OMPI_COMM_WORLD_SIZE is 4") && inner.contains("SLURM_NTASKS is 11"), "{inner}");
}

#[test]
fn wrong_values_are_named() {
    let error = |variables: &[(&str, &str)]| launch(None, variables).unwrap_err();
    assert!(matches!(error(&[("RANK", "3")]), Error::MissingVariable { present: "RANK", missing: "WORLD_SIZE" }));
    assert!(matches!(error(&[("WORLD_SIZE", "3")]), Error::MissingVariable { present: "WORLD_SIZE", missing: "RANK" }));
    assert!(matches!(error(&[("RANK", "x"), ("WORLD_SIZE", "3")]), Error::Variable { name: "RANK", .. }));
    assert!(matches!(error(&[("RANK", "-1"), ("WORLD_SIZE", "3")]), Error::Variable { name: "RANK", .. }));
    assert!(matches!(error(&[("RANK", "3"), ("WORLD_SIZE", "3")]), Error::Rank { rank: 3, world: 3 }));
    assert!(matches!(error(&[("RANK", "0"), ("WORLD_SIZE", "0")]), Error::Rank { rank: 0, world: 0 }));
    for local in ["0", "33"] {
        let variables = [TORCH[0], TORCH[1], ("LOCAL_WORLD_SIZE", local)];
        assert!(matches!(error(&variables), Error::LocalWorld { world: 32, .. }));
    }
    for list in ["4(x2)", "4(x2,3", "", "a(x9)"] {
        let variables = [SLURM[0], SLURM[1], SLURM[2], ("SLURM_TASKS_PER_NODE", list)];
        assert!(matches!(error(&variables), Error::Variable { name: "SLURM_TASKS_PER_NODE", .. }), "{list}");
    }
    assert!(matches!(Replica::new(4, 4), Err(Error::Rank { rank: 4, world: 4 })));
    assert_eq!(Replica::new(0, 1).ok(), Some(Replica::SINGLE));
}
