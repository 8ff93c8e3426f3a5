//! The scheduled source of a configuration: its members as ids, its stages as positions and whole weights.

mod numbers;

use crate::classes::{class_names, labels};
use crate::error::{Error, Result, StageProblem};
use crate::options::{Classes, MemberStage, Members, Stages};
use crate::splits::Splits;
use crate::stats::MemberStats;
use numbers::{start, whole_weights};
use shardtool_order::{Member, Scheduled, Source, StageWeights};
use shardtool_read::Split;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

/// A stage of a scheduled source.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PlannedStage {
    /// The position of the run at which it begins: the number of samples before it, of all replicas.
    pub start: u64,
    /// The epoch in which that position is, and the position in the epoch.
    pub at: (u64, u64),
    /// Of each member that has a share: its name, and the share, above 0 and at most 1.
    pub shares: Vec<(String, f64)>,
}

/// A scheduled source, and what its members are called.
#[derive(Debug, Clone)]
pub(crate) struct NamedMembers {
    pub(crate) source: Scheduled,
    /// In the order in which the user names members: those without a weight, too.
    shown: Vec<ShownMember>,
}

/// A member as the user sees it.
#[derive(Debug, Clone)]
struct ShownMember {
    name: String,
    /// Samples of the member.
    len: u64,
    /// Its number in the source; `None` if no stage uses it.
    number: Option<usize>,
}

impl NamedMembers {
    /// Returns the members of a source that is scheduled, which have numbers only.
    pub(crate) fn of_source(source: &Source) -> Option<Self> {
        let Source::Scheduled(source) = source else { return None };
        let shown = source.members().iter().enumerate().map(|(number, member)| ShownMember {
            name: format!("member {number}"),
            len: member.len(),
            number: Some(number),
        });
        Some(NamedMembers { source: source.clone(), shown: shown.collect() })
    }

    /// Returns what each member has had when the run has delivered everything before position p of an epoch.
    pub(crate) fn stats(&self, seed: u64, (epoch, p): (u64, u64)) -> Vec<MemberStats> {
        let p = p.min(self.source.draws());
        let weights = self.source.weights(self.source.stage_at(epoch, p));
        let sum: u64 = weights.iter().sum();
        let counts = self.source.counts(seed, epoch, p);
        let stats = |member: &ShownMember| MemberStats {
            name: member.name.clone(),
            len: member.len,
            samples: member.number.map_or(0, |number| u64::try_from(counts[number]).unwrap_or(u64::MAX)),
            share: member.number.map_or(0.0, |number| weights[number] as f64 / sum as f64),
        };
        self.shown.iter().map(stats).collect()
    }

    /// Returns the stages, each with its members.
    pub(crate) fn stages(&self) -> Vec<PlannedStage> {
        let stage = |(number, start): (usize, u64)| {
            let weights = self.source.weights(number);
            let sum: u64 = weights.iter().sum();
            let weighted = self.shown.iter().filter_map(|member| Some((member, weights[member.number?])));
            let shares = weighted.filter(|(_, weight)| *weight > 0);
            let shares = shares.map(|(member, weight)| (member.name.clone(), weight as f64 / sum as f64)).collect();
            let draws = self.source.draws().max(1);
            PlannedStage { start, at: (start / draws, start % draws), shares }
        };
        self.source.starts().enumerate().map(stage).collect()
    }

