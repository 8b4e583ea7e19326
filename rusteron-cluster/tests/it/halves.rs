//! Sessions whose halves are used by different threads, with stand-ins for the members.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rusteron_client::{AnyPublication, OfferError, Position};
use rusteron_cluster::codec::{
    SessionCloseRequest, SessionKeepAlive, SessionMessageHeader, decode_values,
};
use rusteron_cluster::{
    ClusterClient, ClusterCloseCause, ClusterEgress, ClusterErrorKind, ClusterState, Egress,
    Ingress, LeadershipTermId, SessionHeader,
};
use rusteron_test_support::cluster::StandIn;
use rusteron_test_support::{EndOnDrop, await_some, await_that};

use crate::leaders::{Members, SHORT, TIMEOUT, term};

const BY_APPLICATION: ClusterState = ClusterState::Closed(ClusterCloseCause::ClosedByApplication);

/// Polls until a leader has announced itself.
fn await_leader(egress: &mut ClusterEgress) -> LeadershipTermId {
    let mut leader = None;
    await_that("a new leader", || {
        let handler = |event: Egress<'_>| match event {
            Egress::NewLeader { leadership_term_id, .. } => leader = Some(leadership_term_id),
            other => panic!("{other:?}"),
        };
        egress.poll(handler, 10).expect("an open session");
        leader.is_some()
    });
    leader.expect("a term")
}

fn await_state(egress: &mut ClusterEgress, state: ClusterState) {
    await_that("a state of the session", || {
        let _ = egress.poll(|event| panic!("{event:?}"), 10);
        egress.state() == state
    });
}

fn offer(ingress: &mut Ingress, message: &[u8]) {
    await_that("an accepted offer", || match ingress.offer(message) {
        Ok(_) => true,
        Err(error) => {
            assert!(error.is_retryable(), "{error}");
            false
        }
    });
}

fn template_of(message: &[u8]) -> u16 {
    decode_values(message).expect("a message").0
}

/// Offers numbers until the end. Returns the term of each.
fn send_numbers(ingress: &mut Ingress, is_over: &AtomicBool) -> Vec<LeadershipTermId> {
    let mut terms = Vec::new();
    while !is_over.load(Ordering::Acquire) {
        match ingress.offer(&terms.len().to_le_bytes()) {
            Ok(_) => terms.push(ingress.leadership_term_id()),
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                thread::yield_now();
            }
        }
    }
    terms
}

/// The numbers that a member has received, with their terms.
fn receive_numbers(member: &mut StandIn, numbers: &mut Vec<(i64, u64)>) {
    while let Some(message) = member.poll() {
        // Numbers of clients that still connect are of no interest here.
        if template_of(&message) == SessionMessageHeader::TEMPLATE_ID {
            let number = message[SessionHeader::LENGTH..].try_into().expect("8 bytes");
            numbers.push((term(&message), u64::from_le_bytes(number)));
        }
    }
}

