mod assembly;
mod controlled_poll;
mod destinations;
mod image;
