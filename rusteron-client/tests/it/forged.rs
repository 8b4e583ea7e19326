//! What no driver, publisher or stream writes, but each process in the driver's directory can:
//! records and messages to clients, images, and frames with lengths beyond their term; a datagram
//! can claim an image as well. They are refused before anything is read through them.

use std::ffi::c_void;
use std::net::UdpSocket;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use rusteron_client::{Action, Aeron, Subscription, SystemCounter};
use rusteron_media_driver::{DriverInvoker, MediaDriver};
use rusteron_sys as sys;
use rusteron_test_support::{
    DEADLINE, ForgedCnc, await_some, await_that, connect, context, free_port, launch,
    launch_with_long_timeouts, log_file, offer,
};

const ERROR: i32 = 0x0F01;
const AVAILABLE_IMAGE: i32 = 0x0F02;
const PUBLICATION_READY: i32 = 0x0F03;
const OPERATION_SUCCESS: i32 = 0x0F04;
const SUBSCRIPTION_READY: i32 = 0x0F07;
const COUNTER_READY: i32 = 0x0F08;
const UNAVAILABLE_COUNTER: i32 = 0x0F09;
const STATIC_COUNTER: i32 = 0x0F0B;
const PUBLICATION_ERROR: i32 = 0x0F0C;
const NEXT_SESSION_ID: i32 = 0x0F0D;

type Errors = Arc<Mutex<Vec<String>>>;

fn client(dir: &std::path::Path, is_invoked: bool) -> (Aeron, Errors) {
    let errors = Errors::default();
    let mut context = context(dir);
    let texts = Arc::clone(&errors);
    context
        .set_use_conductor_agent_invoker(is_invoked)
        .and_then(|context| {
            context.set_error_handler(move |error| {
                texts.lock().expect("no panic").push(error.to_string());
            })
        })
        .expect("settings");
    (Aeron::connect(context).expect("a client"), errors)
}

/// A client that gets a forged record closes, says why, and can be dropped.
fn close_by(driver: &MediaDriver, length: i32, type_id: i32) {
    let (aeron, errors) = client(driver.aeron_dir(), false);
    ForgedCnc::open(driver.aeron_dir()).broadcast_record(length, type_id, &[0; 24]);
    await_that("the client closes", || aeron.is_closed());
    await_that("the error", || !errors.lock().expect("no panic").is_empty());
    let error = errors.lock().expect("no panic").remove(0);
    assert!(error.contains("no driver writes such a record"), "{error}");
    assert!(error.contains(&format!(" length={length} ")), "{error}");
    drop(aeron);
}

#[test]
fn record_of_any_length_closes_client() {
    let driver = Arc::new(launch_with_long_timeouts());
    let lengths = [0, 7, -1, -8, i32::MIN, 1 << 30, i32::MAX, i32::MAX - 7, 1 << 20, (1 << 17) + 9];
    // A client that hangs is one of a thread, which outlasts the test.
    let forging = thread::spawn({
        let driver = Arc::clone(&driver);
        move || {
            for length in lengths {
                for type_id in [OPERATION_SUCCESS, 0, i32::MAX] {
                    close_by(&driver, length, type_id);
                }
            }
            close_by(&driver, 0, -1);
            close_by(&driver, i32::MAX, -1);
        }
    });
    await_that("all clients are closed", || forging.is_finished());
    forging.join().expect("closed clients");
}

