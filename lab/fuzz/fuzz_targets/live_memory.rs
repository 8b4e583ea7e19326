//! Files of a running driver that another process writes anything to, while a client publishes, polls, adds and closes:
//! log buffers and `cnc.dat`, with the driver's answers. A second client maps log buffers that were changed before.
//!
//! An input is a list of steps. The driver computes with positions and tails of its clients, see the remaining risks in
//! docs/design/threats.md. So each of its turns finds its files without the changes: they are undone before. Its
//! answers can be changed before the client sees them.

#![no_main]

use std::cell::RefCell;
use std::hint::black_box;
use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use libfuzzer_sys::fuzz_target;
use rusteron_client::{
    Aeron, Context, Counter, ExclusivePublication, Publication, Publisher, Subscription,
};
use rusteron_fuzz::input::Input;
use rusteron_fuzz::log_buffer::{Shared, TERM_LENGTH};
use rusteron_fuzz::polls;
use rusteron_fuzz::stage::Stage;

const INPUTS_PER_DRIVER: u32 = 64;
const MAX_STEPS: usize = 64;
/// Refused clients wait.
const MAX_CONNECTS: u32 = 2;
/// How long a connecting client waits for a `cnc.dat` that is in order.
const SHORT_DRIVER_TIMEOUT: Duration = Duration::from_millis(20);

/// A channel whose term ids do not depend on chance.
const CHANNEL: &str = "aeron:ipc?term-length=64k|init-term-id=100|term-id=100|term-offset=0";

struct Client {
    aeron: Aeron,
    exclusive: ExclusivePublication,
    shared: Publication,
    subscription: Subscription,
    counter: Counter,
    logs: [Shared; 2],
    connects: u32,
}

struct Machine {
    stage: Stage,
    cnc: Shared,
    /// Starts of the buffers in `cnc.dat`, and the end of the last one.
    bounds: [u64; 6],
    /// Position in the to-clients buffer before the driver's last turn.
    answers: u64,
    /// Counters of the input's client.
    counter_ids: Vec<i32>,
    inputs: u32,
}

impl Machine {
    fn launch() -> Self {
        let stage = Stage::launch(|_| Ok(()));
        let cnc = Shared::open(&stage.driver.aeron_dir().join("cnc.dat")).expect("a file");
        let mut bounds = [128; 6];
        for index in 0..5 {
            bounds[index + 1] = bounds[index] + cnc.number(4 * index as u64 + 4) as u64;
        }
        Self { stage, cnc, bounds, answers: 0, counter_ids: Vec::new(), inputs: 0 }
    }

    /// The trailer of the to-driver buffer: positions, correlation id, heartbeat.
    fn trailer(&self) -> u64 {
        self.bounds[1] - 768
    }

    fn context(&self) -> Context {
        let mut context = Context::new().expect("a context");
        context
            .set_dir(self.stage.driver.aeron_dir())
            .and_then(|context| context.set_use_conductor_agent_invoker(true))
            .and_then(|context| context.set_error_handler(|error| _ = black_box(error.to_string())))
            .expect("valid settings");
        context
    }

    fn connect(&self) -> Option<Aeron> {
        // The driver's heartbeat, so that the result does not depend on the machine's speed.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
        let heartbeat = self.trailer() + 640;
        self.cnc.file.write_all_at(&(now as u64).to_le_bytes(), heartbeat).expect("a heartbeat");
        let mut context = self.context();
        context.set_driver_timeout(SHORT_DRIVER_TIMEOUT).expect("a valid setting");
        Aeron::connect(context).ok()
    }

    fn client(&mut self, input: &mut Input<'_>) -> Client {
        let context = self.context();
        let stage = &mut self.stage;
        stage.aeron = Aeron::connect(context).expect("a client");
        let aeron = stage.aeron.clone();
        let stream_id = self.inputs as i32;
        let position = input.choose(&[
            "init-term-id=100|term-id=100|term-offset=0",
            "init-term-id=2147483647|term-id=-2147483648|term-offset=65472",
        ]);
        let channel =
            |session_id| format!("aeron:ipc?term-length=64k|session-id={session_id}|{position}");
        let adding = aeron.async_add_subscription("aeron:ipc", stream_id);
        let mut subscription = stage.added(adding).expect("a subscription");
        let adding = aeron.async_add_exclusive_publication(channel(1), stream_id);
        let exclusive = stage.added(adding).expect("a publication");
        let adding = aeron.async_add_publication(channel(2), stream_id);
        let shared = stage.added(adding).expect("a publication");
        let adding = aeron.async_add_counter(1001, b"key", "label");
        let counter = stage.added(adding).expect("a counter");
        stage.await_that("both images", |stage| {
            stage.do_work();
            subscription.image_count() == 2
        });
        let ids = [exclusive.original_registration_id(), shared.original_registration_id()];
        let logs = ids.map(|id| self.log(id).expect("a log buffer"));
        let positions = subscription.images().map(|image| image.subscriber_position_id());
        self.counter_ids = [
            exclusive.constants().publication_limit_counter_id,
            shared.constants().publication_limit_counter_id,
            counter.counter_id(),
        ]
        .into_iter()
        .chain(positions)
        .collect();
        Client { aeron, exclusive, shared, subscription, counter, logs, connects: 0 }
    }

