//! Messages of the service to the consensus module and to sessions.

use rusteron_client::OfferError;

use super::*;
use crate::service::error::NotSent;

#[test]
fn blocking_calls_end_with_the_container() {
    for command in [&b"timer"[..], b"cancel", b"offer", b"swallow"] {
        let mut harness = Harness::started();
        harness.network.refuse(OfferError::BackPressured, 3);
        harness.say(64, command).expect("sent after a while");
        assert_eq!((harness.network.idles, harness.network.sent.len()), (3, 2));
        harness.network.refuse(OfferError::BackPressured, usize::MAX);
        harness.network.end_after(10, TerminationCause::ConsensusModuleGone);
        let ended = harness.say(128, command);
        assert_eq!(ended, Err(TerminationCause::ConsensusModuleGone));
        assert_eq!(harness.network.errors, [""; 0]);
    }
}

#[test]
fn messages_to_the_consensus_module() {
    let mut harness = Harness::started();
    for (position, command) in [(64, &b"timer"[..]), (128, b"cancel"), (192, b"offer")] {
        harness.say(position, command).expect("sent");
    }
    let timer = codec::ScheduleTimer { correlation_id: 7, deadline: 99 };
    assert_eq!(harness.network.sent[1], timer.to_vec());
    assert_eq!(harness.network.sent[2], codec::CancelTimer { correlation_id: 7 }.to_vec());
    let (header, body) = MessageHeader::split(&harness.network.sent[3]).expect("a header");
    assert_eq!(header, codec::SessionMessageHeader::HEADER);
    let session = codec::SessionMessageHeader::decode(header, body).expect("whole");
    assert_eq!((session.cluster_session_id, &body[24..]), (3, &b"to all"[..]));
}

#[test]
fn followers_answers_go_nowhere() {
    let mut harness = Harness::started();
    harness.join(0, 0).expect("joined");
    for id in [9, 5] {
        harness.on_log(64, open(id)).expect("handled");
    }
    harness.events();
    harness.say(128, b"answer").expect("handled");
    harness.say(192, b"close").expect("handled");
    harness.say(256, b"answer").expect("handled");
    let events = harness.events();
    assert_eq!(events[1], "[(5, Ok(Mocked), false), (9, Ok(Mocked), false)]");
    assert_eq!(events[3], "closed true");
    assert_eq!(events[5], "[(5, Ok(Mocked), true), (9, Ok(Mocked), false)]");
    let request = codec::CloseSession { cluster_session_id: 5 }.to_vec();
    assert_eq!(harness.network.sent.iter().filter(|sent| **sent == request).count(), 1);
    // A leader asks again: the request of the old leader may be lost.
    harness.core.on_log_closed(&mut harness.network, 256).expect("closed");
    harness.join(2, 256).expect("joined");
    harness.events();
    harness.say(320, b"answer").expect("handled");
    let answers = "[(5, Err(NotSent(no subscriber is connected)), false), \
         (9, Err(NotSent(no subscriber is connected)), false)]";
    assert_eq!(harness.events()[1], answers);
}

#[test]
fn claims_have_one_limit_in_all_roles() {
    let too_long =
        |length, max_message_length| Err::<usize, _>(NotSent::too_long(length, max_message_length));
    // Without a media driver, a leader's sessions are not connected.
    for (role, accepted) in [(0, None), (2, Some(NotSent::from(OfferError::NotConnected)))] {
        let mut harness = Harness::started();
        harness.join(role, 0).expect("joined");
        harness.on_log(64, open(5)).expect("handled");
        harness.events();
        harness.say(128, b"claim").expect("handled");
        let outcome = |length| accepted.map_or(Ok(length), Err);
        let claims = [outcome(0), outcome(1344), too_long(1345, 1344), too_long(usize::MAX, 1344)];
        assert_eq!(harness.events()[1], format!("{claims:?}"), "role {role}");
    }
}
