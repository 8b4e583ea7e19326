//! The table of messages is that of Aeron's schema, and so are the enumerations.

use rusteron_test_support::sbe_schema::{aeron_schema, compare_messages, enumeration};

use crate::protocol::messages::{LAYOUTS, SCHEMA_ID, SCHEMA_VERSION};
use crate::protocol::response_code::ResponseCode;
use crate::protocol::signal::Signal;

const SCHEMA: &str = "aeron-archive/src/main/resources/archive/aeron-archive-codecs.xml";

#[test]
fn messages_are_those_of_aerons_schema() {
    let Some(schema) = aeron_schema(SCHEMA) else { return };
    let others = compare_messages(&schema, [SCHEMA_ID, SCHEMA_VERSION], LAYOUTS, Some(-1));
    // The headers of the catalog and of its entries.
    assert_eq!(others, [20, 21]);
}

#[test]
fn enumerations_are_those_of_aerons_schema() {
    let Some(schema) = aeron_schema(SCHEMA) else { return };
    let codes = [
        ("OK", ResponseCode::Ok),
        ("ERROR", ResponseCode::Error),
        ("RECORDING_UNKNOWN", ResponseCode::RecordingUnknown),
        ("SUBSCRIPTION_UNKNOWN", ResponseCode::SubscriptionUnknown),
    ];
    let codes = codes.map(|(name, code)| (name.to_owned(), code as i64));
    assert_eq!(enumeration(&schema, "ControlResponseCode"), codes);
    let signals = [
        ("START", Signal::Start),
        ("STOP", Signal::Stop),
        ("EXTEND", Signal::Extend),
        ("REPLICATE", Signal::Replicate),
        ("MERGE", Signal::Merge),
        ("SYNC", Signal::Sync),
        ("DELETE", Signal::Delete),
        ("REPLICATE_END", Signal::ReplicateEnd),
    ];
    let signals = signals.map(|(name, signal)| (name.to_owned(), signal as i64));
    assert_eq!(enumeration(&schema, "RecordingSignal"), signals);
}
