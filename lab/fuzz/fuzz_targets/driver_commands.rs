//! Commands that any process in the driver's directory can write, with texts of every length that
//! an array of C has.
//!
//! An input is a list of commands and of turns of the driver. The target plays a client in any
//! language: nothing checks a command before the driver reads it.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use rusteron_client::{ExclusivePublication, Subscription};
use rusteron_fuzz::input::Input;
use rusteron_fuzz::stage::Stage;
use rusteron_test_support::{ForgedCnc, udp_channel};

const INPUTS_PER_DRIVER: u32 = 64;
const MAX_STEPS: usize = 16;

const REJECT_IMAGE: i32 = 0x10;
const TYPES: [i32; 18] =
    [REJECT_IMAGE, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xA, 0xB, 0xC, 0xE, 0xF, 0x11, 0x12, 0xD];

/// Lengths of C's arrays for labels, keys, hosts, reasons, channels and errors.
const LENGTHS: [usize; 14] = [0, 7, 16, 64, 112, 380, 384, 512, 1000, 1003, 1016, 1023, 4095, 8192];

/// What comes before the text that fills an array. All addresses are numbers, so that nothing looks
/// a name up.
const BEGINNINGS: [&str; 14] = [
    "",
    "aeron:ipc?term-length=64k|alias=",
    "aeron:udp?endpoint=127.0.0.1:0|term-length=64k|alias=",
    "aeron:udp?endpoint=127.0.0.1:40123|term-length=64k|alias=",
    "aeron:udp?endpoint=127.0.0.1:",
    "aeron:udp?endpoint=[::1%",
    "aeron:udp?endpoint=%[]",
    "aeron:udp?endpoint=127.0.0.1:0|interface=127.0.0.1/8:",
    "aeron:udp?endpoint=127.0.0.1:0|interface={",
    "aeron:udp?endpoint=127.0.0.1:40123|control=127.0.0.1:0|control-mode=dynamic|fc=tagged,g:",
    "aeron:udp?control-mode=manual|alias=",
    "aeron:udp?endpoint=127.0.0.1:0|tags=",
    "aeron-spy:aeron:udp?endpoint=127.0.0.1:40123|alias=",
    "aeron:udp?endpoint=127.0.0.1:40123|nak-delay=",
];

struct Machine {
    // Dropped before the client.
    receivers: [Subscription; 2],
    senders: [ExclusivePublication; 2],
    forged: ForgedCnc,
    stage: Stage,
    inputs: u32,
}

impl Machine {
    fn launch() -> Self {
        let mut stage = Stage::launch(|_| Ok(()));
        let aeron = stage.aeron.clone();
        let channels = ["aeron:ipc", &udp_channel()];
        let receivers = channels.map(|channel| {
            stage.added(aeron.async_add_subscription(channel, 1)).expect("a subscription")
        });
        let senders = channels.map(|channel| {
            stage.added(aeron.async_add_exclusive_publication(channel, 1)).expect("a publication")
        });
        let forged = ForgedCnc::open(stage.driver.aeron_dir());
        Self { receivers, senders, forged, stage, inputs: 0 }
    }

    /// An image or a publication of this client, or any id.
    fn id(&mut self, input: &mut Input<'_>) -> i64 {
        let index = usize::from(input.byte() % 2);
        match input.byte() % 4 {
            0 => {
                let image = self.receivers[index].images().next();
                image.map_or(0, |image| image.correlation_id())
            }
            1 => self.senders[index].original_registration_id(),
            2 => i64::from(input.byte()),
            _ => input.long(),
        }
    }

    fn command(&mut self, input: &mut Input<'_>) {
        let type_id = input.choose(&TYPES);
        let client_id = i64::from(input.byte());
        let mut command = [client_id, 0].map(i64::to_le_bytes).concat();
        match type_id {
            1 | 3 => {
                command.extend(i32::from(input.byte()).to_le_bytes());
                text(input, &mut command);
            }
            4 => {
                command.extend(self.id(input).to_le_bytes());
                command.extend(i32::from(input.byte()).to_le_bytes());
                text(input, &mut command);
            }
            7 | 8 | 0xC | 0xD => {
                command.extend(self.id(input).to_le_bytes());
                text(input, &mut command);
            }
            9 | 0xF => {
                if type_id == 0xF {
                    command.extend(self.id(input).to_le_bytes());
                }
                command.extend(input.near(1000, 1).to_le_bytes());
                text(input, &mut command);
                command.resize(command.len().next_multiple_of(4), 0);
                text(input, &mut command);
            }
            0xE => text(input, &mut command),
            REJECT_IMAGE => {
                command.extend(self.id(input).to_le_bytes());
                command.extend(input.near(0, 32).to_le_bytes());
                command.extend([0; 4]);
                text(input, &mut command);
            }
            0x12 => command.extend(i32::from(input.byte()).to_le_bytes()),
            _ => {
                command.extend(self.id(input).to_le_bytes());
                command.extend(self.id(input).to_le_bytes());
            }
        }
        let length = input.near(8 + command.len() as i32, 1);
        self.forged.command_record(length, type_id, &command);
    }

    fn run(&mut self, input: &mut Input<'_>) {
        self.inputs += 1;
        for _ in 0..MAX_STEPS {
            if input.is_empty() {
                break;
            }
            self.command(input);
            self.stage.repeat_work(usize::from(input.byte() % 8) + 1);
        }
        self.stage.repeat_work(4);
    }
}

/// A length, and a text that may have another.
fn text(input: &mut Input<'_>, command: &mut Vec<u8>) {
    let mut text = input.choose(&BEGINNINGS).as_bytes().to_vec();
    let length = match input.byte() {
        0xff => usize::from(input.half()) % (16 << 10),
        small => LENGTHS[usize::from(small) % LENGTHS.len()] + usize::from(input.byte() % 4),
    };
    let own = usize::from(input.byte() % 16);
    text.extend(input.bytes(own));
    // The filling counts: an alias may have any length, and the text as a whole as well.
    let start = if input.byte() % 2 == 0 { 0 } else { text.len() };
    text.resize(text.len().max(start + length), b'1');
    if input.byte() % 2 == 1 {
        text.truncate(start + length);
    }
    command.extend(input.near(text.len() as i32, 1).to_le_bytes());
    command.extend(text);
}

fuzz_target!(|bytes: &[u8]| {
    thread_local! {
        static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
    }
    MACHINE.with_borrow_mut(|machine| {
        let running = machine.get_or_insert_with(Machine::launch);
        running.run(&mut Input::new(bytes));
        if running.inputs == INPUTS_PER_DRIVER {
            *machine = None;
        }
    });
});
