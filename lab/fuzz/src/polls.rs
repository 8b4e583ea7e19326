//! Every way to read a subscription.

use std::hint::black_box;

use rusteron_client::{Action, Header, Image, Subscription};

use crate::input::Input;

/// Reads every byte and every number that a handler is given, so that AddressSanitizer sees it.
pub fn look_at(message: &[u8], header: &Header<'_>) {
    black_box(message.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)));
    black_box((header.frame_length(), header.version(), header.frame_type(), header.flags()));
    black_box((header.term_offset(), header.next_term_offset(), header.term_id()));
    black_box((header.session_id(), header.stream_id(), header.reserved_value()));
    black_box((header.position(), header.is_unfragmented(), header.initial_term_id()));
    black_box((header.image_correlation_id(), header.position_bits_to_shift()));
}

fn look_at_block(block: &[u8]) {
    black_box(block.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)));
}

const ACTIONS: [Action; 4] = [Action::Continue, Action::Commit, Action::Break, Action::Abort];

/// One poll of a kind that the input chooses.
pub fn poll(subscription: &mut Subscription, input: &mut Input<'_>) {
    let kind = input.byte();
    let limit = usize::from(input.byte() % 64) + 1;
    // `Closed` is an answer like any other.
    match kind % 16 {
        0 => _ = subscription.poll(look_at, limit),
        1 => _ = subscription.poll_fragments(look_at, limit),
        2 => {
            let is_partial = input.byte() % 2 == 1;
            let _ = subscription.poll_batch(
                |messages| {
                    for (message, header) in messages.by_ref() {
                        look_at(message, &header);
                        if is_partial {
                            break;
                        }
                    }
                },
                limit,
            );
        }
        3 => {
            let action = input.choose(&ACTIONS);
            let handler = |message: &[u8], header: &Header<'_>| {
                look_at(message, header);
                action
            };
            let _ = subscription.controlled_poll(handler, limit);
        }
        4 => {
            let action = input.choose(&ACTIONS);
            let handler = |message: &[u8], header: &Header<'_>| {
                look_at(message, header);
                action
            };
            let _ = subscription.controlled_poll_fragments(handler, limit);
        }
        5 => {
            let length = usize::from(input.half());
            let _ = subscription.block_poll(|block, _, _| look_at_block(block), length);
        }
        6 => {
            black_box((subscription.is_connected(), subscription.image_count()));
            black_box((subscription.is_closed(), subscription.channel_status()));
            let _ = black_box(subscription.local_addresses());
            let _ = black_box(subscription.resolved_endpoint());
            let _ = black_box(format!("{subscription:?}"));
        }
        _ => {
            let kind = input.byte();
            for mut image in subscription.images() {
                poll_image(&mut image, kind, limit, input);
            }
        }
    }
}

fn poll_image(image: &mut Image<'_>, kind: u8, limit: usize, input: &mut Input<'_>) {
    let position = image.position();
    let mut continuing = |message: &[u8], header: &Header<'_>| {
        look_at(message, header);
        Action::Continue
    };
    match kind % 12 {
        0 => _ = image.poll(look_at, limit),
        1 => _ = image.poll_fragments(look_at, limit),
        2 => {
            let end = position.saturating_add(input.near(0, 32).into());
            image.bounded_poll(look_at, end, limit);
        }
        3 => {
            let end = input.long();
            image.bounded_poll_fragments(look_at, end, limit);
        }
        4 => {
            let end = position.saturating_add(input.near(0, 32).into());
            image.bounded_controlled_poll(continuing, end, limit);
        }
        5 => {
            image.controlled_poll_fragments(continuing, limit);
        }
        6 => {
            let end = position.saturating_add(input.near(0, 32).into());
            let start = position.saturating_add(input.near(0, 32).into());
            if let Ok(seen) = image.controlled_peek(start, &mut continuing, end) {
                _ = image.set_position(seen);
            }
            _ = image.controlled_peek(position, continuing, i64::MAX);
        }
        7 => _ = image.set_position(position.saturating_add(input.near(0, 32).into())),
        8 => _ = image.set_position(input.long()),
        9 => _ = image.reject("fuzzed"),
        10 => _ = image.block_poll(|block, _, _| look_at_block(block), usize::from(input.half())),
        _ => {
            black_box((
                image.is_closed(),
                image.is_end_of_stream(),
                image.end_of_stream_position(),
            ));
            black_box((image.active_transport_count(), image.is_publication_revoked()));
            black_box((image.source_identity().len(), image.join_position()));
            black_box((image.term_buffer_length(), image.mtu_length(), image.constants()));
            black_box(format!("{image:?}"));
        }
    }
}

/// Reads all that is there, in each of the ways that move the position.
pub fn drain(subscription: &mut Subscription) {
    for kind in [0, 1, 2, 3, 4, 5] {
        let bytes = [kind, 63, 0, 0xff, 0xff];
        poll(subscription, &mut Input::new(&bytes));
    }
}
