//! UDP ports of this machine.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port that is free, below those that the operating system gives out by itself.
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 20_000;
    static USED: AtomicU32 = AtomicU32::new(0);
    // Another process begins somewhere else.
    let first = std::process::id().wrapping_mul(4099);
    (0..COUNT)
        .map(|_| first.wrapping_add(USED.fetch_add(1, Ordering::Relaxed)))
        .map(|number| (FIRST + number % COUNT) as u16)
        .find(|&port| UdpSocket::bind(("127.0.0.1", port)).is_ok())
        .expect("a free port")
}

/// A channel to this machine that no other program uses.
pub fn udp_channel() -> String {
    format!("aeron:udp?endpoint=127.0.0.1:{}", free_port())
}
