pub(crate) mod header;
pub(crate) mod parser;
pub(crate) mod segment;
pub(crate) mod standard;
