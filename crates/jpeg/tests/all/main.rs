//! Compares the decoder with libjpeg-turbo and all of its decode paths with each other, for good and for damaged images.

mod corpora;
mod damage;
mod decoding;
mod images;
mod large;
mod mutate;
mod pixels;
mod reading;
mod scans;
mod tables;
