//! The samples of a scheduled source in one epoch, with the orders of the passes that were used last.

use super::{Scheduled, Turn};
use crate::order::{Cursor, Order};
use crate::substitute::{stride_key, substitutes_among};

/// Orders that are kept. A member whose place another has taken has its order made again, in some microseconds.
const KEPT: usize = 64;

/// Bytes of an order, at most.
const ORDER_BYTES: u64 = 40 << 10;

/// A [`Scheduled`] source in one epoch.
#[derive(Clone, Debug)]
pub(crate) struct ScheduledCursor {
    source: Scheduled,
    order: Order,
    seed: u64,
    epoch: u64,
    /// The stage of the last position, and the samples of each member before it.
    before: (usize, Box<[u128]>),
    /// The order of a member's pass, at the place (member mod [`KEPT`]).
    kept: Box<[Option<Pass>]>,
}

#[derive(Clone, Debug)]
struct Pass {
    member: usize,
    pass: u64,
    order: Cursor,
}

impl ScheduledCursor {
    pub(crate) fn new(source: &Scheduled, order: Order, seed: u64, epoch: u64) -> Self {
        let members = source.members().len();
        let (before, kept) = ((0, vec![0; members].into()), vec![None; KEPT.min(members)].into());
        ScheduledCursor { source: source.clone(), order, seed, epoch, before, kept }
    }

    /// Returns N.
    pub(crate) fn len(&self) -> u64 {
        self.source.draws()
    }

    /// Returns the id of the sample at position `q`, which is also its source position.
    ///
    /// # Panics
    /// If `q` is N or more.
    #[inline]
    pub(crate) fn id(&mut self, q: u64) -> u64 {
        assert!(q < self.len(), "position {q} of an epoch of {}", self.len());
        let turn = self.turn(q);
        self.id_in_pass(turn, turn.position)
    }

    /// Returns the ids to try, in turn, for a bad sample at position `q`: those of the same member, in the same pass.
    pub(crate) fn substitutes(&mut self, q: u64) -> Vec<u64> {
        let turn = self.turn(q);
        let among = 0..self.source.members()[turn.member].len();
        let positions = substitutes_among(stride_key(self.seed, self.epoch, q), turn.position, among);
        positions.map(|position| self.id_in_pass(turn, position)).collect()
    }

    #[inline]
    fn turn(&mut self, q: u64) -> Turn {
        let (source, seed, held) = (&self.source, self.seed, &mut self.before);
        source.turn(seed, self.epoch, q, |stage, member| {
            if held.0 != stage {
                let all = (0..source.members().len()).map(|member| source.before(seed, stage, member));
                *held = (stage, all.collect());
            }
            held.1[member]
        })
    }

    /// Returns the id at a position of the pass of `turn`.
    #[inline]
    fn id_in_pass(&mut self, turn: Turn, position: u64) -> u64 {
        let Turn { member, pass, .. } = turn;
        let place = member % self.kept.len();
        if !matches!(&self.kept[place], Some(kept) if kept.member == member && kept.pass == pass) {
            let order = self.source.pass_order(self.order, self.seed, turn).cursor();
            self.kept[place] = Some(Pass { member, pass, order });
        }
        let kept = self.kept[place].as_mut().expect("it was made above");
        self.source.members()[member].id(kept.order.at(position))
    }
}

impl Scheduled {
    /// Returns the memory of a cursor in bytes, at most.
    pub(in crate::source) fn cursor_bytes(&self) -> u64 {
        KEPT.min(self.members().len()) as u64 * ORDER_BYTES + 16 * self.members().len() as u64
    }
}