    fn log(&self, id: i64) -> Option<Shared> {
        Shared::log(self.stage.driver.aeron_dir(), id)
    }

    fn run(&mut self, input: &mut Input<'_>) {
        self.inputs += 1;
        let mut client = self.client(input);
        for _ in 0..MAX_STEPS {
            if input.is_empty() {
                break;
            }
            self.step(&mut client, input);
        }
        polls::drain(&mut client.subscription);
        // Closes with the changes, or without.
        if input.byte() % 2 == 0 {
            self.restore(&mut client);
        }
        let Client { aeron, exclusive, shared, subscription, counter, mut logs, .. } = client;
        drop((exclusive, shared, subscription, counter));
        let _ = aeron.do_work();
        logs.iter_mut().for_each(Shared::restore);
        self.cnc.restore();
    }

    /// Otherwise, the driver waits for commands that a client was made to claim elsewhere.
    fn is_idle(&mut self) -> bool {
        let _ = self.stage.driver.do_work();
        let [tail, head] = [128, 384].map(|field| self.number_of(self.trailer() + field));
        tail == head
    }

    /// Undoes all changes. Then the driver takes commands, makes log buffers, and answers.
    fn let_driver_work(&mut self, client: &mut Client) {
        self.restore(client);
        self.answers = self.number_of(self.bounds[2] - 120);
        for _ in 0..4 {
            let _ = self.stage.driver.do_work();
        }
    }

    fn restore(&mut self, client: &mut Client) {
        client.logs.iter_mut().for_each(Shared::restore);
        self.cnc.restore();
    }

    fn step(&mut self, client: &mut Client, input: &mut Input<'_>) {
        match input.byte() % 12 {
            0 => client.logs[usize::from(input.byte() % 2)].change_log(input),
            1 | 2 => self.change_cnc(input),
            3 => polls::poll(&mut client.subscription, input),
            4 => publish_exclusive(&mut client.exclusive, input),
            5 => publish_shared(&mut client.shared, input),
            6 => {
                // An answer comes into sight after the next changes.
                self.let_driver_work(client);
            }
            7 => _ = client.aeron.do_work(),
            8 => self.add(client, input),
            9 => {
                let _ = black_box((client.exclusive.position(), client.exclusive.position_limit()));
                let _ = black_box((client.shared.position(), client.shared.available_window()));
                black_box((client.exclusive.channel_status(), client.shared.is_connected()));
                black_box((client.counter.get(), client.counter.constants()));
                let counters = client.aeron.counters_reader();
                black_box(counters.iter().count());
            }
            10 => {
                if client.connects < MAX_CONNECTS {
                    client.connects += 1;
                    self.attach(client, input);
                }
            }
            _ => client.counter.set(input.long()),
        }
    }

    /// Has another client, if it is not refused, map a log buffer that was changed before.
    fn attach(&mut self, client: &mut Client, input: &mut Input<'_>) {
        let Some(aeron) = self.connect() else { return };
        let stream_id = self.inputs as i32;
        let kind = input.byte() % 3;
        let changes = input.byte() % 8;
        macro_rules! attach {
            ($adding:expr, $is_own:expr, $used:expr) => {
                if let Ok(mut adding) = $adding {
                    self.let_driver_work(client);
                    let mut own = if $is_own { self.log(adding.registration_id()) } else { None };
                    for _ in 0..changes {
                        own.as_mut().unwrap_or(&mut client.logs[1]).change_log(input);
                    }
                    for _ in 0..4 {
                        let _ = aeron.do_work();
                    }
                    if let Ok(Some(mut added)) = adding.poll() {
                        $used(&mut added, &mut *input);
                    }
                    if let Some(log) = &mut own {
                        log.restore();
                    }
                }
            };
        }
        match kind {
            0 => attach!(
                aeron.async_add_publication("aeron:ipc?session-id=2", stream_id),
                false,
                publish_shared
            ),
            1 => attach!(
                aeron.async_add_exclusive_publication(CHANNEL, stream_id),
                true,
                publish_exclusive
            ),
            _ => attach!(aeron.async_add_subscription("aeron:ipc", stream_id), false, polls::poll),
        }
    }

