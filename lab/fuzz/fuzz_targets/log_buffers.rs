//! A log buffer that another process in the driver's directory writes anything to, while a subscriber polls it.
//!
//! An input is a list of steps: changes to terms and metadata, polls, and messages of a publisher. Once the
//! subscription is there, the driver does no work after a change: it trusts its own files. A change before that meets about
//! eight of its duty cycles.

#![no_main]

/// The reader of log buffers of the program `rusteron`, whose crate has no library.
#[allow(dead_code, unreachable_pub, reason = "a module of a program, of which a part is used")]
#[path = "../../../rusteron-tools/src"]
mod tools {
    pub(crate) mod log_file;
}

use std::cell::RefCell;
use std::fs::File;
use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use rusteron_client::{Aeron, Context, ExclusivePublication, Subscription};
use rusteron_fuzz::input::Input;
use rusteron_fuzz::log_buffer::{Shared, TERM_LENGTH};
use rusteron_fuzz::polls;
use rusteron_fuzz::stage::Stage;
use tools::log_file::{self, LogFile};

use crate::log_file::entries::Entry;
use crate::log_file::frame::HEADER_LENGTH;
use crate::log_file::metadata::PARTITION_COUNT;

const INPUTS_PER_DRIVER: u32 = 256;
const MAX_STEPS: usize = 64;

struct Machine {
    stage: Stage,
    /// Maps log buffers itself, apart from the publisher's client.
    reader: Aeron,
    inputs: u32,
}

impl Machine {
    fn launch() -> Self {
        let mut stage = Stage::launch(|_| Ok(()));
        let mut context = Context::new().expect("a context");
        context
            .set_dir(stage.driver.aeron_dir())
            .and_then(|context| context.set_use_conductor_agent_invoker(true))
            .expect("valid settings");
        context.set_error_handler(|_| ()).expect("a handler");
        stage.do_work();
        let reader = Aeron::connect(context).expect("a client");
        Self { stage, reader, inputs: 0 }
    }

    fn run(&mut self, input: &mut Input<'_>) {
        self.inputs += 1;
        let stream_id = self.inputs as i32;
        let position = input.choose(&[
            "",
            "|init-term-id=100|term-id=100|term-offset=0",
            "|init-term-id=2147483647|term-id=-2147483648|term-offset=65472",
        ]);
        let channel = format!("aeron:ipc?term-length=64k{position}");
        let adding = self.stage.aeron.async_add_exclusive_publication(&*channel, stream_id);
        let mut publication = self.stage.added(adding).expect("a publication");
        let id = publication.original_registration_id();
        let mut log = Shared::log(self.stage.driver.aeron_dir(), id).expect("a log buffer");

        // The reader may map a valid log buffer, or an invalid one.
        let changes_before = input.byte() % 4;
        for _ in 0..changes_before {
            log.change_log(input);
        }
        let mut adding =
            self.reader.async_add_subscription("aeron:ipc", stream_id).expect("a command");
        let mut subscription = None;
        self.stage.await_that("a subscription", |stage| {
            stage.do_work();
            // A log buffer that cannot be mapped is an error of the client.
            let _ = self.reader.do_work();
            subscription = adding.poll().expect("a subscription");
            subscription.is_some()
        });
        let mut subscription = subscription.expect("a subscription");
        if changes_before == 0 {
            self.stage.await_that("an image", |_| {
                let _ = self.reader.do_work();
                subscription.image_count() == 1
            });
        }
        for _ in 0..8 {
            self.stage.do_work();
            let _ = self.reader.do_work();
        }
        for _ in 0..MAX_STEPS {
            if input.is_empty() {
                break;
            }
            step(&mut log, &mut publication, &mut subscription, input);
        }
        polls::drain(&mut subscription);
        read_file(&log.file);
        drop(subscription);
        let _ = self.reader.do_work();
    }
}

fn step(
    log: &mut Shared,
    publication: &mut ExclusivePublication,
    subscription: &mut Subscription,
    input: &mut Input<'_>,
) {
    match input.byte() % 4 {
        0 | 1 => log.change_log(input),
        2 => polls::poll(subscription, input),
        _ => {
            // The cause of a refused message is of no interest here.
            let length = usize::from(input.half()) % (TERM_LENGTH as usize / 8);
            let _ = publication.offer(&vec![b'o'; length]);
        }
    }
}

/// Reads everything that is in a log buffer, as `rusteron log` does.
fn read_file(file: &File) {
    const PAYLOAD_LIMIT: usize = 64;
    let mut log = match LogFile::open(file) {
        Ok(log) => log,
        Err(fault) => {
            black_box(fault.to_string());
            return;
        }
    };
    black_box(format!("{:?}", log.metadata));
    for partition in 0..PARTITION_COUNT {
        let mut end = 0;
        for entry in log.entries(partition, PAYLOAD_LIMIT) {
            let (start, length) = match &entry {
                Entry::Frame(frame) => {
                    assert!(frame.payload.len() <= PAYLOAD_LIMIT);
                    black_box((frame.flags.to_string(), frame.frame_type.to_string()));
                    (frame.offset, u64::from(frame.length).next_multiple_of(HEADER_LENGTH))
                }
                Entry::Gap { offset, length, .. } => (*offset, *length),
                Entry::Fault { offset, reason, .. } => {
                    black_box(reason);
                    (*offset, 0)
                }
            };
            assert_eq!(start, end, "what is found lies side by side");
            end = start + length;
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    thread_local! {
        static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
    }
    MACHINE.with_borrow_mut(|machine| {
        let running = machine.get_or_insert_with(Machine::launch);
        running.run(&mut Input::new(bytes));
        if running.inputs == INPUTS_PER_DRIVER || running.reader.is_closed() {
            *machine = None;
        }
    });
});
