#[cfg(unix)]
mod initial_writes;
