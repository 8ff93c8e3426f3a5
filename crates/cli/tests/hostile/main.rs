//! Hostile inputs, made by code: names that control a terminal, counts that lie, files that expand. No command may be
//! killed, take memory or time out of proportion to the bytes, hide a finding, or print a control character.
//!
//! | module | contents |
//! |---|---|
//! | `archives` | archives that claim more than they hold |
//! | `bounds` | cost in proportion to bytes |
//! | `corpus` | makes the inputs, and runs commands on them |
//! | `escapes` | names from files do not reach the terminal as they are |
//! | `sources` | nothing is opened that the user did not mean |
//! | `status` | damage decides the exit status, also if the output is closed |

mod archives;
mod bounds;
mod corpus;
mod escapes;
mod sources;
mod status;
