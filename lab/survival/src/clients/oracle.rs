//! The checks of the messages that a subscriber sees.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::message::Message;
use crate::report::Finding;

/// A client that the driver has timed out finds out within this time. Until then, its subscriptions may be
/// overtaken.
pub(crate) const TIMEOUT_REPORT_DEADLINE: Duration = Duration::from_secs(1);

/// Where a message was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) image: i64,
    pub(crate) stream_id: i32,
    pub(crate) session_id: i32,
    pub(crate) position: i64,
}

/// Checks the messages of one subscription, as long as its client lives.
#[derive(Debug)]
pub(crate) struct Oracle {
    stream_id: i32,
    images: HashMap<i64, Image>,
    /// Gaps, until it is known whether the driver had timed out the subscriber.
    pending: Vec<(Instant, Finding)>,
}

#[derive(Debug, Default)]
struct Image {
    is_from_start: bool,
    position: i64,
    publications: HashMap<u64, Sequence>,
}

#[derive(Debug, Default)]
struct Sequence {
    next: u64,
    /// Skipped ranges: the first message, and the message after the last.
    missing: Vec<(u64, u64)>,
}

impl Oracle {
    pub(crate) fn new(stream_id: i32) -> Self {
        Self { stream_id, images: HashMap::new(), pending: Vec::new() }
    }

    /// Sets the images that the subscription has, with the positions at which they were joined, and
    /// forgets all others.
    pub(crate) fn set_images(&mut self, images: &[(i64, i64)]) {
        self.images.retain(|image, _| images.iter().any(|(id, _)| id == image));
        for (id, position) in images {
            self.images
                .entry(*id)
                .or_insert_with(|| Image { is_from_start: *position == 0, ..Image::default() });
        }
    }

    /// Checks a message. Gaps are reported later, by [`due`](Self::due) or [`ended`](Self::ended).
    pub(crate) fn observe(
        &mut self,
        location: Location,
        bytes: &[u8],
        now: Instant,
    ) -> Result<Message, Finding> {
        let found =
            |condition, text: &str| Finding::new(condition, format!("{text}; {location:?}"));
        if location.stream_id != self.stream_id {
            return Err(found("foreign", "a message of another stream"));
        }
        let message = Message::decode(bytes).map_err(|text| found("corrupted", &text))?;
        if (message.stream_id, message.session_id) != (location.stream_id, location.session_id) {
            return Err(found("foreign", &format!("{message:?}")));
        }
        // An unannounced image came between two looks at the list.
        let image = self.images.entry(location.image).or_default();
        let (first, before) = (if image.is_from_start { Some(0) } else { None }, image.position);
        let is_new = !image.publications.contains_key(&message.publication);
        let sequence = image.publications.entry(message.publication).or_default();
        if is_new {
            sequence.next = first.unwrap_or(message.sequence);
        }
        let text = format!("{message:?}, expected {} after position {before}", sequence.next);
        match sequence.accept(message.sequence) {
            Some(("lost", count)) => {
                self.pending.push((now, Finding { count, ..found("lost", &text) }));
            }
            Some((condition, _)) => return Err(found(condition, &text)),
            None if location.position <= before => return Err(found("repeated", &text)),
            None => {}
        }
        image.position = location.position;
        Ok(message)
    }

    /// Gaps that are faults, because the client still lives long after them.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Finding> {
        let count =
            self.pending.iter().take_while(|(at, _)| *at + TIMEOUT_REPORT_DEADLINE <= now).count();
        self.pending.drain(..count).map(|(_, finding)| finding).collect()
    }

    /// The end of the client. Returns the gaps that are faults, and how many messages were skipped because the
    /// client had timed out.
    pub(crate) fn ended(&mut self, now: Instant, had_timed_out: bool) -> (Vec<Finding>, u64) {
        let mut faults = self.due(now);
        let mut skipped = 0;
        for (_, finding) in self.pending.drain(..) {
            if had_timed_out {
                skipped += finding.count;
            } else {
                faults.push(finding);
            }
        }
        self.images.clear();
        (faults, skipped)
    }
}

