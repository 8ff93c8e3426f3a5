//! Tests of the running server, by plain HTTP.

mod covered;
mod draws;
mod gallery;
mod guard;
mod health;
mod history;
mod hostile;
mod loader;
mod measured;
mod notebook;
mod numbers;
mod selecting;
mod support;
