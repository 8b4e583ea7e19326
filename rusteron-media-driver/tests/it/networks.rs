//! Drivers in networks of their own: what is on the wire, and streams over a wire that loses datagrams.

mod losses;
mod wire;

use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::{io, mem, ptr};

use rusteron_client::{Aeron, SystemCounter};
use rusteron_test_support::networks::{Network, Networks};
use rusteron_test_support::{DriverProcess, context};

use crate::MEDIA_DRIVER;

/// Lets the subscriber's device coalesce datagrams. The device does so if the other end of the wire does not send coalesced
/// ones.
fn coalesce(networks: &Networks) {
    const SET_TSO: u32 = 0x1f;
    const SET_GRO: u32 = 0x2c;
    switch(&networks.router, "subscriber", SET_TSO, false);
    switch(&networks.subscriber, "wire", SET_GRO, true);
}

/// Switches a feature of a device, by a command of the kernel's interface `ethtool`.
fn switch(network: &Network, device: &str, command: u32, is_on: bool) {
    #[repr(C)]
    struct Value {
        command: u32,
        is_on: u32,
    }
    network.enter(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        let mut value = Value { command, is_on: is_on.into() };
        // SAFETY: all fields are integers, arrays of integers or null pointers.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(device.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = ptr::from_mut(&mut value).cast();
        // SAFETY: request and value outlive the call, and have the fields that the call reads.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &request) };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
    });
}

/// Starts a driver, and connects a client to it.
fn launch(network: &Network, dir: &Path, options: &[&str]) -> Driver {
    let mut command = network.command(MEDIA_DRIVER);
    command.args(["--threading-mode", "shared", "--dir"]).arg(dir).args(options);
    let mut process = DriverProcess::run(&mut command);
    let line = process.line();
    assert!(line.starts_with("media driver ready"), "{line} {}", process.end().1);
    Driver { aeron: Aeron::connect(context(dir)).expect("a client"), process }
}

/// A driver in a network, and its client, which is in the test's own network.
struct Driver {
    aeron: Aeron,
    process: DriverProcess,
}

impl Driver {
    fn count(&self, counter: SystemCounter) -> i64 {
        counter.read(&self.aeron.counters_reader()).expect("the counter")
    }
}
