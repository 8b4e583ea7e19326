//! The atomic steps by which publishers, subscribers and the media driver share a log buffer.
//!
//! Everything that orders memory between them on the message path is here, once, with the order that C
//! has and the reason why it is enough. C's `AERON_GET_ACQUIRE` and `AERON_SET_RELEASE` are acquire
//! loads and release stores, `AERON_GET_AND_ADD_INT64` and `aeron_cas_*` are sequentially consistent.
//!
//! The steps are generic over the word they work on, so that the tests below can run the very same code
//! on words of `loom`, which tries all interleavings and all values that the orders allow a load to see.

use std::sync::atomic::{AtomicI32, AtomicI64, Ordering, fence};

/// How many term buffers a log has.
pub(crate) const PARTITION_COUNT: usize = 3;

/// An atomic number in shared memory.
pub(crate) trait Word {
    type Value;

    fn load(&self, order: Ordering) -> Self::Value;
    fn store(&self, value: Self::Value, order: Ordering);
    fn fetch_add(&self, value: Self::Value) -> Self::Value;
    fn compare_exchange(&self, current: Self::Value, new: Self::Value) -> bool;
    fn release_fence();
}

/// For the atomics of the standard library or of `loom`.
macro_rules! word {
    ($word:ty, $value:ty, $fence:path) => {
        impl Word for $word {
            type Value = $value;

            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                self.load(order)
            }

            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                self.store(value, order);
            }

            #[inline(always)]
            fn fetch_add(&self, value: $value) -> $value {
                self.fetch_add(value, Ordering::SeqCst)
            }

            #[inline(always)]
            fn compare_exchange(&self, current: $value, new: $value) -> bool {
                self.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst).is_ok()
            }

            #[inline(always)]
            fn release_fence() {
                $fence(Ordering::Release);
            }
        }
    };
}

word!(AtomicI32, i32, fence);
word!(AtomicI64, i64, fence);

/// Says that a frame begins here, of which nothing is written yet: the negative length.
///
/// Should this process die before it publishes the frame, the driver knows from that how long the gap
/// is. The store is a release as in C: a driver that makes padding of that length also sees that the end
/// of the stream, which was moved before, is behind it. The fence keeps what is written into the frame from
/// being seen before (as in C's `aeron_publication_header_write`).
#[inline(always)]
pub(crate) fn begin_frame(length: &impl Word<Value = i32>, frame_length: i32) {
    length.store(-frame_length, Ordering::Release);
    release_fence(length);
}

#[inline(always)]
fn release_fence<W: Word>(_: &W) {
    W::release_fence();
}

/// Publishes a frame: with its length everything that was written into it becomes visible.
///
/// Release, as in C: it pairs with the acquire of [`published_length`].
#[inline(always)]
pub(crate) fn publish_frame(length: &impl Word<Value = i32>, frame_length: i32) {
    length.store(frame_length, Ordering::Release);
}

/// The length of the frame here; not positive unless it has been published, and then all of it is
/// visible.
///
/// Acquire, as in C: it pairs with [`publish_frame`], in this process or another one.
#[inline(always)]
pub(crate) fn published_length(length: &impl Word<Value = i32>) -> i32 {
    length.load(Ordering::Acquire)
}

/// A position up to which another party is done: a publisher's limit.
///
/// Acquire, as in C: it pairs with [`set_position`] or, for a limit, with the driver's release store
/// after it has cleaned the place; writing there comes after reading and cleaning.
#[inline(always)]
pub(crate) fn position(counter: &impl Word<Value = i64>) -> i64 {
    counter.load(Ordering::Acquire)
}

/// The position in a counter, unless the driver has given the counter to another resource.
///
/// The driver first takes the registration id away, then sets the value to 0, each with release. This acquire pairs
/// with the latter: a value of the next owner's is never taken for one of the owner before.
#[inline(always)]
pub(crate) fn owned_position<W: Word<Value = i64>>(
    value: &W,
    registration_id: &W,
    owner: i64,
) -> Option<i64> {
    let position = position(value);
    (registration_id.load(Ordering::Relaxed) == owner).then_some(position)
}

/// Says that everything before the position has been read, and may be overwritten.
///
/// Release, as in C: the reads come before.
#[inline(always)]
pub(crate) fn set_position(counter: &impl Word<Value = i64>, position: i64) {
    counter.store(position, Ordering::Release);
}

/// Moves the stream's end, as the only publisher. This goes before the frames that end there: should
/// this process die before they are published, the driver finds the length that it has to unblock.
///
/// Release, as in C: who sees the end moved on sees all frames before the last published. The driver, when
/// it unblocks, takes what has no length there for a gap.
#[inline(always)]
pub(crate) fn set_tail(tail: &impl Word<Value = i64>, raw_tail: i64) {
    tail.store(raw_tail, Ordering::Release);
}

/// What the tail counter of a term says: its id, and the offset of its end.
#[inline(always)]
pub(crate) fn raw_tail(term_id: i32, offset: i32) -> i64 {
    (i64::from(term_id) << 32) | i64::from(offset)
}

