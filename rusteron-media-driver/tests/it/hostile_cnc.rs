//! Commands that no client writes, and positions of subscribers that no subscriber has. Each process in the driver's
//! directory can write them.

use std::net::UdpSocket;
use std::sync::mpsc;

use rusteron_client::{Aeron, CncFile, Image, Result, UncheckedChannel};
use rusteron_media_driver::{DriverContext, DriverInvoker};
use rusteron_test_support::{
    DEADLINE, ForgedCnc, await_some, await_that, connect, context, launch, udp_channel,
};

const TERM: i64 = 64 * 1024;
/// The second and the third leave four bytes of a term to be cleaned, over IPC and over UDP.
const POSITIONS: [i64; 6] = [TERM - 4, 2 * TERM - 4, 3 * TERM, 4 * TERM, 5 * TERM, i64::MAX];

fn launch_invoker() -> DriverInvoker {
    DriverInvoker::launch_embedded(DriverContext::new().expect("a context")).expect("a driver")
}

/// A client that this thread runs, too.
fn connect_invoker(driver: &mut DriverInvoker) -> Aeron {
    driver.do_work().expect("work");
    let mut settings = context(driver.aeron_dir());
    settings.set_use_conductor_agent_invoker(true).expect("a setting");
    Aeron::connect(settings).expect("a client")
}

/// Runs both until there is an answer.
fn complete<T>(
    driver: &mut DriverInvoker,
    aeron: &Aeron,
    mut poll: impl FnMut() -> Result<Option<T>>,
) -> T {
    await_some("the answer", || {
        driver.do_work().expect("work");
        aeron.do_work().expect("work");
        poll().expect("no error")
    })
}

/// A publication added by a client that connects. Its commands are read after the forged ones.
fn add_publication(driver: &mut DriverInvoker, stream_id: i32) {
    let aeron = connect_invoker(driver);
    let mut adding = aeron.async_add_publication("aeron:ipc", stream_id).expect("a command");
    let publication = complete(driver, &aeron, || adding.poll());
    drop(publication);
    aeron.do_work().expect("work");
}

#[test]
fn record_of_any_length_is_dropped() {
    const ADD_PUBLICATION: i32 = 1;
    let mut driver = launch_invoker();
    let forged = ForgedCnc::open(driver.aeron_dir());
    for length in [1, 7, 1 << 20, (1 << 20) + 8, 1 << 30, i32::MAX - 7, i32::MAX] {
        for type_id in [ADD_PUBLICATION, -1] {
            forged.command_record(length, type_id, &[0xff; 40]);
            // Reads the commands before it, too. What follows in the buffer would be dropped with it.
            for _ in 0..10 {
                driver.do_work().expect("work");
            }
            add_publication(&mut driver, length);
        }
    }
}

#[test]
fn text_of_any_length_is_refused() {
    let mut driver = launch_invoker();
    let forged = ForgedCnc::open(driver.aeron_dir());
    // The length of the text ends the fixed part of the command.
    let commands =
        [(1, 24), (3, 24), (4, 32), (7, 28), (8, 28), (0xC, 28), (0xD, 28), (0xE, 20), (0x10, 36)];
    for (type_id, fixed_length) in commands {
        for text_length in [-1, i32::MIN, 9, i32::MAX] {
            let mut command = vec![0; fixed_length + 8];
            command[fixed_length - 4..fixed_length].copy_from_slice(&i32::to_ne_bytes(text_length));
            forged.command_record(8 + command.len() as i32, type_id, &command);
            driver.do_work().expect("work");
        }
    }
    add_publication(&mut driver, 1);
    let cnc = driver.cnc_file().expect("the CnC file");
    let errors = cnc.errors();
    let refused: i32 = errors
        .iter()
        .filter(|error| error.text.contains("too short: length=0"))
        .map(|error| error.observation_count)
        .sum();
    assert_eq!(refused as usize, 4 * commands.len(), "{errors:?}");
}

#[test]
fn refused_channels_leave_room_for_other_errors() {
    const LOG_LENGTH: usize = 4 << 20;
    let driver = launch();
    let aeron = connect(&driver);
    let refuse = |channel: &str| {
        aeron.add_publication(UncheckedChannel(channel), 1).expect_err("a wrong channel");
    };
    let filler = "x".repeat(3000);
    for number in 0..2 * LOG_LENGTH / filler.len() {
        refuse(&format!("aeron:udp?endpoint=localhost:1|mtu={number}{filler}"));
    }
    refuse("aeron:ipc?term-length=100");
    let errors = CncFile::open(driver.aeron_dir(), DEADLINE).expect("the CnC file").errors();
    let used: usize = errors.iter().map(|error| error.text.len()).sum();
    assert!((LOG_LENGTH / 3..LOG_LENGTH * 2 / 3).contains(&used), "{used} bytes");
    // The places of both errors, without the rest of the text.
    let places: Vec<_> = errors.iter().rev().take(2).map(|error| &error.text).collect();
    assert!(places.iter().all(|text| text.ends_with(']') && text.contains(".c:")), "{places:?}");
}

