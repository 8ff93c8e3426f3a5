pub(crate) mod unstuffed;
