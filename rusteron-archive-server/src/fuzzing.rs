//! What the fuzz targets call: compiled with `--cfg fuzzing` only. Input is bytes that another process has sent or left.

mod files;

use std::hint::black_box;

use rusteron_core::sbe::MessageHeader;

use crate::channel::{Channel, ReplayStart, ResponseDefaults};
use crate::context::ArchiveServerContext;
use crate::control::request::{self, Request};
use crate::protocol::messages::Message;

pub use files::{catalog, mark_file, segment};

/// A hostile client against a conductor, which serves another one, too.
pub fn conductor(bytes: &[u8]) {
    crate::conductor::tests::hostile::run(bytes);
}

/// A hostile source of a replication.
pub fn source(bytes: &[u8]) {
    crate::conductor::tests::hostile_source::run(bytes);
}

/// A message of the control protocol.
pub fn request(message: &[u8]) {
    let whole =
        MessageHeader::split(message).and_then(|(header, body)| Message::decode(header, body));
    black_box(format!("{whole:?}"));
    match request::decode(message) {
        Ok(Request::Unknown) => {}
        Ok(request) => {
            assert!(whole.is_some(), "{request:?}");
            black_box(format!("{request:?}"));
        }
        // A text of a client goes to the error log.
        Err(text) => assert!(text.len() < 200, "{text}"),
    }
}

/// A channel, and a value of each setting.
pub fn text(text: &str) {
    for setting in ArchiveServerContext::settings() {
        if let Err(error) = setting.check(text) {
            assert!(!error.is_empty());
        }
    }
    let Ok(channel) = Channel::parse(text) else { return };
    black_box((channel.recording_key(1), channel.is_response()));
    let response = ResponseDefaults { mtu: 1408, term_length: 64 << 10, is_sparse: true };
    let start = ReplayStart {
        position: 3 << 20 | 32,
        initial_term_id: i32::MAX,
        term_length: 64 << 10,
        mtu: 1408,
    };
    let derived = [
        channel.stripped(),
        channel.recorded(true),
        channel.recorded(false),
        channel.response(response, (-7).into()),
        channel.replay(start, 5_000_000_000),
    ];
    for derived in derived.into_iter().flatten() {
        // What the server makes of a channel is a channel.
        let again = Channel::parse(&derived).expect("a channel");
        assert_eq!(again.get("endpoint"), channel.get("endpoint"));
    }
    if let Ok(stripped) = channel.stripped() {
        let again = Channel::parse(&stripped).and_then(|again| again.stripped());
        assert_eq!(again.expect("a channel"), stripped);
    }
}
