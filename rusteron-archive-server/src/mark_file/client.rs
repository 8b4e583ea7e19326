//! The server's client of the media driver, among the [notes](NOTES) of the mark file.
//!
//! The driver keeps the client of a killed server until it times it out, with all its counters, publications and
//! subscriptions. By this record, the next server tells the driver that the client has ended.
//!
//! The record counts only in the file that it was written to: the server of a file that was copied while it ran may be
//! alive, however free the lock of the copy is. So does the note that the segments are no copies.

use std::ops::Range;
use std::sync::atomic::Ordering;

use rusteron_core::cnc::{ClientIdentity, i64_at};

use crate::mark_file::{FileId, MarkFile, NOTES};

/// Where the record is in the file.
pub(super) const RECORD: Range<usize> = NOTES.start..NOTES.start + 48;
/// Client id + 1, or 0 if there is no record.
const CLIENT: usize = RECORD.start;
const DRIVER_START_TIMESTAMP: usize = RECORD.start + 8;
const DRIVER_PID: usize = RECORD.start + 16;
const DEVICE: usize = RECORD.start + 24;
const INODE: usize = RECORD.start + 32;
/// 1 if the segments beside this file were written here, so that their holes are what was never
/// written.
const ORIGINAL: usize = RECORD.start + 40;

/// Notes the server's client in the file of this id.
pub(super) fn store(mark_file: &MarkFile, client: &ClientIdentity, [device, inode]: FileId) {
    let store = |offset, number: i64| {
        mark_file.file.number(offset).store(number.to_le(), Ordering::Release);
    };
    // A server that is killed meanwhile leaves no record.
    store(CLIENT, 0);
    store(DRIVER_START_TIMESTAMP, client.driver_start_timestamp);
    store(DRIVER_PID, client.driver_pid);
    store(DEVICE, device);
    store(INODE, inode);
    store(CLIENT, client.client_id.wrapping_add(1));
}

/// Notes that the segments beside the file of this id have been written here, or that none of them
/// is in doubt.
pub(super) fn store_original(mark_file: &MarkFile, [device, inode]: FileId) {
    for (offset, number) in [(DEVICE, device), (INODE, inode), (ORIGINAL, 1)] {
        mark_file.file.number(offset).store(number.to_le(), Ordering::Release);
    }
}

/// Carries this note, and nothing of a client, over to the bytes of the next server's header.
pub(super) fn carry_over(from: &[u8], to: &mut [u8], is_original: bool) {
    if is_original {
        let origin = DEVICE..RECORD.end;
        to[origin.clone()].copy_from_slice(&from[origin]);
    } else {
        to[ORIGINAL..RECORD.end].fill(0);
    }
}

/// Tells whether the header's bytes say that of the file of this id.
pub(super) fn is_original(header: &[u8], file: FileId) -> bool {
    is_of(header, file) && i64_at(header, ORIGINAL) == Some(1)
}

fn is_of(header: &[u8], file: FileId) -> bool {
    [i64_at(header, DEVICE), i64_at(header, INODE)] == file.map(Some)
}

/// Reads the record of the file of this id from its header's bytes.
pub(super) fn read(header: &[u8], file: FileId) -> Option<ClientIdentity> {
    let number = |offset| i64_at(header, offset);
    let client_id = number(CLIENT).filter(|number| *number != 0)?.wrapping_sub(1);
    let client = ClientIdentity {
        client_id,
        driver_start_timestamp: number(DRIVER_START_TIMESTAMP)?,
        driver_pid: number(DRIVER_PID)?,
    };
    is_of(header, file).then_some(client)
}
