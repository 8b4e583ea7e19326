mod handlers;
mod image;
mod refused;
