#[cfg(unix)]
mod forged_frames;
mod handlers;
mod image;
#[cfg(unix)]
mod refused;
