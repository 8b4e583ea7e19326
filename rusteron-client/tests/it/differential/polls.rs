//! Every poll for fragments and blocks in Rust next to Aeron's C function for it. On two drivers
//! with the same messages, both have to give the same fragments and to end at the same positions.

use std::cell::RefCell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::{ptr, slice};

use rusteron_client::{Action, Aeron, ExclusivePublication, Header, Position, Subscription};
use rusteron_media_driver::MediaDriver;
use rusteron_sys as sys;
use rusteron_test_support::{Random, await_that, connect, launch, offer};

/// Begins shortly before the end of a term with a high id, so that ids wrap around on the way.
fn channel(session_id: i32) -> String {
    format!(
        "aeron:ipc?term-length=64k|session-id={session_id}|\
         init-term-id=2147483646|term-id=2147483647|term-offset=64000"
    )
}

/// The streams of one contender, Rust or C, on a driver of their own. Fields are dropped in order:
/// clients before the driver.
struct Contender {
    publications: Vec<ExclusivePublication>,
    subscription: Subscription,
    _aeron: Aeron,
    _driver: MediaDriver,
}

impl Contender {
    fn new(publishers: i32) -> Self {
        let driver = launch();
        let aeron = connect(&driver);
        let subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
        let publications = (1..=publishers)
            .map(|session_id| {
                let publication = aeron
                    .add_exclusive_publication(channel(session_id), 1001)
                    .expect("a publication");
                // So that the images come in the same order for both contenders.
                await_that("the image", || subscription.image_count() == session_id as usize);
                publication
            })
            .collect();
        Self { publications, subscription, _aeron: aeron, _driver: driver }
    }

    fn positions(&mut self) -> Vec<Position> {
        self.subscription.images().map(|image| image.position()).collect()
    }

    /// The first image, for C's functions.
    fn image(&mut self) -> *mut sys::aeron_image_t {
        self.subscription.image_at_index(0).expect("an image").as_ptr()
    }
}

/// A handler that retains its arguments, and chooses its answers at random.
struct Handler {
    fragments: Vec<Fragment>,
    blocks: Vec<(Vec<u8>, i32, i32)>,
    actions: Random,
}

impl Handler {
    fn new(seed: u64) -> Self {
        Self { fragments: Vec::new(), blocks: Vec::new(), actions: Random::new(seed) }
    }

    fn receive(&mut self, payload: &[u8], header: &Header<'_>) {
        self.fragments.push(Fragment {
            payload: payload.to_vec(),
            position: header.position(),
            frame_length: header.frame_length(),
            version_and_type: (header.version(), header.frame_type()),
            flags: header.flags(),
            term_offset: header.term_offset(),
            next_term_offset: header.next_term_offset(),
            ids: [
                header.session_id(),
                header.stream_id(),
                header.term_id(),
                header.initial_term_id(),
            ],
            reserved_value: header.reserved_value(),
            position_bits_to_shift: header.position_bits_to_shift(),
        });
    }

    fn act(&mut self) -> Action {
        [Action::Continue, Action::Commit, Action::Continue, Action::Break, Action::Abort]
            [self.actions.below(5)]
    }

    fn control(&mut self, payload: &[u8], header: &Header<'_>) -> Action {
        self.receive(payload, header);
        self.act()
    }

    fn clientd(&mut self) -> *mut c_void {
        ptr::from_mut(self).cast()
    }

    fn receive_from_c(
        &mut self,
        buffer: *const u8,
        length: usize,
        header: *mut sys::aeron_header_t,
    ) {
        let mut values = MaybeUninit::<sys::aeron_header_values_t>::uninit();
        // SAFETY: C passes a live header and a readable payload, and fills the values in.
        let (payload, position, next_term_offset, position_bits_to_shift, values) = unsafe {
            assert_eq!(sys::aeron_header_values(header, values.as_mut_ptr()), 0);
            (
                slice::from_raw_parts(buffer, length).to_vec(),
                sys::aeron_header_position(header),
                sys::aeron_header_next_term_offset(header),
                sys::aeron_header_position_bits_to_shift(header),
                values.assume_init(),
            )
        };
        let frame = values.frame;
        self.fragments.push(Fragment {
            payload,
            position,
            frame_length: frame.frame_length as usize,
            version_and_type: (frame.version as u8, frame.type_ as u16),
            flags: frame.flags,
            term_offset: frame.term_offset,
            next_term_offset,
            ids: [frame.session_id, frame.stream_id, frame.term_id, values.initial_term_id],
            reserved_value: frame.reserved_value,
            position_bits_to_shift,
        });
    }
}

