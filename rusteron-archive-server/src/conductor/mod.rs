//! What the archive decides, without I/O but that of [`Storage`](crate::storage::Storage).

pub(crate) mod effect;
