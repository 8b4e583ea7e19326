//! Messages of older clients, truncated and hostile ones.

use rusteron_core::sbe::MessageHeader;
use rusteron_test_support::Random;

use super::*;

fn decode(message: &[u8]) -> Option<Message<'_>> {
    let (header, body) = MessageHeader::split(message)?;
    Message::decode(header, body)
}

/// Encodes a message of another version, with a block that ends there.
fn older(message: &[u8], version: u16, block_length: usize) -> Vec<u8> {
    let (header, body) = MessageHeader::split(message).expect("a header");
    let known = usize::from(header.block_length);
    let header = MessageHeader { block_length: block_length as u16, version, ..header };
    [&header.to_bytes()[..], &body[..block_length], &body[known..]].concat()
}

/// Any message of the table, with fields and data that differ.
fn example(layout: &rusteron_core::sbe::Layout) -> (Vec<i64>, Vec<&'static [u8]>, Vec<u8>) {
    let fields: Vec<i64> = (1..).take(layout.fields.len()).collect();
    let data: [&[u8]; 5] = [b"first", b"", b"third", b"4", b"the fifth"];
    let data = data[..layout.data.len()].to_vec();
    let bytes = encode_values(layout.template_id, &fields, &data).expect("a message");
    (fields, data, bytes)
}

#[test]
fn table_has_all_requests_and_answers() {
    let requests = LAYOUTS.iter().filter(|layout| !OF_SERVER.contains(&layout.template_id));
    assert_eq!(requests.count(), 38);
    assert_eq!(LAYOUTS.len(), 38 + OF_SERVER.len());
    let has_no_ids = [CloseSessionRequest::TEMPLATE_ID, AuthConnectRequest::TEMPLATE_ID];
    for layout in LAYOUTS {
        if !OF_SERVER.contains(&layout.template_id) && !has_no_ids.contains(&layout.template_id) {
            let first: Vec<_> = layout.fields.iter().take(2).map(|field| field.name).collect();
            assert_eq!(first, ["control_session_id", "correlation_id"], "{}", layout.name);
        }
    }
}

#[test]
fn decoded_message_is_the_encoded_one() {
    for layout in LAYOUTS {
        let (fields, data, bytes) = example(layout);
        assert_eq!(decode_values(&bytes), Some((layout.template_id, fields, data)));
    }
}

#[test]
fn removed_and_foreign_messages_are_unknown() {
    for template_id in [0, 2, 20, 21, 25, 49, 69, 108, u16::MAX] {
        let header = MessageHeader { template_id, ..KeepAliveRequest::HEADER };
        let message = [&header.to_bytes()[..], &[0; 16]].concat();
        assert_eq!(decode(&message), Some(Message::Unknown), "{template_id}");
        assert_eq!(decode_values(&message), None, "{template_id}");
    }
}

#[test]
fn fields_of_later_versions_are_minus_one() {
    let request = ReplayRequest {
        control_session_id: 1,
        correlation_id: 2,
        recording_id: 3,
        position: 4,
        length: 5,
        replay_stream_id: 6,
        file_io_max_length: 7,
        replay_token: 8,
        replay_channel: b"aeron:ipc",
    };
    for (version, length, file_io_max_length, replay_token) in
        [(6, 44, -1, -1), (9, 48, 7, -1), (10, 56, 7, 8), (14, 56, 7, 8)]
    {
        let message = older(&request.to_vec(), version, length);
        let expected = ReplayRequest { file_io_max_length, replay_token, ..request };
        assert_eq!(decode(&message), Some(Message::ReplayRequest(expected)), "{version}");
    }
    // The version decides, although the block has the field.
    let message = older(&request.to_vec(), 6, 56);
    let expected = ReplayRequest { file_io_max_length: -1, replay_token: -1, ..request };
    assert_eq!(decode(&message), Some(Message::ReplayRequest(expected)));
}

#[test]
fn texts_of_later_versions_are_empty() {
    let request = AuthConnectRequest {
        correlation_id: 1,
        response_stream_id: 2,
        version: super::super::PROTOCOL_VERSION,
        response_channel: b"aeron:ipc",
        encoded_credentials: b"secret",
        client_info: b"",
    };
    let mut message = older(&request.to_vec(), 11, 16);
    message.truncate(message.len() - 4);
    assert_eq!(decode(&message), Some(Message::AuthConnectRequest(request)));
    // From version 12 on, the text is missing.
    message[6] = 12;
    assert_eq!(decode(&message), None);

    let request = ReplicateRequest2 {
        control_session_id: 1,
        correlation_id: 2,
        src_recording_id: 3,
        dst_recording_id: 4,
        stop_position: 5,
        channel_tag_id: 6,
        subscription_tag_id: 7,
        src_control_stream_id: 8,
        file_io_max_length: -1,
        replication_session_id: -1,
        src_control_channel: b"a",
        live_destination: b"b",
        replication_channel: b"c",
        encoded_credentials: b"",
        src_response_channel: b"",
    };
    let mut message = older(&request.to_vec(), 6, 60);
    message.truncate(message.len() - 8);
    assert_eq!(decode(&message), Some(Message::ReplicateRequest2(request)));
}

#[test]
fn truncated_messages_are_none() {
    for layout in LAYOUTS {
        let (_, _, bytes) = example(layout);
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), None, "{} at {end}", layout.name);
        }
    }
}

#[test]
fn hostile_bytes_do_not_panic() {
    let mut random = Random::new(101);
    let mut decoded = 0;
    for _ in 0..20_000 {
        let layout = &LAYOUTS[random.below(LAYOUTS.len())];
        let mut bytes = if random.percent(50) {
            example(layout).2
        } else {
            let length = random.below(200);
            random.bytes(length)
        };
        // Most messages keep their template, and get lengths that may be anything.
        for _ in 0..random.below(4) {
            let end = bytes.len();
            if let Some(byte) = bytes.get_mut(random.below(end)) {
                *byte = random.next() as u8;
            }
        }
        bytes.truncate(random.below(bytes.len() + 1).max(random.below(bytes.len() + 1)));
        if let Some((template_id, fields, data)) = decode_values(&bytes) {
            decoded += 1;
            let total: usize = data.iter().map(|data| data.len()).sum();
            assert!(total <= bytes.len());
            let encoded = encode_values(template_id, &fields, &data).expect("values in range");
            assert_eq!(decode_values(&encoded), Some((template_id, fields, data)));
        }
        let _ = decode(&bytes);
    }
    assert!(decoded > 100, "{decoded}");
}
