//! Images of subscribers for which the sender does not wait.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use rusteron_client::{Aeron, CounterSnapshot, ExclusivePublication, PositionKind, Subscription};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{await_some, await_that, connect, free_port, launch_with, offer};

/// The type of the counters of subscriptions.
const SUBSCRIPTION: i32 = 54_002;

const STREAM: i32 = 1001;

const TERM_LENGTH: i64 = 64 * 1024;

/// A publication and two subscriptions to it, of which the first holds up the other one.
struct Feed {
    aeron: Aeron,
    publication: ExclusivePublication,
    fast: Subscription,
    slow: Subscription,
    sent: u64,
}

impl Feed {
    fn new(aeron: Aeron, has_destinations: bool) -> Self {
        let control = format!("aeron:udp?control=127.0.0.1:{}", free_port());
        let channel = format!("{control}|control-mode=dynamic|fc=max|term-length={TERM_LENGTH}");
        let publication = aeron.add_exclusive_publication(channel, STREAM).expect("a publication");
        let channel = format!("{control}|endpoint=127.0.0.1:0|control-mode=dynamic");
        let subscribe = |channel: &str| aeron.add_subscription(channel, STREAM).expect("one");
        let fast = subscribe(&channel);
        let slow = if has_destinations {
            let mut slow = subscribe("aeron:udp?control-mode=manual");
            slow.add_destination(&channel).expect("a destination");
            slow
        } else {
            subscribe(&channel)
        };
        await_that("both images", || fast.image_count() == 1 && slow.image_count() == 1);
        Self { aeron, publication, fast, slow, sent: 0 }
    }

    fn send(&mut self) {
        offer(&mut self.publication, &[self.sent.to_ne_bytes(); 50].concat());
        self.sent += 1;
        self.fast.poll(|_, _| (), usize::MAX).expect("a poll");
    }

    /// Sends numbers until the slow subscriber's receiver has dropped so many that the publisher
    /// cannot send them again.
    fn overrun(&mut self) {
        let least = self.slow.image_at_index(0).expect("an image").position() + 2 * TERM_LENGTH;
        await_some("an overrun", || {
            self.send();
            self.counters(PositionKind::ReceiverOverrun.type_id())
                .next()
                .filter(|counter| counter.value > least)
        });
    }

    fn counters(&self, type_id: i32) -> impl Iterator<Item = CounterSnapshot> {
        self.aeron.counters_reader().iter().filter(move |counter| counter.type_id == type_id)
    }

    /// The numbers that the slow subscriber reads until one is at least `least`.
    fn read_to(&mut self, least: u64) -> Vec<u64> {
        let mut numbers = Vec::new();
        await_that("the number", || {
            self.send();
            let polled = self.slow.poll(
                |message, _| {
                    let number = message.first_chunk().expect("a number");
                    numbers.push(u64::from_ne_bytes(*number));
                },
                usize::MAX,
            );
            polled.expect("a poll");
            numbers.last().is_some_and(|number| *number >= least)
        });
        numbers
    }
}

/// No image ends by itself: packets that are dropped do not count as life.
fn feed(has_destinations: bool) -> (MediaDriver, Feed) {
    let driver =
        launch_with(|context| context.set_image_liveness_timeout(Duration::from_secs(3600)));
    let aeron = connect(&driver);
    let feed = Feed::new(aeron, has_destinations);
    (driver, feed)
}

/// The id and the session of the slow subscriber's image.
fn image(slow: &mut Subscription) -> (i64, i32) {
    let image = slow.image_at_index(0).expect("an image");
    (image.correlation_id(), image.session_id())
}

#[test]
fn drained_subscriber_joins_again() {
    let (driver, mut feed) = feed(false);
    let mut lost = 0;
    for _ in 0..3 {
        feed.overrun();
        let before = image(&mut feed.slow);
        let numbers = feed.read_to(feed.sent);
        let gaps = numbers.windows(2).filter(|pair| pair[1] != pair[0] + 1).count();
        assert!(gaps > 0, "the numbers that were dropped are missing");
        let after = image(&mut feed.slow);
        assert!(after.0 != before.0 && after.1 == before.1, "{after:?} after {before:?}");

        let counted: i64 = feed.counters(SUBSCRIPTION).map(|counter| counter.value).sum();
        assert!(counted > lost, "{counted} bytes after {lost}");
        lost = counted;
        let report = driver.cnc_file().expect("a file").loss_report().expect("a report");
        let most = report.iter().map(|entry| entry.total_bytes_lost).max();
        assert!(most >= Some(lost), "one entry for all images of the stream: {report:?}");
    }
}

/// Any process that may write the report can have put other lengths there.
#[test]
fn lengths_in_the_loss_report_are_not_believed() {
    const CHANNEL_LENGTH: u64 = 40;
    let (driver, mut feed) = feed(false);
    let report = driver.aeron_dir().join("loss-report.dat");
    for length in [0, -1, i32::MIN, i32::MAX] {
        feed.overrun();
        feed.read_to(feed.sent);
        let file = File::options().write(true).open(&report).expect("the report");
        file.write_all_at(&length.to_le_bytes(), CHANNEL_LENGTH).expect("written");
    }
    feed.overrun();
    feed.read_to(feed.sent);
}

/// Another destination may bring what one has dropped.
#[test]
fn subscriber_with_destinations_stays() {
    let (_driver, mut feed) = feed(true);
    let before = image(&mut feed.slow);
    let start = Instant::now();
    // No image ends within its first second.
    while start.elapsed() < Duration::from_secs(2) {
        feed.overrun();
        feed.slow.poll(|_, _| (), usize::MAX).expect("a poll");
    }
    assert_eq!(image(&mut feed.slow), before);
}
