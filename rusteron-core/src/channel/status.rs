//! The state of a channel's sockets, and the addresses they are bound to.

use std::net::SocketAddr;

use rusteron_sys as sys;

use crate::error::{Error, ErrorKind, Result};
use crate::ffi::Fallible;

/// The state of the sockets of a channel, as the media driver last reported it.
#[doc(alias = "ChannelEndpointStatus")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ChannelStatus {
    /// The media driver is setting the sockets up.
    Initializing,
    /// All sockets are set up. IPC has no sockets and is always in this state.
    Active,
    /// The media driver is closing the sockets.
    Closing,
    /// A socket could not be set up.
    Errored,
    /// The publication or subscription is closed and no longer knows the state.
    Closed,
}

impl ChannelStatus {
    /// Converts the result of a C function for the counter with this id.
    ///
    /// A closed resource has no counter. Then C returns the number of an error.
    pub fn from_c(status: i64, counter_id: i32, is_closed: impl FnOnce() -> bool) -> Self {
        match status {
            0 => Self::Initializing,
            1 => Self::Active,
            2 => Self::Closing,
            _ if is_closed() => Self::Closed,
            // As in Java: IPC has no counter, and is active. C returns the number of an error here,
            // too.
            _ if counter_id < 0 => Self::Active,
            _ => Self::Errored,
        }
    }
}

/// Returns all addresses that `find` writes. `find` fills as many buffers as it is given and, like
/// C's functions, returns the number of addresses.
pub fn local_addresses(
    mut find: impl FnMut(*mut sys::aeron_iovec_t, usize) -> i32,
) -> Result<Vec<SocketAddr>> {
    const LENGTH: usize = sys::AERON_CLIENT_MAX_LOCAL_ADDRESS_STR_LEN as usize;
    let mut capacity = 4;
    loop {
        let mut texts = vec![[0_u8; LENGTH]; capacity];
        let mut iovecs: Vec<_> = texts
            .iter_mut()
            .map(|text| sys::aeron_iovec_t { iov_base: text.as_mut_ptr(), iov_len: LENGTH })
            .collect();
        let count = find(iovecs.as_mut_ptr(), capacity).into_result()? as usize;
        if count <= capacity {
            return texts[..count].iter().map(|text| parse(text)).collect();
        }
        capacity = count;
    }
}

/// Parses the address in a buffer that a NUL byte terminates.
fn parse(buffer: &[u8]) -> Result<SocketAddr> {
    let length = buffer.iter().position(|&byte| byte == 0).unwrap_or(buffer.len());
    let text = String::from_utf8_lossy(&buffer[..length]);
    // The Java driver names the interface of a link-local address: `[fe80::1%eth0]:4000`.
    let plain = match (text.find('%'), text.find(']')) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &text[..from], &text[to..]),
        _ => text.into_owned(),
    };
    plain.parse().map_err(|error| {
        Error::new(ErrorKind::Other, format!("the driver's address {plain:?}: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_drivers_are_understood() {
        let address = |text: &str| parse(text.as_bytes()).map(|address| address.to_string());
        assert_eq!(address("127.0.0.1:40456\0rest").unwrap(), "127.0.0.1:40456");
        assert_eq!(address("[::1]:1").unwrap(), "[::1]:1");
        assert_eq!(address("[fe80:0:0:0:0:0:0:1%eth0]:4000").unwrap(), "[fe80::1]:4000");
        assert!(address("nonsense").unwrap_err().message().contains("\"nonsense\""));
    }

    #[test]
    fn more_addresses_than_expected_are_all_found() {
        let addresses = local_addresses(|iovecs, capacity| {
            for index in 0..capacity.min(9) {
                // SAFETY: as many buffers as `capacity`, each longer than the text.
                unsafe {
                    let text = b"10.0.0.1:1\0";
                    let buffer = (*iovecs.add(index)).iov_base;
                    buffer.copy_from_nonoverlapping(text.as_ptr(), text.len());
                }
            }
            9
        });
        assert_eq!(addresses.unwrap().len(), 9);
        assert!(local_addresses(|_, _| 0).unwrap().is_empty());
    }

    #[test]
    fn c_has_one_number_for_three_things() {
        assert_eq!(ChannelStatus::from_c(1, 5, || false), ChannelStatus::Active);
        assert_eq!(ChannelStatus::from_c(-1, 5, || false), ChannelStatus::Errored);
        assert_eq!(ChannelStatus::from_c(-1, 5, || true), ChannelStatus::Closed);
        assert_eq!(ChannelStatus::from_c(-1, -1, || false), ChannelStatus::Active);
    }
}
