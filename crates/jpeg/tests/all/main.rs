//! What this crate promises, held against libjpeg-turbo, against itself by its other ways, and against damage.

mod corpora;
mod damage;
mod decoding;
mod images;
mod mutate;
mod pixels;
mod reading;