    /// Resolves the stages of a configuration over its splits.
    pub(crate) fn resolve(stages: &Stages, splits: &Splits, classes: &Classes) -> Result<Self> {
        let draws = stages.draws.unwrap_or(splits.len());
        let whole = Whole::new(&stages.members, splits, classes)?;
        if whole.0.is_empty() {
            return Err(StageProblem::NoMembers.into());
        }
        let mut used = Used { whole: &whole, splits, found: vec![], places: HashMap::new(), matching: BTreeMap::new() };
        let mut weighted: Vec<(u64, Vec<u64>)> = Vec::with_capacity(stages.stages.len());
        for (number, stage) in stages.stages.iter().enumerate() {
            let start = start(number, stage.start, draws, stages.epochs)?;
            let problem = match weighted.last() {
                None if start > 0 => Some("is not 0, where the first stage of the list begins"),
                Some((before, _)) if start <= *before => Some("is not after the stage before it in the list"),
                _ => None,
            };
            if let Some(problem) = problem {
                return Err(StageProblem::Start { stage: number, start: stage.start, problem }.into());
            }
            weighted.push((start, used.weights(number, stage)?));
        }
        // A stage has a weight for each member that a later one has added.
        let stages: Vec<StageWeights> = weighted
            .into_iter()
            .map(|(start, mut weights)| {
                weights.resize(used.found.len(), 0);
                StageWeights { start, weights }
            })
            .collect();
        let shown = shown(&whole, &used.found);
        let members = used.found.into_iter().map(|found| found.member).collect();
        Ok(NamedMembers { source: Scheduled::new(members, &stages, draws, splits.len())?, shown })
    }
}

/// The members as they are without the conditions of stages, each with its name.
struct Whole(Vec<(String, Member)>);

impl Whole {
    fn new(members: &Members, splits: &Splits, classes: &Classes) -> Result<Self> {
        Ok(Whole(match members {
            Members::Splits => {
                let names = split_names(splits.as_slice());
                names.into_iter().zip(splits.ids()).map(|(name, ids)| (name, range(ids))).collect()
            }
            Members::Classes => {
                let (names, labels) = (class_names(splits.as_slice(), classes)?, labels(splits.as_slice(), classes)?);
                // Labels without names may be any numbers, of which a list has as many as occur.
                let mut lists: BTreeMap<i64, Vec<u64>> = (0..).zip(&names).map(|(label, _)| (label, vec![])).collect();
                for (id, label) in (0..).zip(labels).filter(|(_, label)| *label >= 0) {
                    lists.entry(label).or_default().push(id);
                }
                let name = |label: i64| {
                    let name = usize::try_from(label).ok().and_then(|label| names.get(label));
                    name.cloned().unwrap_or_else(|| format!("class {label}"))
                };
                lists.into_iter().map(|(label, ids)| (name(label), Member::List(ids.into()))).collect()
            }
            Members::Lists(lists) => {
                let name = |number: usize| format!("list {number}");
                let samples = splits.len();
                for (number, ids) in lists.iter().enumerate() {
                    if let Some(&id) = ids.iter().find(|id| **id >= samples) {
                        return Err(StageProblem::ListedId { member: name(number), id, samples }.into());
                    }
                }
                lists.iter().enumerate().map(|(i, ids)| (name(i), Member::List(ids.clone().into()))).collect()
            }
        }))
    }
}

/// Returns a name for each split: the last part of its folder, or the whole of it if several have that, and the split; a split that is
/// given twice gets a number.
fn split_names(splits: &[Split]) -> Vec<String> {
    let short = |split: &Split| {
        let folder = split.folder().file_name().map_or_else(String::new, |name| format!("{}/", name.to_string_lossy()));
        format!("{folder}{}", split.name())
    };
    let is_unique = |name: &String| splits.iter().filter(|split| short(split) == *name).count() == 1;
    let mut names: Vec<String> = vec![];
    for split in splits {
        let name = Some(short(split)).filter(is_unique);
        let name = name.unwrap_or_else(|| format!("{}/{}", split.folder().display(), split.name()));
        let earlier = names.iter().filter(|other| **other == name || other.starts_with(&format!("{name} ("))).count();
        names.push(if earlier == 0 { name } else { format!("{name} ({})", earlier + 1) });
    }
    names
}

fn range(ids: std::ops::Range<u64>) -> Member {
    Member::Range { first: ids.start, len: ids.end - ids.start }
}

/// A member that a stage uses.
struct Found {
    /// Which of the whole members it is, or a part of.
    whole: usize,
    name: String,
    member: Member,
}

/// Returns the members as the user sees them: of each whole member what stages use of it, or itself if none uses it.
fn shown(whole: &Whole, found: &[Found]) -> Vec<ShownMember> {
    let mut parts: Vec<Vec<ShownMember>> = whole.0.iter().map(|_| vec![]).collect();
    for (number, found) in found.iter().enumerate() {
        let (name, len) = (found.name.clone(), found.member.len());
        parts[found.whole].push(ShownMember { name, len, number: Some(number) });
    }
    for (parts, (name, member)) in parts.iter_mut().zip(&whole.0).filter(|(parts, _)| parts.is_empty()) {
        parts.push(ShownMember { name: name.clone(), len: member.len(), number: None });
    }
    parts.into_iter().flatten().collect()
}

