pub(crate) mod rows;
pub(crate) mod scan_only;
pub(crate) mod speculation;
pub(crate) mod state;
