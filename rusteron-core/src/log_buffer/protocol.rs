//! The atomic steps by which publishers, subscribers and the media driver share a log buffer.
//!
//! All steps that order memory between these parties on the message path are here, once. Each step
//! has the memory order of C, and the reason why that order is enough. C's `AERON_GET_ACQUIRE` and
//! `AERON_SET_RELEASE` are acquire loads and release stores. `AERON_GET_AND_ADD_INT64` and
//! `aeron_cas_*` are sequentially consistent.
//!
//! The steps are generic over their word type. So the tests below run the same code on words of
//! `loom`. It tries all interleavings, and all values that the orders allow a load to see.

use std::sync::atomic::{AtomicI32, AtomicI64, Ordering, fence};

/// The number of term buffers in a log.
pub const PARTITION_COUNT: usize = 3;

/// Attempts to set the tail of the next term, which late publishers move a few times at most.
const ROTATION_ATTEMPTS: u32 = 64;

/// An atomic number in shared memory.
pub trait Word {
    /// The number.
    type Value;

    /// Loads the number.
    fn load(&self, order: Ordering) -> Self::Value;
    /// Stores the number.
    fn store(&self, value: Self::Value, order: Ordering);
    /// Adds, sequentially consistent, and returns the number before.
    fn fetch_add(&self, value: Self::Value) -> Self::Value;
    /// Exchanges the number if it is `current`, sequentially consistent. Returns whether it was.
    fn compare_exchange(&self, current: Self::Value, new: Self::Value) -> bool;
    /// Orders what came before it before later stores.
    fn release_fence();
}

/// Implements [`Word`] for an atomic of the standard library or of `loom`.
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

/// Begins a frame: stores its negative length, before anything else is written to the frame.
///
/// If this process dies before it publishes the frame, the driver reads the length of the gap from
/// here. The store is a release as in C: the tail was moved before, so a driver that makes padding
/// of that length also sees the tail behind the frame. The fence comes before the writes to the
/// frame, so that none of them is seen before the length (as in C's
/// `aeron_publication_header_write`).
#[inline(always)]
pub fn begin_frame(length: &impl Word<Value = i32>, frame_length: i32) {
    length.store(-frame_length, Ordering::Release);
    release_fence(length);
}

#[inline(always)]
fn release_fence<W: Word>(_: &W) {
    W::release_fence();
}

/// Publishes a frame: stores its length, which makes everything written to the frame visible.
///
/// Release, as in C: the store pairs with the acquire of [`published_length`].
#[inline(always)]
pub fn publish_frame(length: &impl Word<Value = i32>, frame_length: i32) {
    length.store(frame_length, Ordering::Release);
}

/// Returns the length of the frame here. The length is positive only if the frame has been
/// published. Then all of the frame is visible.
///
/// Acquire, as in C: the load pairs with [`publish_frame`], in this process or another one.
#[inline(always)]
pub fn published_length(length: &impl Word<Value = i32>) -> i32 {
    length.load(Ordering::Acquire)
}

/// Returns the position up to which another party is done, such as a publisher's limit.
///
/// Acquire, as in C: the load pairs with [`set_position`]. For a limit, it pairs with the driver's
/// release store after the driver has cleaned the range. A publisher writes there after that
/// reading and cleaning.
#[inline(always)]
pub fn position(counter: &impl Word<Value = i64>) -> i64 {
    counter.load(Ordering::Acquire)
}

/// Returns the position in a counter, unless the driver has given the counter to another resource.
///
/// The driver first clears the registration id, then sets the value to 0, each with release. This
/// acquire pairs with the store of the value: a value of the next owner is never taken for the
/// previous owner's.
#[inline(always)]
pub fn owned_position<W: Word<Value = i64>>(
    value: &W,
    registration_id: &W,
    owner: i64,
) -> Option<i64> {
    let position = position(value);
    (registration_id.load(Ordering::Relaxed) == owner).then_some(position)
}

/// Stores the position up to which everything has been read and may be overwritten.
///
/// Release, as in C: the reads come before the store.
#[inline(always)]
pub fn set_position(counter: &impl Word<Value = i64>, position: i64) {
    counter.store(position, Ordering::Release);
}

/// Moves the tail as the only publisher, before writing the frames that end there. If this process
/// dies before it publishes the frames, the driver finds the length that it has to unblock.
///
/// Release, as in C: a party that sees the moved tail also sees all frames before the last as
/// published. When the driver unblocks, it regards a range before the tail without a frame length
/// as a gap.
#[inline(always)]
pub fn set_tail(tail: &impl Word<Value = i64>, raw_tail: i64) {
    tail.store(raw_tail, Ordering::Release);
}

/// Returns the value of a term's tail counter: the term id, and the offset of the term's end.
#[inline(always)]
pub fn raw_tail(term_id: i32, offset: i32) -> i64 {
    (i64::from(term_id) << 32) | i64::from(offset)
}

