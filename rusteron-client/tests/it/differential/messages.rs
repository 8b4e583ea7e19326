//! Every poll for whole messages in Rust against Aeron's C function with an assembler.

use std::ffi::c_void;
use std::ptr;

use super::comparison::{Contender, Handler, compare, control, receive};
use rusteron_client::{FragmentAssembler, Header, ImageFragmentAssembler};
use rusteron_sys as sys;

/// C's handler of an assembler, whose own handler then finds the test's.
struct Redirect(*mut Handler);

unsafe extern "C" fn receive_redirected(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    header: *mut sys::aeron_header_t,
) {
    // SAFETY: the tests pass a redirection to a handler that only this call uses.
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

/// Numbers of publishers: one, and several whose images take turns.
const PUBLISHERS: [i32; 2] = [1, 3];

/// Forms of the poll for whole messages in Rust.
#[derive(Clone, Copy)]
enum Form {
    /// By the subscription and its images.
    Own,
    /// By polls of fragments with an assembler.
    Assembler,
}

fn polls_of_messages(form: Form, seeds: [u64; 2]) {
    for (publishers, seed) in PUBLISHERS.into_iter().zip(seeds) {
        let mut redirect = Redirect(ptr::null_mut());
        let mut assembler = ptr::null_mut();
        let clientd = (&raw mut redirect).cast();
        // SAFETY: C makes an assembler that calls the handler with the redirection, which outlives it.
        let created = unsafe {
            sys::aeron_fragment_assembler_create(&mut assembler, Some(receive_redirected), clientd)
        };
        assert_eq!(created, 0);
        let mut in_rust = FragmentAssembler::new();
        compare(
            publishers,
            if publishers == 1 { 3 } else { 1 },
            seed,
            |contender, call, handler| {
                let Contender { subscription, .. } = contender;
                let receive =
                    |payload: &[u8], header: &Header<'_>| handler.receive(payload, header);
                match (call.kind, form) {
                    (0, Form::Own) => subscription.poll(receive, call.limit).expect("open"),
                    (0, Form::Assembler) => subscription
                        .poll_fragments(in_rust.handler(receive), call.limit)
                        .expect("open"),
                    (kind, form) => {
                        let mut image = subscription.image_at_index(0).expect("an image");
                        let (position, limit) = (call.limit_position, call.limit);
                        match (kind, form) {
                            (1, Form::Own) => image.poll(receive, limit),
                            (1, Form::Assembler) => {
                                image.poll_fragments(in_rust.handler(receive), limit)
                            }
                            (_, Form::Own) => image.bounded_poll(receive, position, limit),
                            (_, Form::Assembler) => image.bounded_poll_fragments(
                                in_rust.handler(receive),
                                position,
                                limit,
                            ),
                        }
                    }
                }
            },
            |contender, call, handler| {
                let (subscription, image) = (contender.subscription.as_ptr(), contender.image());
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
}

fn controlled_polls_of_messages(form: Form, seeds: [u64; 2]) {
    for (publishers, seed) in PUBLISHERS.into_iter().zip(seeds) {
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
        let mut in_rust = FragmentAssembler::new();
        let mut of_image = ImageFragmentAssembler::new();
        compare(
            publishers,
            if publishers == 1 { 3 } else { 1 },
            seed,
            |contender, call, handler| {
                let Contender { subscription, .. } = contender;
                let control =
                    |payload: &[u8], header: &Header<'_>| handler.control(payload, header);
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
                            (1, Form::Assembler) => image.controlled_poll_fragments(
                                of_image.controlled_handler(control),
                                limit,
                            ),
                            (_, Form::Own) => {
                                image.bounded_controlled_poll(control, position, limit)
                            }
                            (_, Form::Assembler) => image.bounded_controlled_poll_fragments(
                                of_image.controlled_handler(control),
                                position,
                                limit,
                            ),
                        }
                    }
                }
            },
            |contender, call, handler| {
                let (subscription, image) = (contender.subscription.as_ptr(), contender.image());
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
}

#[test]
fn polls_of_whole_messages() {
    polls_of_messages(Form::Own, [3, 4]);
}

#[test]
fn polls_with_an_assembler() {
    polls_of_messages(Form::Assembler, [5, 6]);
}

#[test]
fn controlled_polls_of_whole_messages() {
    controlled_polls_of_messages(Form::Own, [7, 8]);
}

#[test]
fn controlled_polls_with_an_assembler() {
    controlled_polls_of_messages(Form::Assembler, [9, 10]);
}
