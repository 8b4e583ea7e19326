//! Records and messages that no driver sends to its clients. Each process in the driver's directory can write
//! them.

use std::sync::{Arc, Mutex};
use std::thread;

use rusteron_client::Aeron;
use rusteron_media_driver::{DriverInvoker, MediaDriver};
use rusteron_test_support::{
    ForgedCnc, await_some, await_that, context, launch_with_long_timeouts,
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

/// Numbers of four bytes, one behind the other. A number of eight bytes is its low and its high half.
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