#[test]
fn offers_follow_leaders_that_another_thread_hears_of() {
    const LEADERS: i64 = 12;
    for is_exclusive in [true, false] {
        let mut members = Members::new();
        let endpoints = members.endpoints();
        let mut context = members.context();
        context.set_is_ingress_exclusive(is_exclusive).unwrap();
        let (mut ingress, mut egress) = members.session(context).split();
        let (is_over, is_polled_out) = (AtomicBool::new(false), AtomicBool::new(false));
        let mut received: [Vec<(i64, u64)>; 3] = Default::default();
        let terms = thread::scope(|scope| {
            let _ends = [EndOnDrop(&is_over), EndOnDrop(&is_polled_out)];
            let sender = scope.spawn(|| send_numbers(&mut ingress, &is_over));
            let poller = scope.spawn(|| {
                let mut leaders = Vec::new();
                while !is_polled_out.load(Ordering::Acquire) {
                    let handler = |event: Egress<'_>| match event {
                        Egress::NewLeader { leadership_term_id, .. } => {
                            leaders.push(leadership_term_id);
                        }
                        other => panic!("{other:?}"),
                    };
                    if egress.poll(handler, 10).expect("an open session") == 0 {
                        thread::yield_now();
                    }
                }
                leaders
            });
            let poll_all = |members: &mut Members, received: &mut [Vec<(i64, u64)>; 3]| {
                for (member, numbers) in members.members.iter_mut().zip(received) {
                    receive_numbers(member, numbers);
                }
            };
            for new_term in 3..3 + LEADERS {
                let leader = new_term as usize % 3;
                members.members[leader].leadership_term_id = new_term;
                members.members[leader].announce(&endpoints);
                await_that("numbers of the new term", || {
                    poll_all(&mut members, &mut received);
                    received[leader].last().is_some_and(|last| last.0 == new_term)
                });
            }
            is_over.store(true, Ordering::Release);
            let terms = sender.join().expect("the sender");
            // The old leaders live on here, so that nothing that was accepted may be missing.
            await_that("all numbers", || {
                poll_all(&mut members, &mut received);
                received.iter().map(Vec::len).sum::<usize>() >= terms.len()
            });
            is_polled_out.store(true, Ordering::Release);
            let leaders = poller.join().expect("the poller");
            assert!(leaders.iter().copied().eq(3..3 + LEADERS), "{leaders:?}");
            terms
        });
        let mut all = received.concat();
        all.sort_by_key(|received| received.1);
        let expected = terms.iter().enumerate().map(|(number, &term)| (term.get(), number as u64));
        assert!(all.iter().copied().eq(expected), "accepted and received numbers differ");
        for (member, numbers) in received.iter().enumerate() {
            // Member 0 is the leader of the first term, 2.
            let is_its_term =
                |term: i64| if term == 2 { member == 0 } else { term as usize % 3 == member };
            assert!(numbers.iter().all(|number| is_its_term(number.0)), "member {member}");
            // Publications of different terms have no common order.
            for leader_term in 2..3 + LEADERS {
                let of_term = numbers.iter().filter(|number| number.0 == leader_term);
                assert!(of_term.is_sorted(), "term {leader_term} at member {member}");
            }
        }
    }
}

#[test]
fn offer_after_new_leaders_event_has_its_term() {
    let mut members = Members::new();
    let endpoints = members.endpoints();
    let (mut ingress, mut egress) = members.session(members.context()).split();
    offer(&mut ingress, b"old");
    assert_eq!(ingress.leadership_term_id(), 2);
    assert_eq!(term(&members.members[0].receive()), 2);

    members.members[1].leadership_term_id = 3;
    members.members[1].announce(&endpoints);
    assert_eq!(await_leader(&mut egress), 3);
    assert_eq!((egress.leadership_term_id(), egress.leader_member_id()), (3.into(), 1.into()));
    assert_eq!(ingress.state(), ClusterState::AwaitNewLeaderConnection);
    // The ingress follows in its next call, and not in between.
    assert_eq!((ingress.leadership_term_id(), ingress.leader_member_id()), (2.into(), 0.into()));
    offer(&mut ingress, b"new");
    assert_eq!((ingress.leadership_term_id(), ingress.leader_member_id()), (3.into(), 1.into()));
    assert_eq!(egress.state(), ClusterState::Connected);
    assert_eq!(term(&members.members[1].receive()), 3);
    assert!(members.members[0].poll().is_none());

    members.members[2].leadership_term_id = 4;
    members.members[2].announce(&endpoints);
    assert_eq!(await_leader(&mut egress), 4);
    await_that("an accepted claim", || match ingress.try_claim(5) {
        Ok(mut claim) => {
            claim.copy_from_slice(b"claim");
            claim.commit().is_ok()
        }
        Err(error) => {
            assert!(error.is_retryable(), "{error}");
            false
        }
    });
    assert_eq!((ingress.leadership_term_id(), ingress.leader_member_id()), (4.into(), 2.into()));
    assert_eq!(egress.state(), ClusterState::Connected);
    let message = members.members[2].receive();
    assert_eq!((term(&message), &message[SessionHeader::LENGTH..]), (4, &b"claim"[..]));
}

#[test]
fn egress_loss_reaches_offers() {
    let mut members = Members::new();
    let mut context = members.context();
    context.set_new_leader_timeout(Some(SHORT)).unwrap();
    let (mut ingress, mut egress) = members.session(context).split();
    members.members[0].disconnect();
    await_that("the loss", || {
        let _ = egress.poll(|event| panic!("{event:?}"), 10);
        match ingress.offer(b"x") {
            Ok(_) | Err(OfferError::BackPressured | OfferError::AdminAction) => false,
            Err(OfferError::NotConnected | OfferError::Closed(_)) => true,
            Err(error) => panic!("{error}"),
        }
    });
    await_state(&mut egress, ClusterState::Closed(ClusterCloseCause::NoNewLeader));
    assert!(matches!(ingress.offer(b"x"), Err(OfferError::Closed(_))));
    assert_eq!(ingress.state(), ClusterState::Closed(ClusterCloseCause::NoNewLeader));
    let error = egress.poll(|_| {}, 10).expect_err("a closed session");
    assert_eq!(error.kind(), ClusterErrorKind::Closed);
    assert!(egress.subscription().is_none());
}

