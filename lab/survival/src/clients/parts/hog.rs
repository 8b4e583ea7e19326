//! A client that takes all memory of the driver's file system.
//!
//! It adds publications until one is refused, and writes to each page of their log buffers. Clients
//! that had theirs before must not notice: a driver with sparse log buffers keeps the space that
//! the others have yet to take.

use std::error::Error;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use super::PartOptions;
use super::client::connect;
use crate::clients::settings::HOG_STREAM_ID;
use crate::party::{Notice, Orders, say};

/// Terms of 1 MiB, then of 64 KiB for what is left.
const CHANNELS: [&str; 2] = ["aeron:ipc?term-length=1m", "aeron:ipc?term-length=64k"];
const PAGE_SIZE: usize = 4096;
/// How long the memory stays full.
const HOLD: Duration = Duration::from_millis(500);

pub(super) fn play(options: &PartOptions, orders: &Orders) {
    if let Err(error) = fill(options, orders) {
        say(&Notice::Refused(format!("Hog {error}")));
    }
}

/// Fails if the driver is killed meanwhile.
fn fill(options: &PartOptions, orders: &Orders) -> Result<(), Box<dyn Error>> {
    let aeron = connect(options)?;
    let mut publications = Vec::new();
    for channel in CHANNELS {
        loop {
            match aeron.add_exclusive_publication(channel, HOG_STREAM_ID) {
                Ok(publication) => {
                    let id = publication.original_registration_id();
                    let path = options.dir.join(format!("publications/{id}.logbuffer"));
                    let log = File::options().write(true).open(path)?;
                    for offset in (0..3 * publication.term_buffer_length()).step_by(PAGE_SIZE) {
                        log.write_all_at(&[0], offset as u64)?;
                    }
                    publications.push(publication);
                }
                Err(error) => {
                    say(&Notice::Refused(format!("{:?} {error}", error.kind())));
                    break;
                }
            }
        }
    }
    orders.wait(HOLD);
    Ok(())
}
