//! Which answers are changed, and how: a pure function of a seed and the number of the request.

use hyper::StatusCode;
use std::time::Duration;

/// How one answer is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// `503 Slow Down`.
    Unavailable,
    /// `429 Too Many Requests`.
    TooMany,
    /// `403`, as with credentials that have just expired.
    Forbidden,
    /// The connection is closed without an answer.
    Reset,
    /// The connection is closed after half of the body. A request that writes is carried out, and its answer is lost.
    Cut,
    /// The answer comes late.
    Stall,
    /// One bit of the body is another one. A request that writes is answered as it should be.
    WrongByte,
    /// Another status, and the code in the body. Only on request.
    Status(u16, &'static str),
}

/// What happens before the request is answered.
pub(crate) enum Applied {
    Status(StatusCode, &'static str),
    Reset,
    Wait(Duration),
    Nothing,
}

impl Fault {
    const ALL: [Fault; 7] = [
        Fault::Unavailable,
        Fault::TooMany,
        Fault::Forbidden,
        Fault::Reset,
        Fault::Cut,
        Fault::Stall,
        Fault::WrongByte,
    ];

    pub(crate) fn before(self) -> Applied {
        match self {
            Fault::Unavailable => Applied::Status(StatusCode::SERVICE_UNAVAILABLE, "Injected"),
            Fault::TooMany => Applied::Status(StatusCode::TOO_MANY_REQUESTS, "Injected"),
            Fault::Forbidden => Applied::Status(StatusCode::FORBIDDEN, "Injected"),
            Fault::Status(status, code) => {
                Applied::Status(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), code)
            }
            Fault::Reset => Applied::Reset,
            // Longer than a client takes for a straggler.
            Fault::Stall => Applied::Wait(Duration::from_millis(2500)),
            Fault::Cut | Fault::WrongByte => Applied::Nothing,
        }
    }

    pub(crate) fn changes_body(self) -> bool {
        matches!(self, Fault::Cut | Fault::WrongByte)
    }
}

/// Which answers are changed: to `GET` requests, unless others are named.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Selects them, and their faults.
    pub seed: u64,
    /// One of this many is changed; 0 changes none.
    pub one_in: u64,
    /// The only kind of fault; `None` for all kinds but [`Fault::Status`].
    pub only: Option<Fault>,
    /// Whether answers to requests that write are changed, too.
    pub writes: bool,
    /// Time before each answer, as of a distant server.
    pub delay: Duration,
}

impl Faults {
    /// Returns how many answers to one request are changed in a row: two, so that the outcome does not depend on the order
    /// in which requests happen to arrive; all, if all answers are changed.
    pub(crate) fn most_in_a_row(&self) -> u64 {
        if self.one_in == 1 { u64::MAX } else { 2 }
    }

    /// Returns the fault of the request with this number.
    pub(crate) fn of(&self, number: u64) -> Option<Fault> {
        // SplitMix64.
        let mut z = (self.seed ^ number.rotate_left(32)).wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let chosen = self.one_in > 0 && (z >> 8).is_multiple_of(self.one_in);
        let all = || Fault::ALL[(z & 0xff) as usize % Fault::ALL.len()];
        chosen.then(|| self.only.unwrap_or_else(all))
    }
}