#[test]
fn ingress_loss_reaches_polls() {
    let mut members = Members::new();
    let (mut ingress, mut egress) = members.session(members.context()).split();
    // Keeps its egress, so that only offers can notice.
    members.members[0].stop_listening();
    await_that("the loss", || match ingress.offer(b"x") {
        Ok(_) | Err(OfferError::BackPressured | OfferError::AdminAction) => false,
        Err(error) => {
            assert_eq!(error, OfferError::NotConnected);
            true
        }
    });
    assert!(ingress.publication().is_none());
    assert_eq!(egress.state(), ClusterState::AwaitNewLeader);

    let endpoints = members.endpoints();
    members.members[1].leadership_term_id = 3;
    members.members[1].announce(&endpoints);
    await_leader(&mut egress);
    offer(&mut ingress, b"x");
    assert_eq!(egress.state(), ClusterState::Connected);
}

#[test]
fn idle_ingress_follows_by_keep_alives() {
    let mut members = Members::new();
    let endpoints = members.endpoints();
    let mut context = members.context();
    // The first regular keep-alive is far away.
    context.set_keep_alive_interval(Some(10 * TIMEOUT)).unwrap();
    let (mut ingress, mut egress) = members.session(context).split();
    members.members[1].leadership_term_id = 3;
    members.members[1].announce(&endpoints);
    await_leader(&mut egress);
    await_that("the new leader", || {
        ingress.poll_state_changes();
        egress.state() == ClusterState::Connected
    });
    let message = members.members[1].receive();
    assert_eq!(template_of(&message), SessionKeepAlive::TEMPLATE_ID);
    assert_eq!(ingress.poll_state_changes(), 0);
}

#[test]
fn silent_ingress_closes_session_of_new_leader() {
    let mut members = Members::new();
    let endpoints = members.endpoints();
    let mut context = members.context();
    // Also the time for connecting, so it is not shorter.
    context.set_message_timeout(Duration::from_secs(5)).unwrap();
    let (mut ingress, mut egress) = members.session(context).split();
    members.members[1].leadership_term_id = 3;
    members.members[1].announce(&endpoints);
    await_leader(&mut egress);
    await_state(&mut egress, ClusterState::Closed(ClusterCloseCause::NoConnectionToNewLeader));
    assert!(matches!(ingress.offer(b"x"), Err(OfferError::Closed(_))));
}

#[test]
fn dropped_ingress_closes_egress() {
    let mut members = Members::new();
    let (ingress, mut egress) = members.session(members.context()).split();
    drop(ingress);
    assert_eq!(template_of(&members.members[0].receive()), SessionCloseRequest::TEMPLATE_ID);
    assert_eq!(egress.state(), BY_APPLICATION);
    let error = egress.poll(|event| panic!("{event:?}"), 10).expect_err("a closed session");
    assert_eq!(error.kind(), ClusterErrorKind::Closed);
    assert_eq!(error.message(), "the application has closed the session");
    assert!(egress.subscription().is_none());
}

#[test]
fn dropped_egress_closes_ingress() {
    for is_dropped in [false, true] {
        let mut members = Members::new();
        let (mut ingress, egress) = members.session(members.context()).split();
        egress.close();
        assert!(members.members[0].poll().is_none());
        assert_eq!(ingress.state(), BY_APPLICATION);
        if is_dropped {
            drop(ingress);
        } else {
            assert!(matches!(ingress.offer(b"x"), Err(OfferError::Closed(_))));
            assert_eq!(ingress.poll_state_changes(), 0);
            assert!(ingress.publication().is_none());
        }
        let message = members.members[0].receive();
        assert_eq!(template_of(&message), SessionCloseRequest::TEMPLATE_ID);
        assert!(members.members[0].poll().is_none(), "one request is enough");
    }
}