#[derive(Debug, PartialEq)]
struct Fragment {
    payload: Vec<u8>,
    position: Position,
    frame_length: usize,
    version_and_type: (u8, u16),
    flags: u8,
    term_offset: i32,
    next_term_offset: i32,
    ids: [i32; 4],
    reserved_value: i64,
    position_bits_to_shift: usize,
}

unsafe extern "C" fn receive(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    header: *mut sys::aeron_header_t,
) {
    // SAFETY: the tests pass a handler that only this call uses.
    unsafe { &mut *clientd.cast::<Handler>() }.receive_from_c(buffer, length, header);
}

unsafe extern "C" fn control(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    header: *mut sys::aeron_header_t,
) -> sys::aeron_controlled_fragment_handler_action_t {
    // SAFETY: as above.
    let handler = unsafe { &mut *clientd.cast::<Handler>() };
    handler.receive_from_c(buffer, length, header);
    match handler.act() {
        Action::Abort => sys::aeron_controlled_fragment_handler_action_en_AERON_ACTION_ABORT,
        Action::Break => sys::aeron_controlled_fragment_handler_action_en_AERON_ACTION_BREAK,
        Action::Commit => sys::aeron_controlled_fragment_handler_action_en_AERON_ACTION_COMMIT,
        Action::Continue => sys::aeron_controlled_fragment_handler_action_en_AERON_ACTION_CONTINUE,
    }
}

/// The arguments of one call besides its handler.
#[derive(Debug, Clone, Copy)]
struct Call {
    kind: usize,
    limit: usize,
    limit_position: Position,
    block_length_limit: usize,
}

/// Offers the same random messages to both contenders, calls both forms of a random poll, and
/// compares, until a good number of terms has gone by.
fn compare(
    publishers: i32,
    kinds: usize,
    seed: u64,
    mut in_rust: impl FnMut(&mut Contender, Call, &mut Handler) -> usize,
    mut in_c: impl FnMut(&mut Contender, Call, &mut Handler) -> i64,
) {
    const TERMS: i64 = 12;
    let (mut rust, mut c) = (Contender::new(publishers), Contender::new(publishers));
    let mut random = Random::new(seed);
    let constants = rust.publications[0].constants().clone();
    let term_length = constants.term_buffer_length as i64;
    let mut received = 0;
    let first = rust.positions()[0];
    for round in 0.. {
        assert!(round < 1_000_000, "the polls do not get on");
        let positions = rust.positions();
        if positions[0] - first > TERMS * term_length {
            break;
        }
        for (index, position) in positions.iter().enumerate() {
            // No more than the publisher is let ahead of the subscriber.
            let unread = rust.publications[index].position().expect("open") - position;
            if unread > term_length / 8 || random.below(3) == 0 {
                continue;
            }
            let length = match random.below(8) {
                0 => constants.max_payload_length - 2 + random.below(5),
                1 => random.below(constants.max_message_length + 1),
                2 => 0,
                _ => random.below(200),
            };
            let message = random.bytes(length);
            let rust_position = offer(&mut rust.publications[index], &message);
            assert_eq!(rust_position, offer(&mut c.publications[index], &message));
        }
        let call = Call {
            kind: random.below(kinds),
            limit: random.below(7),
            limit_position: match random.below(8) {
                0 => Position::MAX,
                1 => Position::MIN,
                2 => positions[0],
                3 => positions[0] + 32 * random.below(100) as i64,
                _ => positions[0] + random.below(6_000) as i64 - 500,
            },
            block_length_limit: match random.below(6) {
                0 => 1 << 30,
                1 => 32 * random.below(3),
                _ => random.below(8_000),
            },
        };
        let seed = random.below(1 << 30) as u64;
        let (mut by_rust, mut by_c) = (Handler::new(seed), Handler::new(seed));
        let returned = in_rust(&mut rust, call, &mut by_rust);
        let expected = in_c(&mut c, call, &mut by_c);
        assert_eq!(returned as i64, expected, "round {round}: {call:?}");
        assert!(by_rust.blocks == by_c.blocks, "round {round}: other blocks after {call:?}");
        assert_eq!(by_rust.fragments.len(), by_c.fragments.len(), "round {round}: {call:?}");
        for (one, other) in by_rust.fragments.iter().zip(&by_c.fragments) {
            assert!(one == other, "round {round}, {call:?}: {one:?} and {other:?}");
        }
        assert_eq!(rust.positions(), c.positions(), "round {round}: {call:?}");
        received += by_rust.fragments.len() + by_rust.blocks.len();
    }
    assert!(received > 100, "only {received} fragments and blocks compared");
}

