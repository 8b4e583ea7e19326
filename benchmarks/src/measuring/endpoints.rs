//! UDP endpoints.

use std::io;
use std::net::UdpSocket;

use crate::command_line::failure::Failure;

/// UDP endpoints of this machine that are free now.
///
/// # Errors
/// [`Failure::Run`] if there are none.
pub fn free_endpoints<const N: usize>() -> Result<[String; N], Failure> {
    let free = || -> io::Result<_> {
        // All at the same time, so that no two are the same.
        let sockets =
            (0..N).map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<Result<Vec<_>, _>>()?;
        let mut endpoints = [const { String::new() }; N];
        for (endpoint, socket) in endpoints.iter_mut().zip(sockets) {
            *endpoint = socket.local_addr()?.to_string();
        }
        Ok(endpoints)
    };
    free().map_err(|error| Failure::run("no free port on 127.0.0.1", error))
}
