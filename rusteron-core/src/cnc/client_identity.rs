//! Names of clients that outlive their processes.

use std::ptr;

use rusteron_sys as sys;

use crate::cnc::shared_memory::SharedMemory;

/// Offsets in `cnc.dat`, `aeron_cnc_metadata_t`.
const START_TIMESTAMP: usize = 32;
const PID: usize = 40;

/// A client of a media driver, named so that a later process can find it.
///
/// Each run of a driver counts its clients anew, so the id alone may be that of another client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientIdentity {
    /// The id that the driver knows.
    pub client_id: i64,
    /// When the driver was started, in milliseconds since 1970.
    pub driver_start_timestamp: i64,
    /// The driver's process id.
    pub driver_pid: i64,
}

impl ClientIdentity {
    /// Returns the identity of a client.
    ///
    /// # Safety
    /// The client is live.
    pub unsafe fn of_client(client: *mut sys::aeron_t) -> Self {
        let (mut address, mut length) = (ptr::null_mut(), 0);
        // SAFETY: the client is live by the contract. It maps its CnC file, whose driver C has checked, until its end.
        let (client_id, cnc) = unsafe {
            sys::rusteron_client_cnc(client, &mut address, &mut length);
            (sys::aeron_client_id(client), SharedMemory::new(address.cast(), length))
        };
        let number = |offset| cnc.load_i64(offset).unwrap_or(0);
        Self { client_id, driver_start_timestamp: number(START_TIMESTAMP), driver_pid: number(PID) }
    }

    /// Returns whether both are clients of one run of a driver.
    pub fn has_driver_of(&self, other: &Self) -> bool {
        (self.driver_start_timestamp, self.driver_pid)
            == (other.driver_start_timestamp, other.driver_pid)
    }

    /// Asks the driver to close this client, whose process has ended, by the command that the client itself would have
    /// sent. The driver frees what it has of the client at its next timer, 1 s by default. Does not block.
    ///
    /// `by` sends the command. Returns false if that is a client of another driver, and if the buffer of commands to the
    /// driver is full.
    ///
    /// # Safety
    /// `by` is live.
    pub unsafe fn close(&self, by: *mut sys::aeron_t) -> bool {
        // SAFETY: live by the contract. Any thread of any process may write to the buffer of commands, which C has checked.
        unsafe {
            self.has_driver_of(&Self::of_client(by))
                && sys::rusteron_close_client(by, self.client_id)
        }
    }
}