#[test]
fn terms_are_cleaned_within_their_bounds() {
    let mut driver = launch_invoker();
    let aeron = connect_invoker(&mut driver);
    let forged = ForgedCnc::open(driver.aeron_dir());
    let channels = ["aeron:ipc?term-length=64k", &format!("{}|term-length=64k", udp_channel())];
    for (stream_id, channel) in (1001..).zip(channels) {
        let mut adding = aeron.async_add_subscription(channel, stream_id).expect("a command");
        let mut subscription = complete(&mut driver, &aeron, || adding.poll());
        let mut adding =
            aeron.async_add_exclusive_publication(channel, stream_id).expect("a command");
        let publication = complete(&mut driver, &aeron, || adding.poll());
        let counter_id = await_some("the image", || {
            driver.do_work().expect("work");
            aeron.do_work().expect("work");
            subscription.images().next().map(|image| image.subscriber_position_id())
        });
        for position in POSITIONS {
            forged.write_counter(counter_id, position);
            for _ in 0..100 {
                driver.do_work().expect("work");
            }
        }
        drop((publication, subscription));
    }
}

/// Aeron copies the reason into an array on the conductor's stack, and sends more bytes of the
/// array than it has filled.
#[test]
fn long_reason_of_rejection_is_shortened() {
    const REJECT_IMAGE: i32 = 0x10;
    const MAX_LENGTH: usize = Image::MAX_REASON_LENGTH;
    let mut driver = launch_invoker();
    driver.do_work().expect("work");
    let (sender, reasons) = mpsc::channel();
    let mut settings = context(driver.aeron_dir());
    settings
        .set_use_conductor_agent_invoker(true)
        .and_then(|settings| {
            settings.set_publication_error_handler(move |error| {
                sender.send(error.message.clone()).expect("a receiver");
            })
        })
        .expect("settings");
    let aeron = Aeron::connect(settings).expect("a client");
    let forged = ForgedCnc::open(driver.aeron_dir());
    let channel = udp_channel();
    let mut adding = aeron.async_add_subscription(&channel, 1001).expect("a command");
    let mut subscription = complete(&mut driver, &aeron, || adding.poll());
    let letters = [4, 999, 1000, 1001, 1003, 1004, 1005, 1016, 1023].map(|n| "A".repeat(n));
    // Two bytes a character, the last of which would be cut in two.
    let umlauts = [format!("A{}", "ä".repeat(500)), format!("A{}", "ä".repeat(511))];
    for reason in letters.into_iter().chain(umlauts) {
        let mut adding = aeron.async_add_exclusive_publication(&channel, 1001).expect("a command");
        let publication = complete(&mut driver, &aeron, || adding.poll());
        let image = await_some("the image", || {
            driver.do_work().expect("work");
            aeron.do_work().expect("work");
            let image = subscription.image_by_session_id(publication.session_id());
            image.map(|image| image.correlation_id())
        });
        // Client, correlation id, image and position.
        let mut command =
            [0, 0, image, 0].into_iter().flat_map(i64::to_ne_bytes).collect::<Vec<_>>();
        command.extend((reason.len() as i32).to_ne_bytes());
        command.extend(reason.as_bytes());
        forged.command_record(8 + command.len() as i32, REJECT_IMAGE, &command);
        let received = await_some("the reason", || {
            driver.do_work().expect("work");
            aeron.do_work().expect("work");
            reasons.try_recv().ok()
        });
        let end =
            (0..=MAX_LENGTH.min(reason.len())).rev().find(|&end| reason.is_char_boundary(end));
        assert_eq!(Some(received.as_str()), end.map(|end| &reason[..end]));
    }
}

/// Aeron copies a part of negative length, which is nearly all memory, into arrays on the stack. A
/// client in Rust refuses such a channel before.
#[test]
fn address_with_misplaced_delimiters_is_refused() {
    const ADD_PUBLICATION: (i32, usize) = (1, 24);
    const ADD_SUBSCRIPTION: (i32, usize) = (4, 32);
    let mut driver = launch_invoker();
    let forged = ForgedCnc::open(driver.aeron_dir());
    let endpoint = udp_channel();
    let interfaces = ["1/2:3", "localhost/24:0", "/[]", "[/]", "[::1]/3]", "%[]", "%[]/8"];
    let channels = ["endpoint=%[]:40123", "endpoint=%[]", "control=%[]:40123|endpoint=127.0.0.1:1"]
        .map(|address| format!("aeron:udp?{address}"))
        .into_iter()
        .chain(interfaces.map(|interface| format!("{endpoint}|interface={interface}")));
    let mut sent = 0;
    for channel in channels {
        for (type_id, fixed_length) in [ADD_PUBLICATION, ADD_SUBSCRIPTION] {
            let mut command = vec![0; fixed_length - 4];
            command.extend((channel.len() as i32).to_ne_bytes());
            command.extend(channel.as_bytes());
            forged.command_record(8 + command.len() as i32, type_id, &command);
            sent += 1;
            await_that("the error", || {
                driver.do_work().expect("work");
                let errors = driver.cnc_file().expect("the CnC file").errors();
                let refused = errors.iter().filter(|it| it.text.contains("host address invalid"));
                refused.map(|error| error.observation_count).sum::<i32>() == sent
            });
        }
    }
    add_publication(&mut driver, 1);
}

