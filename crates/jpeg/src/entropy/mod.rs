pub(crate) mod block_stream;
pub(crate) mod decode;
pub(crate) mod scanner;
pub(crate) mod symbol_state;