/// Returns the index of the term buffer for the term after `term_count` others: the count modulo 3.
///
/// This works for any count. A division would cost twice as much. The product's lower half is the
/// fraction of a third of the count.
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

/// The terms of a log that several publishers share. Publishers claim ranges of the active term.
#[derive(Debug)]
pub struct Terms<'a, Tail, Count> {
    /// For each term buffer, the id of its term and the offset of its tail. In a full term, the
    /// tail is beyond the end of the term.
    pub tails: &'a [Tail; PARTITION_COUNT],
    /// The number of terms that have come to an end.
    pub active_term_count: &'a Count,
    /// The id of the first term of the log.
    pub initial_term_id: i32,
}

/// The tail of the active term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// The index of the term buffer.
    pub index: usize,
    /// The value of the tail counter.
    raw: i64,
}

impl Tail {
    /// Returns the value of the tail counter: the term id, and the offset behind it.
    #[inline(always)]
    pub fn raw(self) -> i64 {
        self.raw
    }

    /// Returns the id of the term.
    #[inline(always)]
    pub fn term_id(self) -> i32 {
        (self.raw >> 32) as i32
    }

    /// Returns the offset from the beginning of the term. It can be beyond the end of the term.
    #[inline(always)]
    pub fn offset(self) -> i64 {
        self.raw & 0xffff_ffff
    }
}

impl<T: Word<Value = i64>, C: Word<Value = i32>> Terms<'_, T, C> {
    /// Returns the tail of the active term, or `None` while the log is being rotated.
    ///
    /// Both loads are acquires as in C, but nothing depends on that. The term id tells whether
    /// count and tail are of the same term. The position limit and [`claim`](Self::claim) tell
    /// whether a range may be written to.
    #[inline(always)]
    pub fn tail(&self) -> Option<Tail> {
        let (term_count, tail) = self.newest_tail();
        (tail.term_id().wrapping_sub(self.initial_term_id) == term_count).then_some(tail)
    }

    /// Returns the active term count, and the tail in that term's buffer, which can be of a later term.
    #[inline(always)]
    pub fn newest_tail(&self) -> (i32, Tail) {
        let term_count = self.active_term_count.load(Ordering::Acquire);
        let index = partition_index(term_count);
        (term_count, Tail { index, raw: self.tails[index].load(Ordering::Acquire) })
    }

    /// Claims `length` bytes at the tail of the term in the buffer with this index, and returns the
    /// tail before them. Each range is given to one publisher only.
    ///
    /// The position limit makes the reading and cleaning of the range visible. A publisher can be
    /// held up after it has read the limit, until the buffer holds a later term. For that
    /// publisher, this addition makes them visible: it comes after the exchange in
    /// [`rotate`](Self::rotate) by a publisher that has seen a later limit. The frame lengths make
    /// visible what is written to the range.
    #[inline(always)]
    pub fn claim(&self, index: usize, length: usize) -> Tail {
        Tail { index, raw: self.tails[index].fetch_add(length as i64) }
    }

    /// Reverts a claim behind the end of the term, where no ranges are. The tail then stays there.
    pub fn give_back(&self, index: usize, length: usize) {
        self.tails[index].fetch_add(-(length as i64));
    }

    /// Makes the term after `term_id` the active one, unless another publisher has done so.
    ///
    /// Every publisher that finds a term full calls this. The next tail is set first, from the
    /// value that it has had since its buffer was last used. So no publisher can get a range from
    /// an old tail. The count is set second, and sends publishers to the term. Each exchange
    /// succeeds for one publisher at most, as neither value comes again. The exchange of the tail
    /// hands on to [`claim`](Self::claim) the cleaning that this publisher has seen. The other
    /// orders are C's, and nothing depends on them. The load cannot see a term before the buffer's
    /// last one, as this publisher's addition to the full term came after that.
    pub fn rotate(&self, term_id: i32) {
        let next_term_id = term_id.wrapping_add(1);
        let term_count = term_id.wrapping_sub(self.initial_term_id);
        let next_term_count = term_count.wrapping_add(1);
        let index = partition_index(next_term_count);
        let next = &self.tails[index];
        let old_term_id = next_term_id.wrapping_sub(PARTITION_COUNT as i32);
        // Bounded, because another process could move the tail for ever.
        let is_set = (0..ROTATION_ATTEMPTS).any(|_| {
            let raw = next.load(Ordering::Acquire);
            (Tail { index, raw }).term_id() != old_term_id
                || next.compare_exchange(raw, raw_tail(next_term_id, 0))
        });
        if is_set {
            self.active_term_count.compare_exchange(term_count, next_term_count);
        }
    }

    /// Makes the term with this id the active one, as the only publisher.
    ///
    /// Release, as in C: a party that sees the count also sees the tail, and all frames before it as
    /// published.
    pub fn begin_term(&self, term_id: i32) {
        let term_count = term_id.wrapping_sub(self.initial_term_id);
        set_tail(&self.tails[partition_index(term_count)], raw_tail(term_id, 0));
        self.active_term_count.store(term_count, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn term_count_selects_partition() {
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