impl Sequence {
    /// Returns the condition that a message violates, and how often.
    fn accept(&mut self, number: u64) -> Option<(&'static str, u64)> {
        if number >= self.next {
            let gap = (self.next, number);
            self.next = number + 1;
            if gap.0 == gap.1 {
                return None;
            }
            self.missing.push(gap);
            return Some(("lost", gap.1 - gap.0));
        }
        let is_missing = self.missing.iter().any(|gap| (gap.0..gap.1).contains(&number));
        Some((if is_missing { "reordered" } else { "repeated" }, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: i64 = 5;

    struct Feed {
        oracle: Oracle,
        start: Instant,
        position: i64,
    }

    fn feed() -> Feed {
        Feed { oracle: Oracle::new(1001), start: Instant::now(), position: 0 }
    }

    impl Feed {
        fn location(&mut self) -> Location {
            self.position += 64;
            Location { image: IMAGE, stream_id: 1001, session_id: 9, position: self.position }
        }

        fn message(sequence: u64) -> Message {
            Message { stream_id: 1001, session_id: 9, publication: 1, sequence, phase: 0 }
        }

        fn give(&mut self, sequence: u64) -> Option<&'static str> {
            let location = self.location();
            let bytes = Self::message(sequence).to_vec(8 * 1024, false);
            self.oracle.observe(location, &bytes, self.start).err().map(|finding| finding.condition)
        }

        fn lost(&mut self) -> Vec<u64> {
            let due = self.oracle.due(self.start + TIMEOUT_REPORT_DEADLINE);
            assert!(due.iter().all(|finding| finding.condition == "lost"));
            due.into_iter().map(|finding| finding.count).collect()
        }
    }

    #[test]
    fn a_sequence_in_order_is_no_fault() {
        let mut feed = feed();
        assert!((40..400).all(|sequence| feed.give(sequence).is_none()));
        assert_eq!(feed.lost(), [0; 0]);
    }

    #[test]
    fn a_gap_is_lost_messages() {
        let mut feed = feed();
        assert_eq!([1, 2, 5, 6].map(|sequence| feed.give(sequence)), [None; 4]);
        assert_eq!(feed.lost(), [2]);
    }

    #[test]
    fn gap_before_client_timeout_is_excused() {
        let mut feed = feed();
        assert_eq!([1, 4].map(|sequence| feed.give(sequence)), [None; 2]);
        assert_eq!(feed.oracle.ended(feed.start + TIMEOUT_REPORT_DEADLINE / 2, true), (vec![], 2));
    }

    #[test]
    fn other_or_late_end_excuses_no_gap() {
        for (later, had_timed_out) in
            [(TIMEOUT_REPORT_DEADLINE / 2, false), (TIMEOUT_REPORT_DEADLINE, true)]
        {
            let mut feed = feed();
            assert_eq!([1, 4].map(|sequence| feed.give(sequence)), [None; 2]);
            let (faults, skipped) = feed.oracle.ended(feed.start + later, had_timed_out);
            assert_eq!((faults.len(), faults[0].count, skipped), (1, 2, 0));
        }
    }

    #[test]
    fn first_messages_count_from_image_start() {
        for (joined, faults) in [(0, vec![3]), (64, vec![])] {
            let mut feed = feed();
            feed.oracle.set_images(&[(IMAGE, joined)]);
            assert_eq!(feed.give(3), None);
            assert_eq!(feed.lost(), faults);
        }
    }

    #[test]
    fn a_message_that_comes_again_is_repeated() {
        let mut feed = feed();
        assert_eq!([1, 2, 3].map(|sequence| feed.give(sequence)), [None; 3]);
        assert_eq!(feed.give(3), Some("repeated"));
        assert_eq!(feed.give(1), Some("repeated"));
        assert_eq!(feed.give(4), None);
    }

    #[test]
    fn a_message_that_was_missing_is_reordered() {
        let mut feed = feed();
        assert_eq!([1, 3, 2, 4].map(|it| feed.give(it)), [None, None, Some("reordered"), None]);
    }

    #[test]
    fn a_position_that_does_not_move_is_repeated() {
        let mut feed = feed();
        assert_eq!(feed.give(1), None);
        feed.position -= 64;
        assert_eq!(feed.give(2), Some("repeated"));
    }

    #[test]
    fn a_flipped_bit_is_corrupted() {
        let mut feed = feed();
        let (location, mut bytes) = (feed.location(), Feed::message(1).to_vec(8 * 1024, false));
        bytes[20] ^= 1;
        let finding = feed.oracle.observe(location, &bytes, feed.start).expect_err("a flipped bit");
        assert_eq!(finding.condition, "corrupted");
    }

    #[test]
    fn other_stream_or_session_is_foreign() {
        let change: [fn(&mut Location); 2] =
            [|location| location.stream_id += 1, |location| location.session_id += 1];
        for change in change {
            let mut feed = feed();
            let (mut location, bytes) = (feed.location(), Feed::message(1).to_vec(8 * 1024, false));
            change(&mut location);
            let finding = feed.oracle.observe(location, &bytes, feed.start).expect_err("foreign");
            assert_eq!(finding.condition, "foreign");
        }
    }

    #[test]
    fn images_are_apart_and_forgotten() {
        let mut feed = feed();
        assert_eq!(feed.give(1), None);
        let other = Location { image: IMAGE + 1, ..feed.location() };
        let bytes = Feed::message(1).to_vec(8 * 1024, false);
        assert!(feed.oracle.observe(other, &bytes, feed.start).is_ok());
        assert_eq!(feed.oracle.images.len(), 2);
        feed.oracle.set_images(&[(IMAGE, 0)]);
        assert_eq!(feed.oracle.images.len(), 1);
    }
}
