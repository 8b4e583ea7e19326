//! Positions of subscribers that no subscriber has. Each process in the driver's directory can write them.

use rusteron_client::Aeron;
use rusteron_media_driver::{Context, DriverInvoker};
use rusteron_test_support::{ForgedCnc, await_some, context, udp_channel};

const TERM: i64 = 64 * 1024;
/// The second and the third leave four bytes of a term to be cleaned, over IPC and over UDP.
const POSITIONS: [i64; 6] = [TERM - 4, 2 * TERM - 4, 3 * TERM, 4 * TERM, 5 * TERM, i64::MAX];

#[test]
fn terms_are_cleaned_within_their_bounds() {
    let driver_context = Context::new().expect("a context");
    let mut driver = DriverInvoker::launch_embedded(driver_context).expect("a driver");
    driver.do_work().expect("work");
    let mut settings = context(driver.aeron_dir());
    settings.set_use_conductor_agent_invoker(true).expect("a setting");
    let aeron = Aeron::connect(settings).expect("a client");
    let forged = ForgedCnc::open(driver.aeron_dir());
    let channels = ["aeron:ipc?term-length=64k", &format!("{}|term-length=64k", udp_channel())];
    for (stream_id, channel) in (1001..).zip(channels) {
        let mut adding = aeron.async_add_subscription(channel, stream_id).expect("a command");
        let mut subscription = await_some("the subscription", || {
            driver.do_work().expect("work");
            aeron.do_work().expect("work");
            adding.poll().expect("no error")
        });
        let mut adding =
            aeron.async_add_exclusive_publication(channel, stream_id).expect("a command");
        let publication = await_some("the publication", || {
            driver.do_work().expect("work");
            aeron.do_work().expect("work");
            adding.poll().expect("no error")
        });
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