unsafe extern "C" fn receive_block(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    session_id: i32,
    term_id: i32,
) {
    // SAFETY: as above.
    let handler = unsafe { &mut *clientd.cast::<Handler>() };
    // SAFETY: C passes a readable block.
    let block = unsafe { slice::from_raw_parts(buffer, length) }.to_vec();
    handler.blocks.push((block, session_id, term_id));
}

/// The first of these kinds of polls are a subscription's, the others an image's.
const OF_SUBSCRIPTION: usize = 3;
const ALL: usize = 8;

fn poll_in_rust(contender: &mut Contender, call: Call, handler: &mut Handler) -> usize {
    let Call { kind, limit, limit_position, block_length_limit } = call;
    let subscription = &mut contender.subscription;
    let handler = RefCell::new(handler);
    let receive =
        |payload: &[u8], header: &Header<'_>| handler.borrow_mut().receive(payload, header);
    let control =
        |payload: &[u8], header: &Header<'_>| handler.borrow_mut().control(payload, header);
    let block = |block: &[u8], session_id, term_id| {
        handler.borrow_mut().blocks.push((block.to_vec(), session_id, term_id));
    };
    match kind {
        0 => return subscription.poll_fragments(receive, limit).expect("open"),
        1 => return subscription.controlled_poll_fragments(control, limit).expect("open"),
        2 => return subscription.block_poll(block, block_length_limit).expect("open"),
        _ => {}
    }
    let mut image = subscription.image_at_index(0).expect("an image");
    match kind {
        3 => image.poll_fragments(receive, limit),
        4 => image.controlled_poll_fragments(control, limit),
        5 => image.block_poll(block, block_length_limit),
        6 => image.bounded_poll_fragments(receive, limit_position, limit),
        _ => image.bounded_controlled_poll_fragments(control, limit_position, limit),
    }
}

fn poll_in_c(contender: &mut Contender, call: Call, handler: &mut Handler) -> i64 {
    use sys::*;
    let Call { kind, limit, limit_position: end, block_length_limit: length } = call;
    let (subscription, image) = (contender.subscription.as_ptr(), contender.image());
    let (clientd, block) = (handler.clientd(), Some(receive_block as _));
    let (receive, control) = (Some(receive as _), Some(control as _));
    // SAFETY: subscription and image are live and used by this thread only; `clientd` is what the
    // handlers expect and outlives the call.
    unsafe {
        match kind {
            0 => aeron_subscription_poll(subscription, receive, clientd, limit).into(),
            1 => aeron_subscription_controlled_poll(subscription, control, clientd, limit).into(),
            2 => aeron_subscription_block_poll(subscription, block, clientd, length) as i64,
            3 => aeron_image_poll(image, receive, clientd, limit).into(),
            4 => aeron_image_controlled_poll(image, control, clientd, limit).into(),
            5 => aeron_image_block_poll(image, block, clientd, length).into(),
            6 => aeron_image_bounded_poll(image, receive, clientd, end, limit).into(),
            _ => aeron_image_bounded_controlled_poll(image, control, clientd, end, limit).into(),
        }
    }
}

#[test]
fn fragments_and_blocks() {
    compare(1, ALL, 1, poll_in_rust, poll_in_c);
}

#[test]
fn several_images_take_turns() {
    compare(3, OF_SUBSCRIPTION, 2, poll_in_rust, poll_in_c);
}