/// Numbers of four bytes, one behind the other. A number of eight bytes is its low and its high
/// half.
fn numbers(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

#[test]
fn message_with_any_length_or_counter_is_refused() {
    let settings = rusteron_media_driver::DriverContext::new().expect("a context");
    let mut driver = DriverInvoker::launch_embedded(settings).expect("a driver");
    driver.do_work().expect("work");
    let dir = driver.aeron_dir().to_owned();
    let (aeron, errors) = client(&dir, true);
    let forged = ForgedCnc::open(&dir);
    let mut subscription = aeron.async_add_subscription("aeron:ipc", 1).expect("a registration");
    let _subscription = await_some("the subscription", || {
        driver.do_work().expect("work");
        aeron.do_work().expect("work");
        subscription.poll().expect("no error")
    });
    // The driver does not answer.
    let mut publication = aeron.async_add_publication("aeron:ipc", 1).expect("a registration");
    let id = publication.registration_id() as i32;
    let image = subscription.registration_id() as i32;

    let mut refuse = |reason: &str, type_id: i32, message: &[u8]| {
        forged.broadcast(type_id, message);
        await_that("the error", || {
            aeron.do_work().expect("work");
            !errors.lock().expect("no panic").is_empty()
        });
        let error = errors.lock().expect("no panic").remove(0);
        assert!(error.contains(&format!("message refused: {reason}")), "{type_id:x} {error}");
        assert!(publication.poll().expect("no error").is_none(), "{type_id:x}");
    };
    for length in [-1, i32::MIN, 9, i32::MAX] {
        let text = "length of the text";
        refuse(text, ERROR, &numbers(&[id, 0, 1, length, 0]));
        let frame = [[0; 16].as_slice(), &[length, 0]].concat();
        refuse(text, PUBLICATION_ERROR, &numbers(&frame));
        let name = "length of a name";
        refuse(name, PUBLICATION_READY, &numbers(&[id, 0, id, 0, 1, 1, 3, -1, length, 0]));
        refuse(name, AVAILABLE_IMAGE, &numbers(&[id, 0, 1, 1, image, 0, 3, length, 0, 0]));
        refuse(name, AVAILABLE_IMAGE, &numbers(&[id, 0, 1, 1, image, 0, 3, 4, 0, length, 0]));
    }
    // Longer than the array on the stack that C copies it into.
    let long = [numbers(&[id, 0, id, 0, 1, 1, 3, -1, 4096]), vec![b'x'; 4096]].concat();
    refuse("length of a name", PUBLICATION_READY, &long);
    let long = [numbers(&[id, 0, 1, 1, image, 0, 3, 4096]), vec![b'x'; 4096 + 4]].concat();
    refuse("length of a name", AVAILABLE_IMAGE, &long);

    let counter = "no such counter";
    for counter_id in [1 << 20, i32::MAX] {
        refuse(counter, PUBLICATION_READY, &numbers(&[id, 0, id, 0, 1, 1, counter_id, -1, 0]));
        refuse(counter, PUBLICATION_READY, &numbers(&[id, 0, id, 0, 1, 1, 3, counter_id, 0]));
        refuse(counter, SUBSCRIPTION_READY, &numbers(&[id, 0, counter_id]));
    }
    for counter_id in [-1, i32::MIN, 1 << 20, i32::MAX] {
        for type_id in [COUNTER_READY, UNAVAILABLE_COUNTER, STATIC_COUNTER] {
            refuse(counter, type_id, &numbers(&[id, 0, counter_id]));
        }
    }
    refuse(counter, PUBLICATION_READY, &numbers(&[id, 0, id, 0, 1, 1, -1, -1, 0]));

    // A resource of another type than the request's.
    for type_id in [SUBSCRIPTION_READY, COUNTER_READY, STATIC_COUNTER, NEXT_SESSION_ID] {
        refuse("another request", type_id, &numbers(&[id, 0, 3]));
    }
    refuse("another request", OPERATION_SUCCESS, &numbers(&[id, 0]));

    for type_id in [
        ERROR,
        AVAILABLE_IMAGE,
        PUBLICATION_READY,
        OPERATION_SUCCESS,
        SUBSCRIPTION_READY,
        COUNTER_READY,
        UNAVAILABLE_COUNTER,
        STATIC_COUNTER,
        PUBLICATION_ERROR,
        NEXT_SESSION_ID,
    ] {
        refuse("too short", type_id, &[0; 7]);
    }

    // The client goes on with what the driver sends.
    let _publication = await_some("the publication", || {
        driver.do_work().expect("work");
        aeron.do_work().expect("work");
        publication.poll().expect("no error")
    });
    assert!(!aeron.is_closed());
    assert_eq!(errors.lock().expect("no panic").as_slice(), [""; 0]);
}

const TERM_LENGTH: i64 = 64 * 1024;

/// A SETUP frame.
fn setup(session_id: i32, initial_term_id: i32, active_term_id: i32, term_length: i32) -> Vec<u8> {
    const STREAM_ID: i32 = 1001;
    let mut frame = 40_i32.to_le_bytes().to_vec();
    // Version, flags, type.
    frame.extend([0, 0, 5, 0]);
    let (term_offset, mtu, ttl) = (0, 1408, 0);
    for number in
        [term_offset, session_id, STREAM_ID, initial_term_id, active_term_id, term_length, mtu, ttl]
    {
        frame.extend(i32::to_le_bytes(number));
    }
    frame
}

/// Every kind of poll. None of them finds anything.
fn poll_in_vain(subscription: &mut Subscription) {
    assert_eq!(subscription.poll(|_, _| unreachable!(), 10), Ok(0));
    assert_eq!(subscription.poll_fragments(|_, _| unreachable!(), 10), Ok(0));
    assert_eq!(subscription.controlled_poll(|_, _| Action::Continue, 10), Ok(0));
    assert_eq!(subscription.poll_batch(|messages| assert!(messages.next().is_none()), 10), Ok(0));
    assert_eq!(subscription.block_poll(|_, _, _| unreachable!(), 4096), Ok(0));
    for mut image in subscription.images() {
        let position = image.position();
        let _ = image.controlled_peek(position, |_, _| Action::Continue, i64::MAX);
        let _ = image.set_position(position + 32);
    }
}

#[test]
fn setup_before_the_first_term() {
    let driver = launch();
    let aeron = connect(&driver);
    let endpoint = ("127.0.0.1", free_port());
    let channel = format!("aeron:udp?endpoint={}:{}", endpoint.0, endpoint.1);
    let mut subscription = aeron.add_subscription(channel, 1001).expect("a subscription");
    let cnc = driver.cnc_file().expect("the CnC file");
    let invalid = || SystemCounter::InvalidPackets.read(&cnc.counters()).expect("the counter");
    let before = invalid();

    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut sent = 0;
    for term_length in [1 << 16, 1 << 22, 1 << 30] {
        for (initial, active) in [(7, 6), (7, 0), (0, -1), (i32::MIN, i32::MAX), (0, i32::MIN)] {
            let frame = setup(sent as i32, initial, active, term_length);
            socket.send_to(&frame, endpoint).expect("a datagram");
            sent += 1;
            await_that("the driver counts it as invalid", || {
                poll_in_vain(&mut subscription);
                invalid() >= before + sent
            });
        }
    }
    assert_eq!(subscription.image_count(), 0);

    // A term after the first is a position to join at.
    socket.send_to(&setup(1, 7, 8, 1 << 16), endpoint).expect("a datagram");
    await_that("the image", || {
        poll_in_vain(&mut subscription);
        subscription.image_count() == 1
    });
    let image = subscription.image_at_index(0).expect("the image");
    assert_eq!(image.join_position(), TERM_LENGTH);
}

/// Number of mappings of the log buffer in this process.
fn mappings(dir: &Path, original_registration_id: i64) -> usize {
    let name = dir.join(format!("publications/{original_registration_id}.logbuffer"));
    let name = name.to_str().expect("a Unicode directory");
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter(|line| line.ends_with(name)).count()
}

/// The driver computes with positions, too: it does no work while one is wrong.
#[test]
fn position_outside_its_stream() {
    const SUBSCRIBER_POSITION: i32 = 4;
    const CHANNEL: &str = "aeron:ipc?term-length=64k";
    let mut settings = rusteron_media_driver::DriverContext::new().expect("a context");
    settings
        .set_client_liveness_timeout(10 * DEADLINE)
        .and_then(|settings| settings.set_publication_unblock_timeout(20 * DEADLINE))
        .expect("settings");
    let mut driver = DriverInvoker::launch_embedded(settings).expect("a driver");
    let dir = driver.aeron_dir().to_owned();
    let connect = |errors: &Arc<Mutex<Vec<String>>>| {
        let mut context = context(&dir);
        context.set_use_conductor_agent_invoker(true).expect("a setting");
        let errors = Arc::clone(errors);
        context
            .set_error_handler(move |error| {
                errors.lock().expect("no panic").push(error.to_string())
            })
            .expect("a handler");
        Aeron::connect(context).expect("a client")
    };
    let (unexpected, errors) = (Arc::default(), Arc::default());
    driver.do_work().expect("work");
    let (publisher, subscriber) = (connect(&unexpected), connect(&errors));
    let mut registration = publisher.async_add_publication(CHANNEL, 1001).expect("a registration");
    let publication = await_some("the publication", || {
        driver.do_work().expect("work");
        publisher.do_work().expect("work");
        registration.poll().expect("no error")
    });
    let cnc = driver.cnc_file().expect("the CnC file");
    let counter = || {
        let counters = cnc.counters();
        let mut positions = counters.iter().filter(|it| it.type_id == SUBSCRIBER_POSITION);
        positions.next()
    };
    let forged = ForgedCnc::open(&dir);
    let mapped = mappings(&dir, publication.registration_id());

    let last = TERM_LENGTH << 31;
    for position in [-TERM_LENGTH, -32, 7, last + 32, i64::MAX, i64::MIN] {
        let mut registration =
            subscriber.async_add_subscription(CHANNEL, 1001).expect("a registration");
        let joined = await_some("the counter of its position", || {
            // The command, and then the answers, which the client does not see yet.
            if errors.lock().expect("no panic").is_empty() && counter().is_none() {
                subscriber.do_work().expect("work");
                driver.do_work().expect("work");
            }
            counter()
        });
        forged.write_counter(joined.id, position);
        let mut subscription = await_some("the subscription", || {
            subscriber.do_work().expect("work");
            registration.poll().expect("no error")
        });
        await_that("the error", || {
            subscriber.do_work().expect("work");
            poll_in_vain(&mut subscription);
            !errors.lock().expect("no panic").is_empty()
        });
        let error = errors.lock().expect("no panic").remove(0);
        assert!(error.contains(&format!("image refused: position {position} ")), "{error}");
        assert_eq!(subscription.image_count(), 0);
        assert_eq!(mappings(&dir, publication.registration_id()), mapped);
        forged.write_counter(joined.id, joined.value);
        drop(subscription);
        await_that("the driver has removed it", || {
            subscriber.do_work().expect("work");
            driver.do_work().expect("work");
            counter().is_none()
        });
    }

    // A position within the stream is no reason.
    let mut registration =
        subscriber.async_add_subscription(CHANNEL, 1001).expect("a registration");
    let mut subscription = await_some("the subscription", || {
        subscriber.do_work().expect("work");
        driver.do_work().expect("work");
        registration.poll().expect("no error")
    });
    await_that("the image", || {
        subscriber.do_work().expect("work");
        driver.do_work().expect("work");
        subscription.image_at_index(0).is_some()
    });
    // Later, such a position counts as unknown, and the last one stays.
    let joined = counter().expect("its position");
    poll_in_vain(&mut subscription);
    for outside in [-TERM_LENGTH, -32, 7, last + 32, i64::MAX, i64::MIN] {
        forged.write_counter(joined.id, outside);
        poll_in_vain(&mut subscription);
        let image = subscription.image_at_index(0).expect("the image");
        assert_eq!(image.position(), joined.value, "{outside}");
    }
    forged.write_counter(joined.id, joined.value);
    assert_eq!(unexpected.lock().expect("no panic").as_slice(), [""; 0]);
}

unsafe extern "C" fn receive(
    clientd: *mut c_void,
    _buffer: *const u8,
    length: usize,
    _header: *mut sys::aeron_header_t,
) {
    // SAFETY: the lengths of `poll_c`.
    unsafe { &mut *clientd.cast::<Vec<usize>>() }.push(length);
}

unsafe extern "C" fn control(
    clientd: *mut c_void,
    buffer: *const u8,
    length: usize,
    header: *mut sys::aeron_header_t,
) -> sys::aeron_controlled_fragment_handler_action_t {
    // SAFETY: C passes a frame and the address that it was given.
    unsafe { receive(clientd, buffer, length, header) };
    // The frame comes again.
    sys::aeron_controlled_fragment_handler_action_en_AERON_ACTION_ABORT
}

/// Returns the lengths of the fragments that C's polls find.
fn poll_c(subscription: *mut sys::aeron_subscription_t) -> Vec<usize> {
    let mut lengths = Vec::<usize>::new();
    let clientd = (&raw mut lengths).cast();
    // SAFETY: the subscription is live, and used by this thread only. The handlers take the
    // lengths.
    unsafe {
        sys::aeron_subscription_controlled_poll(subscription, Some(control), clientd, 10);
        sys::aeron_subscription_poll(subscription, Some(receive), clientd, 10);
    }
    lengths
}

#[test]
fn length_outside_term_is_unpublished() {
    const TERM_LENGTH: i32 = 64 * 1024;
    let driver = launch_with_long_timeouts();
    let aeron = connect(&driver);
    let mut subscription =
        aeron.add_subscription("aeron:ipc?term-length=64k", 1).expect("a subscription");
    let mut publication =
        aeron.add_exclusive_publication("aeron:ipc?term-length=64k", 1).expect("a publication");
    await_that("the image", || subscription.image_count() == 1 && publication.is_connected());
    let log = log_file(&driver, publication.original_registration_id());
    // Once at the beginning of the term, once near its end.
    let mut offset = 0;
    for _ in 0..2 {
        offer(&mut publication, b"message");
        let left = TERM_LENGTH - offset;
        let lengths = [i32::MIN, -64, 1, 31, left + 1, left + 32, 1 << 30, i32::MAX - 31, i32::MAX];
        for length in lengths {
            log.write_all_at(&length.to_ne_bytes(), offset as u64).expect("a length");
            assert_eq!(poll_c(subscription.as_ptr()), [0; 0], "{length} at {offset}");
            assert_eq!(subscription.poll(|_, _| unreachable!(), 10), Ok(0), "{length}");
            assert_eq!(subscription.controlled_poll(|_, _| Action::Continue, 10), Ok(0));
            assert_eq!(subscription.block_poll(|_, _, _| unreachable!(), 1 << 20), Ok(0));
        }
        log.write_all_at(&39_i32.to_ne_bytes(), offset as u64).expect("a length");
        assert_eq!(poll_c(subscription.as_ptr()), [7, 7]);
        offset += 64;
        while offset < TERM_LENGTH - 64 {
            offer(&mut publication, &[0; 32]);
            assert_eq!(subscription.poll(|_, _| (), 1), Ok(1));
            offset += 64;
        }
    }
}