/// Which term buffer the term after `term_count` others is in: the count modulo 3, of any count.
///
/// A division would cost twice as much. The product's lower half is the fraction of a third of the count.
#[inline(always)]
fn partition_index(term_count: i32) -> usize {
    const _: () = assert!(PARTITION_COUNT == 3);
    const THIRD: u64 = u64::MAX / 3 + 1;
    let index = (u64::from(term_count as u32).wrapping_mul(THIRD) >> 62) as usize;
    // SAFETY: THIRD is (2^64 + 2) / 3. For n = 3q + r, n * THIRD is r * 2^64 / 3 + 2n / 3 modulo 2^64. As
    // 2n / 3 is less than 2^32, that is between r * 2^62 and (r + 1) * 2^62: the upper two bits are r.
    unsafe { std::hint::assert_unchecked(index < PARTITION_COUNT) };
    index
}

/// The terms of a log that publishers share: who comes next, and in which term.
pub(crate) struct Terms<'a, Tail, Count> {
    /// For each term buffer, the id of its term and the offset of its end, which goes beyond the term
    /// when it is full.
    pub(crate) tails: &'a [Tail; PARTITION_COUNT],
    /// How many terms have come to an end.
    pub(crate) active_term_count: &'a Count,
    pub(crate) initial_term_id: i32,
}

/// Where the active term ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    /// Of the term buffer.
    pub(crate) index: usize,
    /// What the tail counter said.
    raw: i64,
}

impl Tail {
    #[inline(always)]
    pub(crate) fn raw(self) -> i64 {
        self.raw
    }

    #[inline(always)]
    pub(crate) fn term_id(self) -> i32 {
        (self.raw >> 32) as i32
    }

    /// From the beginning of the term; it can be beyond its end.
    #[inline(always)]
    pub(crate) fn offset(self) -> i64 {
        self.raw & 0xffff_ffff
    }
}

impl<T: Word<Value = i64>, C: Word<Value = i32>> Terms<'_, T, C> {
    /// The end of the active term; `None` while the log is being rotated.
    ///
    /// Both loads are acquires as in C, but nothing depends on that: whether count and tail are of the
    /// same term, the term id tells, and that a place may be written to, the position limit and
    /// [`claim`](Self::claim).
    #[inline(always)]
    pub(crate) fn tail(&self) -> Option<Tail> {
        let term_count = self.active_term_count.load(Ordering::Acquire);
        let index = partition_index(term_count);
        let tail = Tail { index, raw: self.tails[index].load(Ordering::Acquire) };
        (tail.term_id().wrapping_sub(self.initial_term_id) == term_count).then_some(tail)
    }

    /// Takes `length` bytes at the end of the term in the buffer with this index, and says where they
    /// are: each place is given once.
    ///
    /// What was read and cleaned here before is visible by the position limit. To a publisher that was
    /// held up since it looked at that, until the buffer had become that of a later term, it is visible
    /// by this addition: it comes after the exchange in [`rotate`](Self::rotate) of one that has seen a
    /// later limit. What is written here is visible by the frame lengths.
    #[inline(always)]
    pub(crate) fn claim(&self, index: usize, length: usize) -> Tail {
        Tail { index, raw: self.tails[index].fetch_add(length as i64) }
    }

    /// Takes a claim back that was behind the end of the term, where no places are: the tail stays there.
    pub(crate) fn give_back(&self, index: usize, length: usize) {
        self.tails[index].fetch_add(-(length as i64));
    }

    /// Makes the term after `term_id` the active one, unless another publisher has done so.
    ///
    /// Everyone who finds a term full does this. The next tail is set first, from the value that it
    /// has had since its buffer was last used, so that nobody can be given a place by an old one; then
    /// the count, which sends publishers there. Both exchanges succeed for one publisher at the most:
    /// neither value comes again. That of the tail hands on to [`claim`](Self::claim) what this publisher
    /// has seen cleaned; the other orders are C's, and nothing depends on them: the load can see no term
    /// before the buffer's last one, as this publisher's addition to the full term came after that.
    pub(crate) fn rotate(&self, term_id: i32) {
        let next_term_id = term_id.wrapping_add(1);
        let term_count = term_id.wrapping_sub(self.initial_term_id);
        let next_term_count = term_count.wrapping_add(1);
        let index = partition_index(next_term_count);
        let next = &self.tails[index];
        let old_term_id = next_term_id.wrapping_sub(PARTITION_COUNT as i32);
        loop {
            let raw = next.load(Ordering::Acquire);
            if (Tail { index, raw }).term_id() != old_term_id
                || next.compare_exchange(raw, raw_tail(next_term_id, 0))
            {
                break;
            }
        }
        self.active_term_count.compare_exchange(term_count, next_term_count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_is_in_the_buffer_of_its_count_modulo_three() {
        let around = |middle: i32| (-9..=9).map(move |step| middle.wrapping_add(step));
        let steps = (0..=i32::MAX).step_by(65_521);
        for term_count in
            steps.chain([0, i32::MAX, 1 << 30, 0x5555_5555].into_iter().flat_map(around))
        {
            assert_eq!(partition_index(term_count), term_count as u32 as usize % 3, "{term_count}");
        }
    }
}

#[cfg(test)]
mod model;