    /// Changes the header, a record, a trailer, or a counter.
    fn change_cnc(&mut self, input: &mut Input<'_>) {
        let [to_driver, to_clients, metadata, values, errors, _] = self.bounds;
        let (offset, end) = match input.byte() % 8 {
            0 => (4 * u64::from(input.byte() % 16), 128),
            // Positions, correlation ids and the heartbeat of the commands.
            1 => (self.trailer() + 128 * u64::from(input.byte() % 6), to_clients),
            2 => (
                to_driver + 8 * u64::from(input.half()) % (to_clients - to_driver - 768),
                to_clients,
            ),
            // The intended tail, the tail, the latest record.
            3 => (metadata - 128 + 8 * u64::from(input.byte() % 3), metadata),
            // The answers of the driver's last turn.
            4 | 5 => {
                let capacity = metadata - 128 - to_clients;
                let position = self.answers + 4 * u64::from(input.byte());
                (to_clients + position % capacity, metadata)
            }
            6 => {
                let field = input.choose(&[0, 4, 8, 16, 24, 32, 128, 132]);
                (metadata + 512 * self.counter_id(input) + field, values)
            }
            _ => {
                let field = input.choose(&[0, 8, 16, 24]);
                (values + 128 * self.counter_id(input) + field, errors)
            }
        };
        self.cnc.change(input, offset, end);
    }

    /// Which ids a stream gets depends on the inputs before.
    fn counter_id(&self, input: &mut Input<'_>) -> u64 {
        let byte = input.byte();
        self.counter_ids.get(usize::from(byte)).map_or(byte.into(), |&id| id as u64)
    }

    fn number_of(&self, offset: u64) -> u64 {
        let half = |offset| u64::from(self.cnc.number(offset) as u32);
        half(offset) | half(offset + 4) << 32
    }

    /// Adds a resource; its answer can be changed before the client takes it.
    fn add(&mut self, client: &mut Client, input: &mut Input<'_>) {
        // Of no input's own streams.
        let stream_id = -1 - i32::from(input.byte());
        let kind = input.byte();
        let changes = usize::from(input.byte() % 8);
        let aeron = client.aeron.clone();
        // Sends the command, lets the driver answer, changes the answer.
        macro_rules! add {
            ($adding:expr) => {
                if let Ok(mut adding) = $adding {
                    let _ = aeron.do_work();
                    self.let_driver_work(client);
                    for _ in 0..changes {
                        self.change_cnc(input);
                    }
                    for _ in 0..4 {
                        let _ = aeron.do_work();
                    }
                    let _ = adding.poll();
                }
            };
        }
        match kind % 6 {
            0 => add!(aeron.async_add_subscription("aeron:ipc", self.inputs as i32)),
            1 => add!(aeron.async_add_publication(CHANNEL, stream_id)),
            2 => {
                add!(aeron.async_add_exclusive_publication(CHANNEL, stream_id))
            }
            3 => add!(aeron.async_add_counter(1001, b"key", "label")),
            4 => add!(aeron.async_add_static_counter(1001, b"key", "label", i64::from(stream_id))),
            _ => add!(aeron.async_next_session_id(stream_id)),
        }
    }
}

/// Publishes in one of the five ways of both kinds. The cause of a refused message is of no interest here.
fn publish(publisher: &mut impl Publisher, way: u8, message: &[u8], input: &mut Input<'_>) {
    match way {
        0 => _ = publisher.offer(message),
        1 => _ = publisher.offer_parts(&[IoSlice::new(message), IoSlice::new(b"part")]),
        2 => _ = black_box(publisher.offer_batch(&[message, message])),
        3 => {
            if let Ok(mut claim) = publisher.try_claim(message.len() % 1024) {
                claim.fill(b'c');
                if input.byte() % 2 == 0 {
                    let _ = claim.commit();
                }
            }
        }
        _ => _ = publisher.offer_with_reserved_value(message, |_| 7),
    }
}

fn message(input: &mut Input<'_>) -> Vec<u8> {
    vec![b'o'; usize::from(input.half()) % (TERM_LENGTH as usize / 8)]
}

fn publish_shared(publication: &mut Publication, input: &mut Input<'_>) {
    let message = message(input);
    let way = input.byte() % 5;
    publish(publication, way, &message, input);
}

fn publish_exclusive(publication: &mut ExclusivePublication, input: &mut Input<'_>) {
    let message = message(input);
    let length = message.len();
    match input.byte() % 7 {
        way @ 0..5 => publish(publication, way, &message, input),
        5 => _ = publication.append_padding(length),
        _ => {
            // One frame as it has to be at this position.
            let Ok(position) = publication.position() else { return };
            let frame_length = (length % 1024).next_multiple_of(32) + 32;
            let term_count = (position / TERM_LENGTH as i64) as i32;
            let term_id = publication.constants().initial_term_id.wrapping_add(term_count);
            let mut frame = vec![0; frame_length];
            frame[..4].copy_from_slice(&(frame_length as i32).to_le_bytes());
            frame[4..8].copy_from_slice(&[0, 0xc0, 1, 0]);
            frame[8..12].copy_from_slice(&((position % TERM_LENGTH as i64) as i32).to_le_bytes());
            frame[12..16].copy_from_slice(&publication.session_id().to_le_bytes());
            frame[16..20].copy_from_slice(&publication.stream_id().to_le_bytes());
            frame[20..24].copy_from_slice(&term_id.to_le_bytes());
            let _ = publication.offer_block(&frame);
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
        if running.inputs == INPUTS_PER_DRIVER || !running.is_idle() {
            *machine = None;
        }
    });
});
