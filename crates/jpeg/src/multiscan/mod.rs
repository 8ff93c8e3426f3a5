pub(crate) mod coefficients;
pub(crate) mod progressive;