/// The members that stages use, in the order of their first use: those that later stages add follow, so that a run may be resumed
/// with more of them.
struct Used<'a> {
    whole: &'a Whole,
    splits: &'a Splits,
    found: Vec<Found>,
    /// The place in `found` of a whole member and conditions.
    places: HashMap<(usize, Vec<String>), usize>,
    /// Of a split and conditions, the ids that meet them.
    matching: BTreeMap<(usize, Vec<String>), Vec<u64>>,
}

impl Used<'_> {
    /// Returns the weights of a stage for the members found so far.
    fn weights(&mut self, number: usize, stage: &MemberStage) -> Result<Vec<u64>> {
        let members = &self.whole.0;
        if stage.weights.len() != members.len() {
            let names = members.iter().map(|(name, _)| name.clone()).collect();
            return Err(StageProblem::Weights { stage: number, weights: stage.weights.len(), members: names }.into());
        }
        let whole = whole_weights(number, &stage.weights, |at| members[at].0.clone())?;
        let mut weights = vec![0; self.found.len()];
        for (at, weight) in whole.into_iter().enumerate().filter(|(_, weight)| *weight > 0) {
            let place = self.place(number, at, &stage.conditions)?;
            weights.resize(self.found.len(), 0);
            weights[place] = weight;
        }
        Ok(weights)
    }

    /// Returns the place of a member that meets the conditions.
    fn place(&mut self, stage: usize, whole: usize, conditions: &[String]) -> Result<usize> {
        // Their order does not matter.
        let mut sorted = conditions.to_vec();
        sorted.sort();
        sorted.dedup();
        let key = (whole, sorted);
        if let Some(place) = self.places.get(&key) {
            return Ok(*place);
        }
        let (name, member) = &self.whole.0[whole];
        let (mut name, mut member) = (name.clone(), member.clone());
        if !conditions.is_empty() {
            name = format!("{name} where {}", conditions.join(" and "));
            member = self.meeting(stage, &member, conditions)?;
        }
        if member.len() == 0 {
            return Err(StageProblem::Empty { stage, member: name }.into());
        }
        self.places.insert(key, self.found.len());
        self.found.push(Found { whole, name, member });
        Ok(self.found.len() - 1)
    }

    /// Returns the samples of a member that meet conditions, in its order.
    fn meeting(&mut self, stage: usize, member: &Member, conditions: &[String]) -> Result<Member> {
        let mut ids = vec![];
        for number in 0..self.splits.as_slice().len() {
            let split_ids = self.splits.ids().nth(number).unwrap_or_default();
            let concerned = match member {
                // An empty member is of no split, although one may begin there.
                Member::Range { first, len } => *len > 0 && split_ids.contains(first),
                Member::List(list) => list.iter().any(|id| split_ids.contains(id)),
            };
            if concerned {
                ids.extend_from_slice(self.matching(stage, number, split_ids.start, conditions)?);
            }
        }
        Ok(Member::List(match member {
            Member::Range { .. } => ids.into(),
            Member::List(list) => list.iter().copied().filter(|id| ids.binary_search(id).is_ok()).collect(),
        }))
    }

    /// Returns the ids of a split that meet conditions, ascending; they count from the split's first.
    fn matching(&mut self, stage: usize, number: usize, first: u64, conditions: &[String]) -> Result<&[u64]> {
        Ok(match self.matching.entry((number, conditions.to_vec())) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(place) => {
                let split = &self.splits.as_slice()[number];
                let own = split.matching(conditions.iter().map(String::as_str)).map_err(|error| match error {
                    shardtool_read::Error::Condition { condition, source } => {
                        StageProblem::Condition { stage, condition, problem: source }.into()
                    }
                    error => Error::from(error),
                })?;
                place.insert(own.into_iter().map(|id| first + id).collect())
            }
        })
    }
}
