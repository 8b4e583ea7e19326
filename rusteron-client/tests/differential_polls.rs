//! Every poll in Rust against Aeron's C function for it: on two drivers with the same messages, both
//! give the same fragments and end at the same positions.

mod support;

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::{ptr, slice};

use rusteron_client::{Action, Aeron, ExclusivePublication, Header, Position, Subscription};
use rusteron_media_driver::MediaDriver;
use rusteron_sys as sys;
use support::{Random, await_that, connect, launch, offer};

/// Begins shortly before the end of a term with a high id, so that ids wrap around on the way.
fn channel(session_id: i32) -> String {
    format!(
        "aeron:ipc?term-length=64k|session-id={session_id}|\
         init-term-id=2147483646|term-id=2147483647|term-offset=64000"
    )
}

/// Streams on a driver of their own. Fields are dropped in order: clients before the driver.
struct Side {
    publications: Vec<ExclusivePublication>,
    subscription: Subscription,
    _aeron: Aeron,
    _driver: MediaDriver,
}

impl Side {
    fn new(publishers: i32) -> Self {
        let driver = launch();
        let aeron = connect(&driver);
        let subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
        let publications = (1..=publishers)
            .map(|session_id| {
                let publication = aeron
                    .add_exclusive_publication(channel(session_id), 1001)
                    .expect("a publication");
                // So that the images come in the same order on both sides.
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

/// What a handler is given, and what it answers.
struct Handler {
    fragments: Vec<Fragment>,
    blocks: Vec<(Vec<u8>, i32, i32)>,
    actions: Random,
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

unsafe extern "C" fn receive(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    header: *mut sys::aeron_header_t,
) {
    // SAFETY: the tests pass a handler that nobody else uses meanwhile.
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

/// What one call gets besides its handler.
#[derive(Debug, Clone, Copy)]
struct Call {
    kind: usize,
    limit: usize,
    limit_position: Position,
    block_length_limit: usize,
}

/// Offers the same random messages on both sides, calls both forms of a random poll, and compares,
/// until a good number of terms has gone by.
fn compare(
    publishers: i32,
    kinds: usize,
    seed: u64,
    mut in_rust: impl FnMut(&mut Side, Call, &mut Handler) -> usize,
    mut in_c: impl FnMut(&mut Side, Call, &mut Handler) -> i64,
) {
    const TERMS: i64 = 12;
    let (mut rust, mut c) = (Side::new(publishers), Side::new(publishers));
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

#[test]
fn polls_of_fragments_and_blocks() {
    compare(
        1,
        8,
        1,
        |side, call, handler| {
            let Side { subscription, .. } = side;
            let receive = |payload: &[u8], header: &Header<'_>| handler.receive(payload, header);
            match call.kind {
                0 => return subscription.poll_fragments(receive, call.limit).expect("open"),
                1 => {
                    let mut image = subscription.image_at_index(0).expect("an image");
                    return image.poll_fragments(receive, call.limit);
                }
                2 => {
                    let mut image = subscription.image_at_index(0).expect("an image");
                    return image.bounded_poll_fragments(receive, call.limit_position, call.limit);
                }
                _ => {}
            }
            let block = |block: &[u8], session_id, term_id| {
                handler.blocks.push((block.to_vec(), session_id, term_id))
            };
            match call.kind {
                3 => return subscription.block_poll(block, call.block_length_limit).expect("open"),
                4 => {
                    let mut image = subscription.image_at_index(0).expect("an image");
                    return image.block_poll(block, call.block_length_limit);
                }
                _ => {}
            }
            let control = |payload: &[u8], header: &Header<'_>| handler.control(payload, header);
            match call.kind {
                5 => subscription.controlled_poll_fragments(control, call.limit).expect("open"),
                6 => {
                    let mut image = subscription.image_at_index(0).expect("an image");
                    image.controlled_poll_fragments(control, call.limit)
                }
                _ => {
                    let mut image = subscription.image_at_index(0).expect("an image");
                    image.bounded_controlled_poll_fragments(
                        control,
                        call.limit_position,
                        call.limit,
                    )
                }
            }
        },
        |side, call, handler| {
            let (subscription, image) = (side.subscription.as_ptr(), side.image());
            let (clientd, limit) = (handler.clientd(), call.limit);
            // SAFETY: subscription and image are live and used by this thread only; `clientd` is what
            // the handlers expect and outlives the call.
            unsafe {
                match call.kind {
                    0 => sys::aeron_subscription_poll(subscription, Some(receive), clientd, limit)
                        .into(),
                    1 => sys::aeron_image_poll(image, Some(receive), clientd, limit).into(),
                    2 => sys::aeron_image_bounded_poll(
                        image,
                        Some(receive),
                        clientd,
                        call.limit_position,
                        limit,
                    )
                    .into(),
                    3 => sys::aeron_subscription_block_poll(
                        subscription,
                        Some(receive_block),
                        clientd,
                        call.block_length_limit,
                    ) as i64,
                    4 => sys::aeron_image_block_poll(
                        image,
                        Some(receive_block),
                        clientd,
                        call.block_length_limit,
                    )
                    .into(),
                    5 => sys::aeron_subscription_controlled_poll(
                        subscription,
                        Some(control),
                        clientd,
                        limit,
                    )
                    .into(),
                    6 => sys::aeron_image_controlled_poll(image, Some(control), clientd, limit)
                        .into(),
                    _ => sys::aeron_image_bounded_controlled_poll(
                        image,
                        Some(control),
                        clientd,
                        call.limit_position,
                        limit,
                    )
                    .into(),
                }
            }
        },
    );
}

#[test]
fn polls_of_several_images_take_turns() {
    compare(
        3,
        3,
        2,
        |side, call, handler| {
            match call.kind {
                0 => side
                    .subscription
                    .poll_fragments(|payload, header| handler.receive(payload, header), call.limit),
                1 => side.subscription.controlled_poll_fragments(
                    |payload, header| handler.control(payload, header),
                    call.limit,
                ),
                _ => side.subscription.block_poll(
                    |block, session_id, term_id| {
                        handler.blocks.push((block.to_vec(), session_id, term_id));
                    },
                    call.block_length_limit,
                ),
            }
            .expect("open")
        },
        |side, call, handler| {
            let (subscription, clientd) = (side.subscription.as_ptr(), handler.clientd());
            // SAFETY: as above.
            unsafe {
                match call.kind {
                    0 => sys::aeron_subscription_poll(
                        subscription,
                        Some(receive),
                        clientd,
                        call.limit,
                    )
                    .into(),
                    1 => sys::aeron_subscription_controlled_poll(
                        subscription,
                        Some(control),
                        clientd,
                        call.limit,
                    )
                    .into(),
                    _ => sys::aeron_subscription_block_poll(
                        subscription,
                        Some(receive_block),
                        clientd,
                        call.block_length_limit,
                    ) as i64,
                }
            }
        },
    );
}

/// C's handler of an assembler, whose own handler then finds the test's.
struct Redirect(*mut Handler);

unsafe extern "C" fn receive_redirected(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    header: *mut sys::aeron_header_t,
) {
    // SAFETY: the tests pass a redirection to a handler that nobody else uses meanwhile.
    unsafe { receive((*clientd.cast::<Redirect>()).0.cast(), buffer, length, header) };
}

unsafe extern "C" fn control_redirected(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    header: *mut sys::aeron_header_t,
) -> sys::aeron_controlled_fragment_handler_action_t {
    // SAFETY: as above.
    unsafe { control((*clientd.cast::<Redirect>()).0.cast(), buffer, length, header) }
}

/// How whole messages are polled for in Rust.
#[derive(Clone, Copy)]
enum Form {
    /// By the subscription and its images.
    Own,
    /// By polls of fragments with an assembler.
    Assembler,
}

fn polls_of_messages(publishers: i32, form: Form, seed: u64) {
    let mut redirect = Redirect(ptr::null_mut());
    let mut assembler = ptr::null_mut();
    let clientd = (&raw mut redirect).cast();
    // SAFETY: C makes an assembler that calls the handler with the redirection, which outlives it.
    let created = unsafe {
        sys::aeron_fragment_assembler_create(&mut assembler, Some(receive_redirected), clientd)
    };
    assert_eq!(created, 0);
    let mut in_rust = rusteron_client::FragmentAssembler::new();
    compare(
        publishers,
        if publishers == 1 { 3 } else { 1 },
        seed,
        |side, call, handler| {
            let Side { subscription, .. } = side;
            let receive = |payload: &[u8], header: &Header<'_>| handler.receive(payload, header);
            match (call.kind, form) {
                (0, Form::Own) => subscription.poll(receive, call.limit).expect("open"),
                (0, Form::Assembler) => {
                    subscription.poll_fragments(in_rust.handler(receive), call.limit).expect("open")
                }
                (kind, form) => {
                    let mut image = subscription.image_at_index(0).expect("an image");
                    let (position, limit) = (call.limit_position, call.limit);
                    match (kind, form) {
                        (1, Form::Own) => image.poll(receive, limit),
                        (1, Form::Assembler) => {
                            image.poll_fragments(in_rust.handler(receive), limit)
                        }
                        (_, Form::Own) => image.bounded_poll(receive, position, limit),
                        (_, Form::Assembler) => {
                            image.bounded_poll_fragments(in_rust.handler(receive), position, limit)
                        }
                    }
                }
            }
        },
        |side, call, handler| {
            let (subscription, image) = (side.subscription.as_ptr(), side.image());
            // SAFETY: as above, and the assembler is live and finds the handler.
            unsafe {
                (*clientd.cast::<Redirect>()).0 = handler;
                let handler: sys::aeron_fragment_handler_t =
                    Some(sys::aeron_fragment_assembler_handler);
                let (limit, clientd) = (call.limit, assembler.cast());
                match call.kind {
                    0 => sys::aeron_subscription_poll(subscription, handler, clientd, limit),
                    1 => sys::aeron_image_poll(image, handler, clientd, limit),
                    _ => sys::aeron_image_bounded_poll(
                        image,
                        handler,
                        clientd,
                        call.limit_position,
                        limit,
                    ),
                }
                .into()
            }
        },
    );
    // SAFETY: made above and not used any more.
    unsafe { sys::aeron_fragment_assembler_delete(assembler) };
}

fn controlled_polls_of_messages(publishers: i32, form: Form, seed: u64) {
    let mut redirect = Redirect(ptr::null_mut());
    let mut assembler = ptr::null_mut();
    let clientd = (&raw mut redirect).cast();
    // SAFETY: as above.
    let created = unsafe {
        sys::aeron_controlled_fragment_assembler_create(
            &mut assembler,
            Some(control_redirected),
            clientd,
        )
    };
    assert_eq!(created, 0);
    let mut in_rust = rusteron_client::FragmentAssembler::new();
    let mut of_image = rusteron_client::ImageFragmentAssembler::new();
    compare(
        publishers,
        if publishers == 1 { 3 } else { 1 },
        seed,
        |side, call, handler| {
            let Side { subscription, .. } = side;
            let control = |payload: &[u8], header: &Header<'_>| handler.control(payload, header);
            match (call.kind, form, publishers) {
                (0, Form::Own, _) => {
                    subscription.controlled_poll(control, call.limit).expect("open")
                }
                (0, Form::Assembler, 1) => subscription
                    .controlled_poll_fragments(of_image.controlled_handler(control), call.limit)
                    .expect("open"),
                (0, Form::Assembler, _) => subscription
                    .controlled_poll_fragments(in_rust.controlled_handler(control), call.limit)
                    .expect("open"),
                (kind, form, _) => {
                    let mut image = subscription.image_at_index(0).expect("an image");
                    let (position, limit) = (call.limit_position, call.limit);
                    match (kind, form) {
                        (1, Form::Own) => image.controlled_poll(control, limit),
                        (1, Form::Assembler) => image
                            .controlled_poll_fragments(of_image.controlled_handler(control), limit),
                        (_, Form::Own) => image.bounded_controlled_poll(control, position, limit),
                        (_, Form::Assembler) => image.bounded_controlled_poll_fragments(
                            of_image.controlled_handler(control),
                            position,
                            limit,
                        ),
                    }
                }
            }
        },
        |side, call, handler| {
            let (subscription, image) = (side.subscription.as_ptr(), side.image());
            // SAFETY: as above.
            unsafe {
                (*clientd.cast::<Redirect>()).0 = handler;
                let handler: sys::aeron_controlled_fragment_handler_t =
                    Some(sys::aeron_controlled_fragment_assembler_handler);
                let (limit, clientd) = (call.limit, assembler.cast());
                match call.kind {
                    0 => sys::aeron_subscription_controlled_poll(
                        subscription,
                        handler,
                        clientd,
                        limit,
                    ),
                    1 => sys::aeron_image_controlled_poll(image, handler, clientd, limit),
                    _ => sys::aeron_image_bounded_controlled_poll(
                        image,
                        handler,
                        clientd,
                        call.limit_position,
                        limit,
                    ),
                }
                .into()
            }
        },
    );
    // SAFETY: made above and not used any more.
    unsafe { sys::aeron_controlled_fragment_assembler_delete(assembler) };
}

#[test]
fn polls_of_whole_messages() {
    polls_of_messages(1, Form::Own, 3);
    polls_of_messages(3, Form::Own, 4);
}

#[test]
fn polls_with_an_assembler() {
    polls_of_messages(1, Form::Assembler, 5);
    polls_of_messages(3, Form::Assembler, 6);
}

#[test]
fn controlled_polls_of_whole_messages() {
    controlled_polls_of_messages(1, Form::Own, 7);
    controlled_polls_of_messages(3, Form::Own, 8);
}

#[test]
fn controlled_polls_with_an_assembler() {
    controlled_polls_of_messages(1, Form::Assembler, 9);
    controlled_polls_of_messages(3, Form::Assembler, 10);
}