#[test]
fn close_by_cluster_reaches_offers() {
    let mut members = Members::new();
    let (mut ingress, mut egress) = members.session(members.context()).split();
    members.members[0].close_session("TIMEOUT");
    await_that("the end", || egress.poll(|_| {}, 10).is_err());
    assert!(matches!(ingress.offer(b"x"), Err(OfferError::Closed(_))));
    assert_eq!(ingress.state(), ClusterState::Closed(ClusterCloseCause::ClosedByCluster));
    assert!(members.members[0].poll().is_none(), "the cluster knows");
}

#[test]
fn dead_driver_closes_both_halves() {
    let mut members = Members::new();
    let (mut ingress, mut egress) = members.session(members.context()).split();
    // With its media driver.
    drop(members);
    await_that("the end", || egress.poll(|event| panic!("{event:?}"), 10).is_err());
    let ClusterState::Closed(ClusterCloseCause::ClientClosed(cause)) = egress.state() else {
        panic!("{:?}", egress.state());
    };
    assert_eq!(ingress.offer(b"x"), Err(OfferError::Closed(cause)));
    assert_eq!(ingress.state(), egress.state());
}

#[test]
fn joined_halves_go_on() {
    let mut members = Members::new();
    let (ingress, egress) = members.session(members.context()).split();
    let mut other_members = Members::new();
    let (other_ingress, other_egress) = other_members.session(other_members.context()).split();
    let error = ClusterClient::join(ingress, other_egress).expect_err("halves of two sessions");
    assert!(error.to_string().contains("session 5"), "{error}");
    let mut client = ClusterClient::join(error.ingress, egress).expect("halves of one session");
    assert_eq!(client.state(), ClusterState::Connected);
    await_that("an accepted offer", || client.offer(b"joined").is_ok());
    let message = members.members[0].receive();
    assert_eq!(message[SessionHeader::LENGTH..], *b"joined");
    ClusterClient::join(other_ingress, error.egress).expect("halves of the other session").close();
    let message = other_members.members[0].receive();
    assert_eq!(template_of(&message), SessionCloseRequest::TEMPLATE_ID);
}

/// Returns the halves of a session over a shared publication, after the event of a new leader, member 1.
fn shared_with_new_leader(members: &mut Members) -> (Ingress, ClusterEgress) {
    let mut context = members.context();
    context.set_is_ingress_exclusive(false).unwrap();
    let (ingress, mut egress) = members.session(context).split();
    let endpoints = members.endpoints();
    members.members[1].leadership_term_id = 3;
    members.members[1].announce(&endpoints);
    await_leader(&mut egress);
    (ingress, egress)
}

/// Offers on the publication itself until the leader accepts. The ingress does not know of it.
fn offer_on_publication(ingress: &mut Ingress) -> Position {
    await_some("an accepted offer", || {
        ingress.poll_state_changes();
        let message = [&ingress.session_header().as_bytes()[..], b"own"].concat();
        match ingress.publication() {
            Some(AnyPublication::Shared(publication)) => publication.offer(&message).ok(),
            _ => None,
        }
    })
}

#[test]
fn own_offers_on_the_publication_are_tracked() {
    let mut members = Members::new();
    let (mut ingress, _egress) = shared_with_new_leader(&mut members);
    let offered = Ok(offer_on_publication(&mut ingress));
    assert_eq!(ingress.state(), ClusterState::AwaitNewLeaderConnection);
    assert_eq!(ingress.track_publication_result(offered), offered);
    assert_eq!(ingress.state(), ClusterState::Connected);
    let message = members.members[1].receive();
    assert_eq!((term(&message), &message[SessionHeader::LENGTH..]), (3, &b"own"[..]));
}

#[test]
fn accepted_offer_leaves_its_term() {
    let mut members = Members::new();
    let (mut ingress, mut egress) = shared_with_new_leader(&mut members);
    let offered = Ok(offer_on_publication(&mut ingress));
    // Another thread hears of the next leader before this one knows the outcome.
    let endpoints = members.endpoints();
    members.members[2].leadership_term_id = 4;
    members.members[2].announce(&endpoints);
    await_leader(&mut egress);
    assert_eq!(ingress.track_publication_result(offered), offered);
    assert_eq!((ingress.leadership_term_id(), ingress.leader_member_id()), (3.into(), 1.into()));
    assert_eq!(term(&members.members[1].receive()), 3);
    assert_eq!(ingress.state(), ClusterState::AwaitNewLeaderConnection);
    offer(&mut ingress, b"next");
    assert_eq!((ingress.leadership_term_id(), egress.state()), (4.into(), ClusterState::Connected));
    assert_eq!(term(&members.members[2].receive()), 4);
}
