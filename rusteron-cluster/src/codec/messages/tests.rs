//! Messages of other versions, truncated, hostile and foreign ones.

use super::*;

/// Encodes a message of another sender: its own block length and version.
fn message(template_id: u16, version: u16, block: &[u8], data: &[&[u8]]) -> Vec<u8> {
    let block_length = block.len() as u16;
    let header = MessageHeader { block_length, template_id, schema_id: SCHEMA_ID, version };
    let mut message = [&header.to_bytes()[..], block].concat();
    for data in data {
        message.extend((data.len() as u32).to_le_bytes());
        message.extend(*data);
    }
    message
}

fn event(message: &[u8]) -> Option<SessionEvent<'_>> {
    let (header, body) = MessageHeader::split(message)?;
    SessionEvent::decode(header, body)
}

/// The fields of a `SessionEvent` of version 17.
fn event_block() -> Vec<u8> {
    let mut block: Vec<u8> = [1_i64, 2, 3].iter().flat_map(|x| x.to_le_bytes()).collect();
    block.extend([4_i32, 2, 768].iter().flat_map(|x| x.to_le_bytes()));
    block.extend(5_i64.to_le_bytes());
    block
}

#[test]
fn block_lengths_are_those_of_the_schema() {
    let lengths = LAYOUTS.iter().map(|layout| (layout.template_id, layout.block_length));
    let client = [(1, 24), (2, 44), (3, 16), (4, 16), (5, 16), (6, 20), (7, 16), (8, 16), (26, 28)];
    let log = [(27, 24), (20, 24), (21, 36), (22, 28), (23, 32), (24, 48)];
    let service = [(30, 8), (31, 16), (32, 8), (33, 36), (40, 40), (42, 12)];
    let snapshot = [(100, 40), (102, 12), (108, 8)];
    let expected = client.into_iter().chain(log).chain(service).chain(snapshot);
    assert!(lengths.eq(expected));
}

#[test]
fn older_senders_leave_fields_out() {
    for (version, length, server, heartbeat) in
        [(5, 32, 0, i64::MIN), (6, 36, 768, i64::MIN), (12, 36, 768, i64::MIN), (13, 44, 768, 5)]
    {
        let message = message(2, version, &event_block()[..length], &[b"0=a:1"]);
        let event = event(&message).expect("a whole message");
        assert_eq!((event.code, event.leader_member_id), (2, 4));
        assert_eq!((event.version, event.leader_heartbeat_timeout_ns), (server, heartbeat));
        assert_eq!(event.detail, b"0=a:1");
    }
}

#[test]
fn longer_block_of_later_version_is_skipped() {
    let block = [event_block(), vec![9; 12]].concat();
    let message = message(2, 18, &block, &[b"detail", b"more"]);
    let event = event(&message).expect("a whole message");
    assert_eq!((event.leader_heartbeat_timeout_ns, event.detail), (5, &b"detail"[..]));
}

#[test]
fn client_info_is_empty_before_version_14() {
    let block: Vec<u8> = [7_i64.to_le_bytes(), [1; 8]].concat();
    let bytes = message(3, 13, &block, &[b"channel", b"credentials"]);
    let (header, body) = MessageHeader::split(&bytes).expect("a header");
    let request = SessionConnectRequest::decode(header, body).expect("a whole message");
    assert_eq!((request.encoded_credentials, request.client_info), (&b"credentials"[..], &[][..]));
    let bytes = message(3, 14, &block, &[b"channel", b"credentials"]);
    let (header, body) = MessageHeader::split(&bytes).expect("a header");
    assert_eq!(SessionConnectRequest::decode(header, body), None);
}

#[test]
fn fields_of_later_versions_are_null() {
    let term = message(42, 16, &7_i64.to_le_bytes(), &[]);
    let (header, body) = MessageHeader::split(&term).expect("a header");
    let expected = ServiceTerminationPosition { log_position: 7, ack_required: i32::MIN };
    assert_eq!(ServiceTerminationPosition::decode(header, body), Some(expected));
    let join = message(40, 15, &[1; 36], &[b"aeron:ipc"]);
    let (header, body) = MessageHeader::split(&join).expect("a header");
    let join = JoinLog::decode(header, body).expect("a whole message");
    assert_eq!((join.is_standby, join.log_channel), (i32::MIN, &b"aeron:ipc"[..]));
}

#[test]
fn truncated_messages_are_none() {
    for layout in LAYOUTS {
        let fields: Vec<i64> = (1..).take(layout.fields.len()).collect();
        let data: Vec<&[u8]> = [&b"first"[..], b"", b"third"][..layout.data.len()].to_vec();
        let bytes = encode_values(layout.template_id, &fields, &data).expect("a message");
        assert_eq!(decode_values(&bytes), Some((layout.template_id, fields, data)));
        for end in 0..bytes.len() {
            assert_eq!(decode_values(&bytes[..end]), None, "{} at {end}", layout.name);
        }
    }
}

#[test]
fn hostile_lengths_are_none() {
    let block = event_block();
    let endless = [message(2, 17, &block, &[]), vec![0xff; 12]].concat();
    assert_eq!(event(&endless), None);
    let mut long_block = message(2, 17, &block, &[b"x"]);
    long_block[..2].copy_from_slice(&u16::MAX.to_le_bytes());
    assert_eq!(event(&long_block), None);
    // A block without any field: all values are null, and the data is found.
    let empty = message(2, 17, &[], &[b"x"]);
    let event = event(&empty).expect("a message");
    assert_eq!((event.cluster_session_id, event.code, event.version), (i64::MIN, i32::MIN, 0));
    assert_eq!(event.detail, b"x");
}

#[cfg(feature = "service")]
#[test]
fn payload_begins_behind_the_senders_block() {
    let block: Vec<u8> = [1_i64, 7, 99, -1].iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut bytes = message(1, 18, &block, &[]);
    bytes.extend(b"payload");
    let header =
        SessionMessageHeader { leadership_term_id: 1, cluster_session_id: 7, timestamp: 99 };
    let expected = (Message::SessionMessageHeader(header), &b"payload"[..]);
    assert_eq!(parse(&bytes), Ok(expected));
    assert!(parse(&bytes[..39]).is_err());
}

#[cfg(feature = "service")]
#[test]
fn foreign_and_unknown_messages() {
    let mut bytes = message(43, 17, &[], &[]);
    assert_eq!(parse(&bytes), Ok((Message::Unknown, &[][..])));
    bytes[4] = 101;
    assert!(parse(&bytes).is_err());
    assert!(parse(&[1, 2, 3]).is_err());
}

#[test]
fn short_target_is_refused() {
    let message = SessionKeepAlive { leadership_term_id: 1, cluster_session_id: 2 };
    let length = message.encoded_length();
    assert_eq!(length, 24);
    assert_eq!(message.encode(&mut vec![0; length - 1]), None);
    assert_eq!(message.encode(&mut vec![0; length + 1]), Some(()));
}
