//! Loops of a fixed number of messages through Rust and through C, for callgrind to count and for
//! clocks to time.
//!
//! `.ci/instructions` runs the program of this package under valgrind, and reads the cost of the
//! functions of the module [`measured`], with everything that they call. `benchmark calls` times
//! the same functions.

use std::hint::black_box;
use std::thread;

use rusteron_client::{Aeron, Context, Error, ExclusivePublication, Publication, Subscription};
use rusteron_media_driver::MediaDriver;

/// The number of messages of each loop. With their headers they take not quite half a term, which
/// is the window of a publication: none is refused, and no term ends.
pub const MESSAGES: usize = 8_000;
const CHANNEL: &str = "aeron:ipc?term-length=1m";
const STREAM_ID: i32 = 1001;

type Receive = fn(&mut Subscription);
type SendExclusively = fn(&mut ExclusivePublication, &[&[u8]]);
type SendShared = fn(&Publication, &[&[u8]]);

/// A loop with its name: the language, an underscore, the call.
type Named<F> = (&'static str, F);

/// A stream needs both ends, so the loops come in pairs. The second loop of some is not measured.
const EXCLUSIVE: [(Named<SendExclusively>, Named<Receive>); 5] = [
    (("rust_offer", measured::rust_offer), ("rust_poll_fragments", measured::rust_poll_fragments)),
    (("c_offer", measured::c_offer), ("c_poll_fragments", measured::c_poll_fragments)),
    (("rust_claim", measured::rust_claim), ("rust_poll", measured::rust_poll)),
    (("c_claim", measured::c_claim), ("c_poll", measured::c_poll)),
    (
        ("rust_offer_batch", measured::rust_offer_batch),
        ("rust_poll_batch", measured::rust_poll_batch),
    ),
];
const SHARED: [(Named<SendShared>, Named<Receive>); 5] = [
    (
        ("rust_shared_offer", measured::rust_shared_offer),
        ("rust_controlled_poll", measured::rust_controlled_poll),
    ),
    (
        ("c_shared_offer", measured::c_shared_offer),
        ("c_controlled_poll", measured::c_controlled_poll),
    ),
    (("rust_shared_claim", measured::rust_shared_claim), ("", drain)),
    (("c_shared_claim", measured::c_shared_claim), ("", drain)),
    (("rust_shared_offer_batch", measured::rust_shared_offer_batch), ("", drain)),
];

/// Runs each loop once, each pair on a stream of its own. `around` gets the name of a loop, and
/// runs it.
///
/// # Errors
/// If the driver does not start, or a stream cannot be added.
pub fn run(mut around: impl FnMut(&'static str, &mut dyn FnMut())) -> Result<(), Error> {
    let driver = MediaDriver::launch_embedded()?;
    let mut context = Context::new()?;
    context.set_dir(driver.aeron_dir())?;
    let aeron = Aeron::connect(context)?;
    // The compiler is to know neither the length nor that it is always the same.
    let message = black_box([7; 32]);
    let messages = black_box(vec![&message[..]; MESSAGES]);

    for ((sending, send), (receiving, receive)) in EXCLUSIVE {
        let mut publication = aeron.add_exclusive_publication(CHANNEL, STREAM_ID)?;
        let mut subscription = subscribe(&aeron, || publication.is_connected())?;
        around(sending, &mut || send(&mut publication, &messages));
        around(receiving, &mut || receive(&mut subscription));
    }
    for ((sending, send), (receiving, receive)) in SHARED {
        let publication = aeron.add_publication(CHANNEL, STREAM_ID)?;
        let mut subscription = subscribe(&aeron, || publication.is_connected())?;
        around(sending, &mut || send(&publication, &messages));
        around(receiving, &mut || receive(&mut subscription));
    }
    Ok(())
}

/// A subscription to the only publication there is.
fn subscribe(aeron: &Aeron, is_connected: impl Fn() -> bool) -> Result<Subscription, Error> {
    let subscription = aeron.add_subscription(CHANNEL, STREAM_ID)?;
    while !(is_connected() && subscription.image_count() == 1) {
        thread::yield_now();
    }
    Ok(subscription)
}

/// Receives the messages without being measured.
fn drain(subscription: &mut Subscription) {
    let mut received = 0;
    while received < MESSAGES {
        received += subscription.poll(|_, _| {}, MESSAGES).expect("open");
    }
}

/// The loops that are measured. They are not inlined, so that callgrind knows them by their names.
pub mod measured {
    use std::ffi::c_void;
    use std::mem::MaybeUninit;
    use std::ptr;

    use rusteron_client::{
        Action, ExclusivePublication, Header, Messages, Publication, Subscription,
    };
    use rusteron_sys as sys;

    use super::MESSAGES;

    const FRAGMENT_LIMIT: usize = 10;
    const BATCH: usize = 10;

    /// The loops that send messages on one kind of publication.
    macro_rules! sending {
        (
            $publication:ty,
            [$rust_offer:ident, $rust_claim:ident, $rust_offer_batch:ident],
            [$c_offer:ident = $offer:ident, $c_claim:ident = $try_claim:ident]
        ) => {
            /// Offers each message.
            #[inline(never)]
            pub fn $rust_offer(publication: $publication, messages: &[&[u8]]) {
                for message in messages {
                    publication.offer(message).expect("within the window");
                }
            }

            /// Claims, copies and commits each message.
            #[inline(never)]
            pub fn $rust_claim(publication: $publication, messages: &[&[u8]]) {
                for message in messages {
                    let mut claim =
                        publication.try_claim(message.len()).expect("within the window");
                    claim.copy_from_slice(message);
                    claim.commit().expect("in time");
                }
            }

            /// Offers the messages in batches.
            #[inline(never)]
            pub fn $rust_offer_batch(publication: $publication, messages: &[&[u8]]) {
                for batch in messages.chunks(BATCH) {
                    assert_eq!(publication.offer_batch(batch).accepted, BATCH);
                }
            }

            /// Offers each message.
            #[inline(never)]
            pub fn $c_offer(publication: $publication, messages: &[&[u8]]) {
                for message in messages {
                    let (data, length) = (message.as_ptr(), message.len());
                    // SAFETY: the publication is live, and is shared or `&mut` its only user; the
                    // message is readable.
                    let position = unsafe {
                        sys::$offer(publication.as_ptr(), data, length, None, ptr::null_mut())
                    };
                    assert!(position > 0);
                }
            }

            /// Claims, copies and commits each message.
            #[inline(never)]
            pub fn $c_claim(publication: $publication, messages: &[&[u8]]) {
                for message in messages {
                    // SAFETY: as for the offer; the claim is filled in, as long as the message, and
                    // its own.
                    unsafe {
                        let mut claim = MaybeUninit::uninit();
                        let (publication, length) = (publication.as_ptr(), message.len());
                        let position = sys::$try_claim(publication, length, claim.as_mut_ptr());
                        assert!(position > 0);
                        commit(claim.assume_init(), message);
                    }
                }
            }
        };
    }

    sending!(
        &mut ExclusivePublication,
        [rust_offer, rust_claim, rust_offer_batch],
        [
            c_offer = aeron_exclusive_publication_offer,
            c_claim = aeron_exclusive_publication_try_claim
        ]
    );
    sending!(
        &Publication,
        [rust_shared_offer, rust_shared_claim, rust_shared_offer_batch],
        [c_shared_offer = aeron_publication_offer, c_shared_claim = aeron_publication_try_claim]
    );

    /// # Safety
    /// C has filled the claim in for this message, and no other code uses the claim.
    #[inline(always)]
    unsafe fn commit(mut claim: sys::aeron_buffer_claim_t, message: &[u8]) {
        // SAFETY: by the contract.
        unsafe {
            claim.data.copy_from_nonoverlapping(message.as_ptr(), message.len());
            assert_eq!(sys::aeron_buffer_claim_commit(&mut claim), 0);
        }
    }

    /// Loops that poll until all messages are received. `count` adds the lengths of what a handler
    /// gets.
    macro_rules! polling {
        ($($name:ident = $poll:ident(
            |$bytes:ident, $message:ident: $message_type:ty $(, $header:ty)?| $count:expr
        );)+) => {$(
            /// Polls messages, fragments or batches.
            #[inline(never)]
            pub fn $name(subscription: &mut Subscription) {
                let mut $bytes = 0;
                let mut received = 0;
                while received < MESSAGES {
                    let count = |$message: $message_type $(, _: $header)?| $count;
                    received += subscription.$poll(count, FRAGMENT_LIMIT).expect("open");
                }
                assert_eq!($bytes, 32 * MESSAGES);
            }
        )+};
    }

    polling! {
        rust_poll_fragments =
            poll_fragments(|bytes, message: &[u8], &Header<'_>| bytes += message.len());
        rust_poll = poll(|bytes, message: &[u8], &Header<'_>| bytes += message.len());
        rust_controlled_poll = controlled_poll(|bytes, message: &[u8], &Header<'_>| {
            bytes += message.len();
            Action::Continue
        });
        rust_poll_batch = poll_batch(|bytes, messages: &mut Messages<'_>| {
            bytes += messages.map(|(message, _)| message.len()).sum::<usize>();
        });
    }

    /// Polls fragments.
    #[inline(never)]
    pub fn c_poll_fragments(subscription: &mut Subscription) {
        let mut bytes = 0_usize;
        let mut received = 0;
        while received < MESSAGES {
            // SAFETY: the subscription is live and `&mut` its only user; `count` gets the address
            // of a number that no other code uses.
            received += unsafe {
                let clientd = (&raw mut bytes).cast();
                let subscription = subscription.as_ptr();
                sys::aeron_subscription_poll(subscription, Some(count), clientd, FRAGMENT_LIMIT)
            } as usize;
        }
        assert_eq!(bytes, 32 * MESSAGES);
    }

    /// Loops that poll through an assembler.
    macro_rules! polling_with_assembler {
        ($(
            $name:ident: $create:ident($count:ident), $poll:ident, $handler:ident, $delete:ident;
        )+) => {$(
            /// Polls through the assembler.
            #[inline(never)]
            pub fn $name(subscription: &mut Subscription) {
                let mut bytes = 0_usize;
                let mut assembler = ptr::null_mut();
                let mut received = 0;
                // SAFETY: as in `c_poll_fragments`; the assembler is deleted after its last use.
                unsafe {
                    let clientd = (&raw mut bytes).cast();
                    assert_eq!(sys::$create(&mut assembler, Some($count), clientd), 0);
                    while received < MESSAGES {
                        received += sys::$poll(
                            subscription.as_ptr(),
                            Some(sys::$handler),
                            assembler.cast(),
                            FRAGMENT_LIMIT,
                        ) as usize;
                    }
                    sys::$delete(assembler);
                }
                assert_eq!(bytes, 32 * MESSAGES);
            }
        )+};
    }

    polling_with_assembler! {
        c_poll: aeron_fragment_assembler_create(count), aeron_subscription_poll,
            aeron_fragment_assembler_handler, aeron_fragment_assembler_delete;
        c_controlled_poll: aeron_controlled_fragment_assembler_create(count_and_continue),
            aeron_subscription_controlled_poll, aeron_controlled_fragment_assembler_handler,
            aeron_controlled_fragment_assembler_delete;
    }

    unsafe extern "C" fn count(
        clientd: *mut c_void,
        _: *const u8,
        length: usize,
        _: *mut sys::aeron_header_t,
    ) {
        // SAFETY: every caller passes the address of its own number.
        unsafe { *clientd.cast::<usize>() += length };
    }

    unsafe extern "C" fn count_and_continue(
        clientd: *mut c_void,
        data: *const u8,
        length: usize,
        header: *mut sys::aeron_header_t,
    ) -> sys::aeron_controlled_fragment_handler_action_t {
        // SAFETY: as there.
        unsafe { count(clientd, data, length, header) };
        sys::aeron_controlled_fragment_handler_action_en_AERON_ACTION_CONTINUE
    }
}