fn await_status_message(driver: &mut DriverInvoker, publisher: &UdpSocket) {
    await_some("a status message", || {
        driver.do_work().expect("work");
        publisher.recv(&mut [0; 64]).ok()
    });
}

/// A Rust client does not send this command for such a destination.
#[test]
fn removed_destination_gets_no_status_message() {
    const REMOVE_RCV_DESTINATION: i32 = 0xD;
    let mut driver = launch_invoker();
    let aeron = connect_invoker(&mut driver);
    let forged = ForgedCnc::open(driver.aeron_dir());
    let mut adding =
        aeron.async_add_subscription("aeron:udp?control-mode=manual", 1001).expect("a command");
    let mut subscription = complete(&mut driver, &aeron, || adding.poll());
    let publishers = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a socket"));
    let destinations = publishers.each_ref().map(|publisher| {
        publisher.set_nonblocking(true).expect("a socket");
        let control = publisher.local_addr().expect("an address");
        format!("{}|control={control}", udp_channel())
    });
    for destination in &destinations {
        let mut adding = subscription.async_add_destination(destination).expect("a command");
        complete(&mut driver, &aeron, || adding.poll());
    }
    for publisher in &publishers {
        await_status_message(&mut driver, publisher);
    }

    let [removed, _] = &destinations;
    let mut command = [aeron.client_id(), 0, subscription.registration_id()]
        .into_iter()
        .flat_map(i64::to_ne_bytes)
        .collect::<Vec<_>>();
    command.extend((removed.len() as i32).to_ne_bytes());
    command.extend(removed.as_bytes());
    forged.command_record(8 + command.len() as i32, REMOVE_RCV_DESTINATION, &command);
    let port = removed["aeron:udp?endpoint=".len()..].split('|').next().expect("an address");
    await_that("the end of the destination", || {
        driver.do_work().expect("work");
        UdpSocket::bind(port).is_ok()
    });
    while publishers[0].recv(&mut [0; 64]).is_ok() {}
    // Both would get one a second.
    for _ in 0..3 {
        await_status_message(&mut driver, &publishers[1]);
    }
    assert!(publishers[0].recv(&mut [0; 64]).is_err());
    let errors = driver.cnc_file().expect("the CnC file").errors();
    assert!(errors.is_empty(), "{errors:?}");
}

/// With the third, C's array of them grows, and the addresses of publishers in it move.
#[test]
fn image_has_many_destinations() {
    let mut driver = launch_invoker();
    let aeron = connect_invoker(&mut driver);
    let mut adding =
        aeron.async_add_subscription("aeron:udp?control-mode=manual", 1001).expect("a command");
    let mut subscription = complete(&mut driver, &aeron, || adding.poll());
    let mut publications = Vec::new();
    for destination in [(); 6].map(|()| udp_channel()) {
        let mut adding = subscription.async_add_destination(&destination).expect("a command");
        complete(&mut driver, &aeron, || adding.poll());
        let channel = format!(
            "{destination}|session-id=7|init-term-id=0|term-id=0|term-offset=0\
                               |term-length=64k"
        );
        let mut adding = aeron.async_add_exclusive_publication(&channel, 1001).expect("a command");
        publications.push(complete(&mut driver, &aeron, || adding.poll()));
    }
    // The driver gives up a publisher that is a term behind the others for five seconds.
    await_that("the connections", || {
        driver.do_work().expect("work");
        aeron.do_work().expect("work");
        publications.iter().all(|publication| publication.is_connected())
    });
    // Beyond the receiver's first window, each needs status messages from its destination.
    await_that("all messages", || {
        driver.do_work().expect("work");
        aeron.do_work().expect("work");
        subscription.poll(|_, _| {}, 10).expect("fragments");
        for publication in &mut publications {
            // Back pressure is expected.
            let _ = publication.offer(&[0; 1000]);
        }
        publications.iter().all(|publication| publication.position().expect("open") > 8 * TERM)
    });
    let errors = driver.cnc_file().expect("the CnC file").errors();
    assert!(errors.is_empty(), "{errors:?}");
}
