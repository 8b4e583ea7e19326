//! Every poll for fragments and blocks in Rust against Aeron's C function for it.

use std::ffi::c_void;
use std::slice;

use super::comparison::{Call, Contender, Handler, compare, control, receive};
use rusteron_client::Header;
use rusteron_sys as sys;

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
    let handler = std::cell::RefCell::new(handler);
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
    // SAFETY: subscription and image are live and used by this thread only; `clientd` is what the handlers expect
    // and outlives the call.
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
