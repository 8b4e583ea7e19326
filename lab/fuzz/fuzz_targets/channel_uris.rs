//! Channels: parsed, checked, built and written again, and given to a media driver.
//!
//! An input is a letter and the text of a channel. The letter says the channel's use: `p`ublication,
//! `s`ubscription, `d`estination to send to, or destination to `r`eceive from. With a capital letter, only the
//! faults that the driver would not survive are checked.

#![no_main]

use std::cell::RefCell;
use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use rusteron_client::{
    AsChannel, ChannelUri, DestinationRegistration, ExclusivePublication, Result, Subscription,
    UncheckedChannel,
};
use rusteron_fuzz::stage::Stage;

const INPUTS_PER_DRIVER: u32 = 256;

struct Machine {
    // Dropped before the client.
    receiver: Subscription,
    sender: ExclusivePublication,
    stage: Stage,
    inputs: u32,
}

impl Machine {
    fn launch() -> Self {
        let mut stage = Stage::launch(|_| Ok(()));
        let aeron = stage.aeron.clone();
        let channel = "aeron:udp?control-mode=manual";
        let receiver = stage.added(aeron.async_add_subscription(channel, 1)).expect("added");
        let channel = "aeron:udp?control-mode=manual|control=127.0.0.1:0";
        let adding = aeron.async_add_exclusive_publication(channel, 1);
        let sender = stage.added(adding).expect("added");
        Self { receiver, sender, stage, inputs: 0 }
    }

    fn run(&mut self, kind: u8, text: &str) {
        self.inputs += 1;
        let kind =
            if kind.is_ascii_alphabetic() { kind } else { b"psdrPSDR"[usize::from(kind) % 8] };
        match kind.is_ascii_uppercase() {
            true => self.add(kind, UncheckedChannel(text)),
            false => self.add(kind, text),
        }
        self.stage.repeat_work(4);
    }

    fn add(&mut self, kind: u8, channel: impl AsChannel) {
        let stream_id = 1000 + self.inputs as i32;
        let aeron = self.stage.aeron.clone();
        let stage = &mut self.stage;
        match kind.to_ascii_lowercase() {
            b's' => {
                let adding = aeron.async_add_subscription(channel, stream_id);
                if let Ok(subscription) = stage.added(adding) {
                    stage.repeat_work(2);
                    black_box(subscription.local_addresses().is_ok());
                    black_box(subscription.try_resolve_channel_endpoint_port().is_ok());
                }
            }
            b'd' => {
                let adding = self.sender.async_add_destination(channel);
                let _ = settle(stage, adding);
            }
            b'r' => {
                let adding = self.receiver.async_add_destination(channel);
                let _ = settle(stage, adding);
            }
            _ => {
                let adding = aeron.async_add_publication(channel, stream_id);
                if let Ok(publication) = stage.added(adding) {
                    stage.repeat_work(2);
                    black_box(publication.local_addresses().is_ok());
                }
            }
        }
    }
}

fn settle(stage: &mut Stage, adding: Result<DestinationRegistration>) -> Result<()> {
    let mut adding = adding?;
    let mut outcome = Ok(None);
    stage.await_that("a destination", |_| {
        outcome = adding.poll();
        !matches!(outcome, Ok(None))
    });
    outcome.map(drop)
}

/// Checks the properties of every text, without a driver. Returns whether a driver can be asked.
fn check(text: &str) -> bool {
    let uri: ChannelUri = match text.parse() {
        Ok(uri) => uri,
        Err(error) => {
            black_box(error.to_string());
            return true;
        }
    };
    let written = uri.to_string();
    assert_eq!(written.parse().as_ref(), Ok(&uri), "{written}");
    assert_eq!(uri.to_builder().to_string(), written);
    for (key, value) in uri.parameters() {
        assert_eq!(uri.get_key(key), Some(value));
    }
    black_box((uri.mtu().is_ok(), uri.term_length().is_ok(), uri.linger().is_ok()));
    black_box((uri.session_id().is_ok(), uri.channel_tag().is_ok(), uri.entity_tag().is_ok()));
    black_box((uri.response_correlation_id().is_ok(), uri.control_mode().is_ok()));
    black_box((uri.term_id().is_ok(), uri.term_offset().is_ok(), uri.ttl().is_ok()));
    black_box((uri.socket_rcvbuf().is_ok(), uri.receiver_window().is_ok(), uri.ats().is_ok()));
    black_box((uri.media_receive_timestamp_offset().is_ok(), uri.max_resend().is_ok()));
    black_box((uri.congestion_control().is_ok(), uri.group().is_ok(), uri.nak_delay().is_ok()));

    black_box((uri.check_publication().is_ok(), uri.check_subscription().is_ok()));
    if let Ok(built) = uri.to_builder().build() {
        assert_eq!(built, uri);
    }
    // Log buffers that are not sparse take their space at once.
    let takes_space = text.contains("sparse") && uri.sparse() != Ok(Some(true));
    !takes_space || uri.term_length().is_ok_and(|length| length.is_none_or(|it| it <= 1 << 20))
}

fuzz_target!(|bytes: &[u8]| {
    thread_local! {
        static MACHINE: RefCell<Option<Machine>> = const { RefCell::new(None) };
    }
    let Some((&kind, text)) = bytes.split_first() else { return };
    let text = &*String::from_utf8_lossy(text);
    if !check(text) {
        return;
    }
    MACHINE.with_borrow_mut(|machine| {
        let running = machine.get_or_insert_with(Machine::launch);
        running.run(kind, text);
        if running.inputs == INPUTS_PER_DRIVER {
            *machine = None;
        }
    });
});
