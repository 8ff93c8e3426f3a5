//! The scheduled source of a configuration: its members as ids, its stages as positions and whole weights.

mod numbers;

use crate::classes::{class_names, labels};
use crate::error::{Result, StageProblem};
use crate::options::{Classes, MemberStage, Members, Stages};
use crate::splits::Splits;
use crate::stats::MemberStats;
use numbers::{start, whole_weights};
use shardtool_order::{Member, Scheduled, Source, StageWeights};
use std::collections::BTreeMap;

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
    /// One for each member.
    pub(crate) names: Vec<String>,
}

impl NamedMembers {
    /// Returns the members of a source that is scheduled, which have numbers only.
    pub(crate) fn of_source(source: &Source) -> Option<Self> {
        let Source::Scheduled(source) = source else { return None };
        let names = (0..source.members().len()).map(|number| format!("member {number}")).collect();
        Some(NamedMembers { source: source.clone(), names })
    }

    /// Returns what each member has had when the run has delivered everything before position p of an epoch.
    pub(crate) fn stats(&self, (epoch, p): (u64, u64)) -> Vec<MemberStats> {
        let p = p.min(self.source.draws());
        let weights = self.source.weights(self.source.stage_at(epoch, p));
        let sum: u64 = weights.iter().sum();
        let members = self.names.iter().zip(self.source.members()).zip(self.source.counts(epoch, p)).zip(weights);
        let stats = |(((name, member), samples), weight): (((&String, &Member), u128), &u64)| MemberStats {
            name: name.clone(),
            len: member.len(),
            samples: u64::try_from(samples).unwrap_or(u64::MAX),
            share: *weight as f64 / sum as f64,
        };
        members.map(stats).collect()
    }

    /// Returns the stages, each with its members.
    pub(crate) fn stages(&self) -> Vec<PlannedStage> {
        let stage = |(number, start): (usize, u64)| {
            let weights = self.source.weights(number);
            let sum: u64 = weights.iter().sum();
            let shares = self.names.iter().zip(weights).filter(|(_, weight)| **weight > 0);
            let shares = shares.map(|(name, weight)| (name.clone(), *weight as f64 / sum as f64)).collect();
            let draws = self.source.draws().max(1);
            PlannedStage { start, at: (start / draws, start % draws), shares }
        };
        self.source.starts().enumerate().map(stage).collect()
    }

    /// Resolves the stages of a configuration over its splits.
    pub(crate) fn resolve(stages: &Stages, splits: &Splits, classes: &Classes) -> Result<Self> {
        let draws = stages.draws.unwrap_or(splits.len());
        let whole = Whole::new(&stages.members, splits, classes)?;
        let mut used = Used { whole: &whole, splits, found: vec![], matching: BTreeMap::new() };
        let mut weighted = Vec::with_capacity(stages.stages.len());
        for (number, stage) in stages.stages.iter().enumerate() {
            let start = start(number, stage.start, draws, stages.epochs)?;
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
        let (names, members) = used.found.into_iter().map(|found| (found.name, found.member)).unzip();
        Ok(NamedMembers { source: Scheduled::new(members, &stages, draws, splits.len())?, names })
    }
}

/// The members as they are without the conditions of stages, each with its name.
struct Whole(Vec<(String, Member)>);

impl Whole {
    fn new(members: &Members, splits: &Splits, classes: &Classes) -> Result<Self> {
        Ok(Whole(match members {
            Members::Splits => {
                let ids = splits.ids();
                splits.as_slice().iter().zip(ids).map(|(split, ids)| (split_name(split), range(ids))).collect()
            }
            Members::Classes => {
                let (names, labels) = (class_names(splits.as_slice(), classes)?, labels(splits.as_slice(), classes)?);
                let most = labels.iter().copied().max().unwrap_or(-1);
                let mut lists = vec![vec![]; names.len().max(usize::try_from(most + 1).unwrap_or(0))];
                for (id, label) in (0..).zip(labels) {
                    if let Some(list) = usize::try_from(label).ok().and_then(|label| lists.get_mut(label)) {
                        list.push(id);
                    }
                }
                let name = |class: usize| names.get(class).cloned().unwrap_or_else(|| class.to_string());
                lists.into_iter().enumerate().map(|(class, ids)| (name(class), Member::List(ids.into()))).collect()
            }
            Members::Lists(lists) => {
                let name = |number: usize| format!("list {number}");
                lists.iter().enumerate().map(|(i, ids)| (name(i), Member::List(ids.clone().into()))).collect()
            }
        }))
    }
}

fn split_name(split: &shardtool_read::Split) -> String {
    let folder = split.folder().file_name().map_or_else(String::new, |name| format!("{}/", name.to_string_lossy()));
    format!("{folder}{}", split.name())
}

fn range(ids: std::ops::Range<u64>) -> Member {
    Member::Range { first: ids.start, len: ids.end - ids.start }
}

/// A member that a stage uses.
struct Found {
    /// Which of the whole members it is, or a part of.
    whole: usize,
    conditions: Vec<String>,
    name: String,
    member: Member,
}

/// The members that stages use, in the order of their first use: those that later stages add follow, so that a run may be resumed
/// with more of them.
struct Used<'a> {
    whole: &'a Whole,
    splits: &'a Splits,
    found: Vec<Found>,
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
        let is_same = |found: &Found| found.whole == whole && found.conditions == conditions;
        if let Some(place) = self.found.iter().position(is_same) {
            return Ok(place);
        }
        let (name, member) = &self.whole.0[whole];
        let (mut name, mut member) = (name.clone(), member.clone());
        if !conditions.is_empty() {
            name = format!("{name} where {}", conditions.join(" and "));
            member = self.meeting(&member, conditions)?;
        }
        if member.len() == 0 {
            return Err(StageProblem::Empty { stage, member: name }.into());
        }
        self.found.push(Found { whole, conditions: conditions.to_vec(), name, member });
        Ok(self.found.len() - 1)
    }

    /// Returns the samples of a member that meet conditions.
    fn meeting(&mut self, member: &Member, conditions: &[String]) -> Result<Member> {
        let mut ids = vec![];
        for (number, split_ids) in self.splits.ids().enumerate() {
            let concerned = match member {
                Member::Range { first, .. } => split_ids.contains(first),
                Member::List(list) => list.iter().any(|id| split_ids.contains(id)),
            };
            if !concerned {
                continue;
            }
            let key = (number, conditions.to_vec());
            let found = match self.matching.entry(key) {
                std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    let split = &self.splits.as_slice()[number];
                    let own = split.matching(conditions.iter().map(String::as_str))?;
                    entry.insert(own.into_iter().map(|id| split_ids.start + id).collect())
                }
            };
            match member {
                Member::Range { .. } => ids.extend_from_slice(found),
                Member::List(list) => {
                    ids.extend(list.iter().filter(|id| split_ids.contains(*id) && found.binary_search(id).is_ok()));
                }
            }
        }
        Ok(Member::List(ids.into()))
    }
}
