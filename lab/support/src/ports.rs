//! UDP ports of this machine.

use std::net::{TcpListener, UdpSocket};
use std::sync::{Mutex, PoisonError};

/// The ports up to 19,999 are neither Aeron's defaults nor given out by the operating system.
const FIRST: u16 = 10_000;
const BLOCKS: u16 = 100;
const BLOCK_LENGTH: u16 = 100;

/// Ports that no other test process uses, until this process ends.
struct Block {
    /// Listens on the block's first port, which reserves the block: a second listener is refused.
    _reservation: TcpListener,
    rest: std::ops::Range<u16>,
}

impl Block {
    fn reserve() -> Option<Block> {
        // Each process begins somewhere else, because a block that was just left may be busy still.
        let begin = std::process::id();
        (0..u32::from(BLOCKS)).find_map(|offset| {
            let number = (begin.wrapping_add(offset) % u32::from(BLOCKS)) as u16;
            let first = FIRST + number * BLOCK_LENGTH;
            let reservation = TcpListener::bind(("127.0.0.1", first)).ok()?;
            Some(Block { _reservation: reservation, rest: first + 1..first + BLOCK_LENGTH })
        })
    }
}

static BLOCKS_OF_PROCESS: Mutex<Vec<Block>> = Mutex::new(Vec::new());

/// A port that is free. No other call of these functions returns it, in this process or in another one that runs.
pub fn free_port() -> u16 {
    let mut blocks = BLOCKS_OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let rest = blocks.last_mut().map(|block| &mut block.rest);
        let free = rest.and_then(|rest| rest.find(|&port| is_free(port)));
        if let Some(port) = free {
            return port;
        }
        blocks.push(reserve());
    }
}

/// The first of 100 ports for a program that counts its ports from a base. All are free for UDP.
pub fn free_port_block() -> u16 {
    let mut blocks = BLOCKS_OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let Block { _reservation, rest } = reserve();
        let ports = rest.start - 1..rest.end;
        let is_free = ports.clone().all(|port| UdpSocket::bind(("127.0.0.1", port)).is_ok());
        // Nothing of the block is left for `free_port`, which takes from the last one.
        blocks.insert(0, Block { _reservation, rest: rest.end..rest.end });
        if is_free {
            return ports.start;
        }
    }
}

fn reserve() -> Block {
    Block::reserve().expect("a block of ports that no other process has reserved")
}

fn is_free(port: u16) -> bool {
    let address = ("127.0.0.1", port);
    UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
}

/// A channel to this machine that no other program uses.
pub fn udp_channel() -> String {
    format!("aeron:udp?endpoint=127.0.0.1:{}", free_port())
}
