//! Messages of Aeron Cluster, with clients and with services: SBE, schema 111, written as version 17.
//!
//! One table in `messages.rs` describes all messages. Structures, encoders, decoders and the tests
//! come from the table.
//!
//! A field is present if it ends within the block that the sender declares, and the sender's version has it.
//! Variable data begins behind the sender's block. So messages of older and newer senders are understood, and
//! hostile bytes decode to nothing. A drift test compares the table with the schema in Aeron's tree; another
//! compares bytes with Java's codecs.

#[cfg(feature = "service")]
pub mod mark_file;
mod messages;
#[cfg(feature = "service")]
pub mod recording_log;

pub(crate) use messages::Message;
pub use messages::{
    AdminRequest, AdminResponse, CancelTimer, Challenge, ChallengeResponse, ClientSession,
    CloseSession, ClusterActionRequest, JoinLog, LAYOUTS, NewLeaderEvent, NewLeadershipTermEvent,
    RequestServiceAck, SCHEMA_ID, SCHEMA_VERSION, ScheduleTimer, ServiceAck,
    ServiceTerminationPosition, SessionCloseEvent, SessionCloseRequest, SessionConnectRequest,
    SessionEvent, SessionKeepAlive, SessionMessageHeader, SessionOpenEvent, SnapshotMarker,
    TimerEvent, decode_values, encode_values,
};
#[cfg(feature = "service")]
pub(crate) use messages::{parse, parse_session_message};
#[doc(inline)]
pub use rusteron_core::sbe::{DataKind, DataLayout, FieldKind, FieldLayout, Layout, MessageHeader};
