//! Every poll for fragments and blocks in Rust against Aeron's C function for it.

use std::ffi::c_void;
use std::slice;

use super::comparison::{Contender, Handler, compare, control, receive};
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

#[test]
fn fragments_and_blocks() {
    compare(
        1,
        8,
        1,
        |contender, call, handler| {
            let Contender { subscription, .. } = contender;
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
        |contender, call, handler| {
            let (subscription, image) = (contender.subscription.as_ptr(), contender.image());
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
fn several_images_take_turns() {
    compare(
        3,
        3,
        2,
        |contender, call, handler| {
            match call.kind {
                0 => contender
                    .subscription
                    .poll_fragments(|payload, header| handler.receive(payload, header), call.limit),
                1 => contender.subscription.controlled_poll_fragments(
                    |payload, header| handler.control(payload, header),
                    call.limit,
                ),
                _ => contender.subscription.block_poll(
                    |block, session_id, term_id| {
                        handler.blocks.push((block.to_vec(), session_id, term_id));
                    },
                    call.block_length_limit,
                ),
            }
            .expect("open")
        },
        |contender, call, handler| {
            let (subscription, clientd) = (contender.subscription.as_ptr(), handler.clientd());
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
