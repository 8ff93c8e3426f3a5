//! Lets one call of a command fail, or kills it at some time, and checks what is left and that the next run completes.

use crate::commands::{ATTEMPTS, READS_AROUND, Writing};
use crate::tracer::{End, Fault, Run, run};
use crate::tree::{Node, Tree, copy, differences, is_final, snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A command and how it behaves without a fault.
pub(crate) struct Subject<'a> {
    writing: &'a Writing,
    /// The inputs, the folder of a run, and its output.
    template: PathBuf,
    work: PathBuf,
    output: PathBuf,
    /// How long a run takes.
    took: Duration,
    /// Exit status and files after a run, and after another one.
    status: i32,
    after: Tree,
    status_again: i32,
    after_again: Tree,
    /// The contents that each final name has at any moment of a run; `None` if it is absent.
    moments: BTreeMap<PathBuf, BTreeSet<Option<Node>>>,
}

impl<'a> Subject<'a> {
    /// Makes the inputs of a command in `folder`, and runs it there without a fault.
    pub(crate) fn new(writing: &'a Writing, folder: &Path) -> Self {
        let (template, work, output) = (folder.join("template"), folder.join("work"), folder.join("output"));
        fs::create_dir_all(&template).unwrap();
        (writing.inputs)(&template);
        copy(&template, &work).unwrap();
        let started = Instant::now();
        command(writing, &work, &output).status().unwrap();
        let took = started.elapsed();
        copy(&template, &work).unwrap();
        let mut trees = vec![snapshot(&work)];
        let end = run(&mut command(writing, &work, &output), None, &mut || trees.push(snapshot(&work))).end;
        let after = snapshot(&work);
        trees.push(after.clone());
        let names: BTreeSet<_> = trees.iter().flat_map(Tree::keys).filter(|path| is_final(path)).cloned().collect();
        let contents = |path: &PathBuf| trees.iter().map(|tree| tree.get(path).cloned()).collect();
        let moments = names.into_iter().map(|path| (path.clone(), contents(&path))).collect();
        let status = exited(writing, end);
        assert!(status < 2 && after != trees[0], "{} writes", writing.name);
        let status_again = exited(writing, run(&mut command(writing, &work, &output), None, &mut || ()).end);
        let after_again = snapshot(&work);
        assert!(status_again < 2, "{}: its complete result is refused", writing.name);
        for tree in [&after, &after_again] {
            assert_eq!(*tree, without_locks(tree.clone()), "{}: a lock is left", writing.name);
        }
        Subject { writing, template, work, output, took, status, after, status_again, after_again, moments }
    }

    /// Runs the command with a fault. Returns the call that failed, and what is wrong afterwards; `None` if it made fewer
    /// calls.
    pub(crate) fn fail(&self, nth: u64, fault: Fault) -> Option<(&'static str, Vec<String>)> {
        copy(&self.template, &self.work).unwrap();
        let Run { end, failed } = run(&mut self.command(), Some((nth, fault)), &mut || ());
        let failed = failed?;
        let left = without_locks(snapshot(&self.work));
        let mut wrong = self.check_names(&left);
        if self.writing.name == READS_AROUND && fault == Fault::Error(libc::EIO) && self.is_reported(end) {
            return Some((failed, wrong));
        }
        wrong.extend(self.check_end(end, fault));
        if end == End::Exit(self.status) {
            wrong.extend(
                differences(&self.after, &left)
                    .into_iter()
                    .map(|text| format!("exit status {}, but {text}", self.status)),
            );
        }
        wrong.extend(self.check_next(&left));
        Some((failed, wrong))
    }

    /// Runs the command with two jobs, and kills it after `share` of the time that a run takes. Returns what is wrong
    /// afterwards.
    pub(crate) fn kill(&self, share: f64) -> Vec<String> {
        copy(&self.template, &self.work).unwrap();
        let mut process =
            self.writing.parallel(&self.work).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(self.took.mul_f64(share));
        process.kill().unwrap();
        process.wait().unwrap();
        let left = without_locks(snapshot(&self.work));
        let mut wrong = self.check_names(&left);
        wrong.extend(self.check_next(&left));
        wrong
    }

    /// Returns whether the command found records that it could not read, and said so.
    fn is_reported(&self, end: End) -> bool {
        let message = fs::read_to_string(&self.output).unwrap_or_default();
        end == End::Exit(1) && message.contains("not written: ") && message.contains("(os error 5)")
    }

    fn check_end(&self, end: End, fault: Fault) -> Vec<String> {
        let message = fs::read_to_string(&self.output).unwrap_or_default();
        let mut wrong = vec![];
        match end {
            End::Exit(code) if code == self.status => {}
            End::Exit(2) if !message.contains("error: ") => wrong.push("exit status 2 without a message".to_owned()),
            End::Exit(2) => {}
            End::Signal(libc::SIGKILL) if fault == Fault::Kill => {}
            end => wrong.push(format!("{end:?}: {message}")),
        }
        if message.contains("panicked") {
            wrong.push(message);
        }
        wrong
    }

    /// Checks that no file is lost or half-written: each final name has contents that it has in a run without faults, too.
    fn check_names(&self, left: &Tree) -> Vec<String> {
        let absent = BTreeSet::from([None]);
        let names: BTreeSet<_> = left.keys().filter(|path| is_final(path)).chain(self.moments.keys()).collect();
        let unknown =
            |path: &&&PathBuf| !self.moments.get(**path).unwrap_or(&absent).contains(&left.get(**path).cloned());
        names.iter().filter(unknown).map(|path| format!("{} has contents of no moment", path.display())).collect()
    }

    /// The next run completes.
    fn check_next(&self, left: &Tree) -> Vec<String> {
        let end = run(&mut self.command(), None, &mut || ()).end;
        let mut found = without_locks(snapshot(&self.work));
        if ATTEMPTS.contains(&self.writing.name) {
            found.retain(|path, _| path.extension().is_none_or(|extension| extension != "tmp"));
        }
        // A run that was complete but for its last calls, such as the removal of a lock.
        let complete = finals(left) == finals(&self.after);
        if end == End::Exit(self.status) && found == self.after {
            return vec![];
        }
        if complete && end == End::Exit(self.status_again) && found == self.after_again {
            return vec![];
        }
        let message = fs::read_to_string(&self.output).unwrap_or_default();
        let mut wrong = differences(&self.after, &found);
        wrong.push(format!("{end:?}: {message}"));
        wrong.into_iter().map(|text| format!("the next run: {text}")).collect()
    }

    fn command(&self) -> Command {
        command(self.writing, &self.work, &self.output)
    }
}

fn finals(tree: &Tree) -> BTreeMap<&PathBuf, &Node> {
    tree.iter().filter(|(path, _)| is_final(path)).collect()
}

/// Leaves out the files of locks. If one cannot be removed, it stays, and the next run takes it: the system released the
/// lock itself when the process ended.
pub(crate) fn without_locks(mut tree: Tree) -> Tree {
    let is_lock = |path: &Path| !is_final(path) && path.extension().is_some_and(|extension| extension == "lock");
    tree.retain(|path, node| !(is_lock(path) && *node == Node::File(vec![])));
    tree
}

fn command(writing: &Writing, work: &Path, output: &Path) -> Command {
    let mut command = writing.command(work);
    let output = File::create(output).unwrap();
    command.stdout(output.try_clone().unwrap()).stderr(output);
    command
}

fn exited(writing: &Writing, end: End) -> i32 {
    match end {
        End::Exit(code) => code,
        end => panic!("{} without a fault: {end:?}", writing.name),
    }
}
