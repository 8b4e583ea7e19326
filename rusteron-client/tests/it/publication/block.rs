//! Blocks: whole frames of another log buffer, copied as they are.

use rusteron_client::{BlockFault, ExclusivePublication, Header, Mismatch, OfferError, Position};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{
    Random, await_that, connect, connected_pair, launch, log_bytes, offer, receive, retry,
};

/// Streams with which session ids, term ids and offsets are known.
const REPLAYED: &str = "aeron:ipc?term-length=64k|session-id=5|\
     init-term-id=7|term-id=8|term-offset=64";
const TERM_LENGTH: usize = 64 * 1024;
const ORIGIN: Position = TERM_LENGTH as Position + 64;

/// Returns the bytes that a publication of `REPLAYED` wrote from a position on.
fn recorded(driver: &MediaDriver, publication: &ExclusivePublication, from: Position) -> Vec<u8> {
    log_bytes(driver, publication.constants(), from..publication.position().expect("open"))
}

/// A frame as it lies in the log.
fn frame(payload: &[u8], header: &Header<'_>) -> Vec<u8> {
    let mut frame = (payload.len() as i32 + 32).to_ne_bytes().to_vec();
    frame.extend([0, header.flags()]);
    frame.extend(1_u16.to_ne_bytes());
    for number in [header.term_offset(), header.session_id(), header.stream_id(), header.term_id()]
    {
        frame.extend(number.to_ne_bytes());
    }
    frame.extend(header.reserved_value().to_ne_bytes());
    frame.extend(payload);
    frame.resize(frame.len().next_multiple_of(32), 0);
    frame
}

#[test]
fn block_is_copied_unchanged() {
    let (original, copy) = (launch(), launch());
    let (first, second) = (connect(&original), connect(&copy));
    let (mut recorder, mut heard) = connected_pair(&first, REPLAYED);
    let (mut player, mut repeated) = connected_pair(&second, REPLAYED);
    let mut random = Random::new(11);
    let max_payload = recorder.max_payload_length();

    let mut from = ORIGIN;
    for round in 0..4 {
        // To the very end of the term.
        let (mut block, mut messages) = (Vec::new(), Vec::new());
        while from as usize % TERM_LENGTH + block.len() != TERM_LENGTH || block.is_empty() {
            let left = TERM_LENGTH - (from as usize + block.len()) % TERM_LENGTH;
            let length = if left < 4_000 { left.min(max_payload + 32) - 32 } else { 700 };
            let message = random.bytes(length);
            let supplier = |payload: &[u8]| payload.len() as i64;
            retry(|| recorder.offer_with_reserved_value(&message, supplier)).expect("open");
            await_that("the message", || {
                let handler = |payload: &[u8], header: &Header<'_>| {
                    block.extend(frame(payload, header));
                };
                heard.poll(handler, 1).expect("open") == 1
            });
            messages.push(message);
        }

        let expected = recorder.position();
        // From the second round on, this goes from one term to the next, which is full at once.
        assert_eq!(retry(|| player.offer_block(&block)), expected, "round {round}");
        assert_eq!(player.position(), expected);
        assert!(recorded(&copy, &player, from) == block, "round {round}");
        assert!(receive(&mut repeated, messages.len()) == messages, "round {round}");
        from = expected.expect("open");
    }
}

