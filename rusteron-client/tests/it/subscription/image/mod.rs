mod handlers;
mod image;
#[cfg(unix)]
mod refused;
