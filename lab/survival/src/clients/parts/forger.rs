//! A client that forges the metadata of its log buffers while it uses them.
//!
//! Its stream is its own, so nobody checks its messages. Calls may fail, as long as the errors have types: neither this
//! process nor the driver may crash or hang, and no other stream may suffer.

use std::error::Error;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use rusteron_client::Publisher;
use rusteron_test_support::Random;

use super::PartOptions;
use super::client::connect;
use crate::clients::settings::{FORGED_STREAM_IDS, TERM_LENGTH};
use crate::party::{Notice, Order, Orders, say};

const CHANNEL: &str = "aeron:ipc";
/// How long the forger works.
const LIFETIME: Duration = Duration::from_millis(1_500);
/// How long it works on the same log buffers. Those of before linger, in a small file system.
const TURN: Duration = Duration::from_millis(100);
/// The metadata lies behind the three terms. It begins with their tails and the active term count.
const METADATA: u64 = 3 * TERM_LENGTH as u64;
const TAILS: u64 = 3;
const ACTIVE_TERM_COUNT: u64 = METADATA + 24;
/// Bytes of the metadata that have a meaning.
const USED_METADATA: usize = 512;

pub(super) fn play(options: &PartOptions, orders: &Orders) {
    if let Err(error) = forge(options, orders) {
        say(&Notice::Refused(format!("Forger {error}")));
    }
}

/// Forges until its time is over, or a client ends: the driver may be killed meanwhile.
fn forge(options: &PartOptions, orders: &Orders) -> Result<(), Box<dyn Error>> {
    let end = Instant::now() + LIFETIME;
    let mut random = Random::new(options.seed);
    // The second client maps log buffers that are forged already.
    let clients = [connect(options)?, connect(options)?];
    // Each time another stream: log buffers that were forged before linger.
    for stream_id in FORGED_STREAM_IDS {
        if Instant::now() >= end || orders.next() == Some(Order::End) {
            break;
        }
        let mut subscription = clients[0].add_subscription(CHANNEL, stream_id)?;
        let mut exclusive = clients[0].add_exclusive_publication(CHANNEL, stream_id)?;
        let mut shared = clients[0].add_publication(CHANNEL, stream_id)?;
        let open = |id: i64| {
            let file = options.dir.join(format!("publications/{id}.logbuffer"));
            File::options().read(true).write(true).open(file)
        };
        let logs =
            [open(exclusive.original_registration_id())?, open(shared.original_registration_id())?];
        let turn = Instant::now() + TURN;
        while Instant::now() < turn {
            let forged = Forged::choose(&logs, &mut random)?;
            for _ in 0..4 {
                publish(&mut exclusive, &mut random);
                publish(&mut shared, &mut random);
                subscription.poll(|_, _| {}, 100).ok();
            }
            if random.percent(1) {
                // Refused, or a publication like the others.
                if let Ok(shared) = clients[1].add_publication(CHANNEL, stream_id) {
                    shared.offer(b"to a forged log buffer").ok();
                }
            }
            if random.percent(90) {
                // Without most of the truth, publications only report that the log is being rotated.
                forged.undo()?;
            }
        }
    }
    Ok(())
}

/// Tries all ways of publishing. Every outcome is right, as long as there is one.
fn publish(publisher: &mut impl Publisher, random: &mut Random) {
    // The last one does not fit into a fragment.
    let message = vec![7; [0, 40, 1_000, 3_000][random.below(4)]];
    let parts = [IoSlice::new(&message), IoSlice::new(&message)];
    publisher.offer(&message).ok();
    publisher.offer_parts(&parts).ok();
    let _ = publisher.offer_batch(&[&message[..], b"a batch"]);
    publisher.try_claim(40).map(|claim| claim.commit()).ok();
}

/// A lie in a log buffer, and the truth.
struct Forged<'a> {
    log: &'a File,
    offset: u64,
    truth: Vec<u8>,
}

impl<'a> Forged<'a> {
    /// Writes a lie.
    fn choose(logs: &'a [File; 2], random: &mut Random) -> io::Result<Self> {
        let log = &logs[random.below(2)];
        let tail = METADATA + 8 * (random.next() % TAILS);
        match random.below(5) {
            // A tail between two frames.
            0 => Self::write(log, tail, &[8]),
            // A tail beyond the term.
            1 => Self::write(log, tail + 2, &[0xff]),
            // The last offset of all, in any term.
            2 => Self::write(log, tail, &(random.next() << 32 | 0xffff_ffe0).to_ne_bytes()),
            3 => Self::write(log, ACTIVE_TERM_COUNT, &(random.next() as i32).to_ne_bytes()),
            _ => {
                let offset = METADATA + random.below(USED_METADATA) as u64;
                Self::write(log, offset, &[random.next() as u8])
            }
        }
    }

    fn write(log: &'a File, offset: u64, lie: &[u8]) -> io::Result<Self> {
        let mut truth = vec![0; lie.len()];
        log.read_exact_at(&mut truth, offset)?;
        log.write_all_at(lie, offset)?;
        Ok(Self { log, offset, truth })
    }

    fn undo(self) -> io::Result<()> {
        self.log.write_all_at(&self.truth, self.offset)
    }
}