#[test]
fn misfit_is_refused_with_the_reason() {
    let (original, copy) = (launch(), launch());
    let (first, second) = (connect(&original), connect(&copy));
    let (mut recorder, _heard) = connected_pair(&first, REPLAYED);
    let (mut player, mut repeated) = connected_pair(&second, REPLAYED);
    offer(&mut recorder, &[1; 10]);
    offer(&mut recorder, &[2; 100]);
    drop(recorder.try_claim(10).expect("an available window"));
    offer(&mut recorder, &[3; 5]);
    let block = recorded(&original, &recorder, ORIGIN);
    let second = 64;
    let padding = second + 160;

    let mut check = |offset: usize, fault: BlockFault, block: &[u8]| {
        let refused = Err(OfferError::InvalidBlock { offset, fault });
        assert_eq!(player.offer_block(block), refused);
        assert_eq!(player.position(), Ok(ORIGIN), "nothing was sent");
    };
    let with = |at: usize, bytes: &[u8]| {
        let mut block = block.clone();
        block[at..at + bytes.len()].copy_from_slice(bytes);
        block
    };
    check(0, BlockFault::Truncated, &[]);
    check(0, BlockFault::Truncated, &block[..31]);
    check(0, BlockFault::Truncated, &block[..42]);
    check(second, BlockFault::Truncated, &block[..second + 4]);
    check(second, BlockFault::Truncated, &block[..padding - 32]);
    check(0, BlockFault::BeyondTerm, &vec![0; TERM_LENGTH - 63]);
    for frame in [0, second] {
        let number = |at: usize, value: i32| with(frame + at, &value.to_ne_bytes());
        let too_long = player_max_payload() + 33;
        for length in [0, -42, 31, i32::MIN, i32::MAX, too_long] {
            check(frame, BlockFault::FrameLength(length), &number(0, length));
        }
        check(frame, BlockFault::Version(1), &with(frame + 4, &[1]));
        check(frame, BlockFault::Type(5), &with(frame + 6, &5_u16.to_ne_bytes()));
        let mut misfit = |at: usize, found: i32, fault: fn(Mismatch) -> BlockFault| {
            let expected = block[frame + at..].first_chunk().expect("a field of the header");
            let expected = i32::from_ne_bytes(*expected);
            check(frame, fault(Mismatch { found, expected }), &number(at, found));
        };
        misfit(8, 32, BlockFault::TermOffset);
        misfit(12, 6, BlockFault::SessionId);
        misfit(16, 6, BlockFault::StreamId);
        misfit(20, 7, BlockFault::TermId);
    }
    // An aborted claim leaves padding in between. A block does not begin with padding.
    check(0, BlockFault::Type(0), &with(6, &0_u16.to_ne_bytes()));
    check(0, BlockFault::Type(0), &block[padding..]);

    assert_eq!(retry(|| player.offer_block(&block)), recorder.position());
    assert_eq!(receive(&mut repeated, 3), [vec![1; 10], vec![2; 100], vec![3; 5]]);
}

/// What is written behind the frames is gone, also if nothing is published.
#[test]
fn filled_block_is_published_without_its_rest() {
    let (original, copy) = (launch(), launch());
    let (first, second) = (connect(&original), connect(&copy));
    let (mut recorder, _heard) = connected_pair(&first, REPLAYED);
    let (mut player, mut repeated) = connected_pair(&second, REPLAYED);
    offer(&mut recorder, &[1; 10]);
    offer(&mut recorder, &[2; 100]);
    let block = recorded(&original, &recorder, ORIGIN);
    let remaining = TERM_LENGTH - ORIGIN as usize % TERM_LENGTH;

    let mut fill = |frames: usize, is_faulty: bool| {
        let fill = |bytes: &mut [u8], term_id: i32, term_offset: i32| {
            assert_eq!(bytes.len(), remaining, "up to the end of the term");
            assert!(bytes.iter().all(|byte| *byte == 0), "nothing is left of earlier fills");
            assert_eq!(term_id.to_ne_bytes(), block[20..24]);
            assert_eq!(term_offset.to_ne_bytes(), block[8..12]);
            bytes[4..].fill(9);
            bytes[4..block.len()].copy_from_slice(&block[4..]);
            assert!(!is_faulty, "a fill that fails");
            (frames, i32::from_ne_bytes([block[0], block[1], block[2], block[3]]))
        };
        // SAFETY: the block was recorded at this position; the first length is passed by.
        retry(|| unsafe { player.fill_block(TERM_LENGTH, fill) })
    };
    assert_eq!(fill(0, false), Ok(ORIGIN));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fill(0, true)));
    panicked.expect_err("a panic");
    assert_eq!(fill(block.len(), false), recorder.position());
    assert!(recorded(&copy, &player, ORIGIN) == block);
    assert_eq!(receive(&mut repeated, 2), [vec![1; 10], vec![2; 100]]);
    offer(&mut player, &[3; 5]);
    assert_eq!(receive(&mut repeated, 1), [vec![3; 5]]);
}

/// C's function would go on to a term that is none.
#[test]
fn block_after_the_last_term_is_refused() {
    let driver = launch();
    let aeron = connect(&driver);
    let channel = "aeron:ipc?term-length=64k|init-term-id=0|term-id=2147483647|term-offset=65504";
    let (mut publication, _subscription) = connected_pair(&aeron, channel);
    assert_eq!(publication.append_padding(0), Ok(1 << 47));
    assert_eq!(publication.offer_block(&[0; 64]), Err(OfferError::MaxPositionExceeded));
    assert!(!OfferError::MaxPositionExceeded.is_retryable());
}

/// The longest payload of a frame over IPC with the driver's default MTU.
fn player_max_payload() -> i32 {
    1_376
}
