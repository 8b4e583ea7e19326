//! Reading the counters of a media driver, of all owners.

use std::fmt;
use std::mem::{self, offset_of};
use std::time::SystemTime;

use rusteron_sys as sys;
use sys::aeron_counter_metadata_descriptor_t as Metadata;
use sys::aeron_counter_value_descriptor_t as Value;

use crate::cnc::epoch;
use crate::cnc::shared_memory::SharedMemory;
use crate::printable::Printable;

/// The maximum length of a counter's key, in bytes.
pub const MAX_KEY_LENGTH: usize = offset_of!(Metadata, label_length) - offset_of!(Metadata, key);
/// The maximum length of a counter's label, in bytes.
pub const MAX_LABEL_LENGTH: usize = size_of::<Metadata>() - offset_of!(Metadata, label);

/// Reads the counters of a media driver: the driver's own, and those of all its clients.
///
/// Other processes change this memory at any time, so everything is copied. A counter can be gone
/// when its copy is used. Two numbers that are read one after the other belong to different
/// moments. Reading neither blocks nor makes a system call.
///
/// `Aeron::counters_reader` makes a reader for the driver of a
/// client. [`CncFile::counters`](crate::cnc::CncFile::counters) makes a reader for any driver.
///
/// ```
/// # use rusteron_client::{Aeron, Context};
/// # use rusteron_media_driver::MediaDriver;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// # let mut context = Context::new()?;
/// # context.set_dir(driver.aeron_dir())?;
/// # let aeron = Aeron::connect(context)?;
/// for counter in aeron.counters_reader().iter() {
///     println!("{counter}");
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias("CountersManager", "AeronCounters", "aeron_counters_reader_t"))]
#[derive(Clone, Copy)]
pub struct CountersReader<'a> {
    values: SharedMemory<'a>,
    metadata: SharedMemory<'a>,
    max_counter_id: i32,
}

/// A copy of a counter, taken at one moment.
///
/// It is printed as in Aeron's `AeronStat`: id, value and label.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterSnapshot {
    /// The counter's id. Another counter may get this id after this counter is freed.
    pub id: i32,
    /// The kind of the counter. Aeron's own kinds have numbers below 1000.
    pub type_id: i32,
    /// The value.
    pub value: i64,
    /// The description for people. Bytes that are not UTF-8 are replaced.
    pub label: String,
    /// The description for programs: bytes whose meaning depends on the type, followed by zeros.
    /// The number of bytes is not recorded.
    pub key: [u8; MAX_KEY_LENGTH],
    /// The id by which the counter was registered. It is briefly 0 while the driver makes the
    /// counter.
    pub registration_id: i64,
    /// The id of the client that owns the counter. It is -1 for the driver's own and for static
    /// counters.
    pub owner_id: i64,
    /// The registration id of the resource that the counter belongs to. It is 0 if the type has
    /// none.
    pub reference_id: i64,
}

/// The state of a counter's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CounterState {
    /// No counter has used this slot yet, nor any slot with a higher id.
    Unused,
    /// A counter is in this slot.
    Allocated,
    /// The counter in this slot has been freed. After a while, another counter gets the slot.
    Reclaimed,
}

impl<'a> CountersReader<'a> {
    /// Returns the highest id that has a slot. Most slots are unused.
    ///
    /// Corresponds to `aeron_counters_reader_max_counter_id`.
    #[doc(alias = "aeron_counters_reader_max_counter_id")]
    pub fn max_counter_id(&self) -> i32 {
        self.max_counter_id
    }

    /// Returns copies of all counters, made one after the other, in the order of their ids.
    ///
    /// Each copy allocates its label. [`for_each`](Self::for_each) does not.
    ///
    /// Corresponds to `aeron_counters_reader_foreach_counter` and `aeron_print_counters`.
    #[doc(alias("aeron_counters_reader_foreach_counter", "aeron_print_counters"))]
    pub fn iter(&self) -> Counters<'a> {
        Counters { reader: *self, next_id: 0 }
    }

    /// Calls the handler with a copy of each counter, in the order of their ids.
    ///
    /// The copies are made one after the other in the same memory, which is allocated once.
    ///
    /// Corresponds to `aeron_counters_reader_foreach_counter`.
    #[doc(alias = "aeron_counters_reader_foreach_counter")]
    pub fn for_each(&self, mut handler: impl FnMut(&CounterSnapshot)) {
        let mut counter = CounterSnapshot::empty();
        let mut next_id = 0;
        while let Some(()) = self.next(&mut next_id, &mut counter) {
            handler(&counter);
        }
    }

    /// Returns a copy of the counter with an id. `None` if there is no such counter.
    ///
    /// Corresponds to `aeron_counters_reader_addr` and the functions for each of its properties.
    #[doc(alias = "aeron_counters_reader_addr")]
    pub fn counter(&self, counter_id: i32) -> Option<CounterSnapshot> {
        let mut counter = CounterSnapshot::empty();
        self.slot(counter_id)?.copy_to(&mut counter)?;
        Some(counter)
    }

    /// Returns the id of the first counter with a type and a registration id. `None` if there is no
    /// such counter.
    ///
    /// Corresponds to `aeron_counters_reader_find_by_type_id_and_registration_id`.
    #[doc(alias = "aeron_counters_reader_find_by_type_id_and_registration_id")]
    pub fn find_by_type_id_and_registration_id(
        &self,
        type_id: i32,
        registration_id: i64,
    ) -> Option<i32> {
        self.used_slots()
            .filter(|slot| slot.is_allocated())
            .find(|slot| {
                slot.type_id() == Some(type_id) && slot.registration_id() == Some(registration_id)
            })
            .map(|slot| slot.id)
    }

    /// Returns the value of a counter. `None` if there is no counter with the id.
    ///
    /// Corresponds to `aeron_counters_reader_addr`.
    #[doc(alias = "aeron_counters_reader_addr")]
    pub fn value(&self, counter_id: i32) -> Option<i64> {
        self.allocated(counter_id)?.value()
    }

    /// Returns the value of a counter with a registration id, the last one if the counter has been
    /// freed. `None` once another counter has the id, or if there was none.
    ///
    /// [`state`](Self::state) tells whether the counter is still there.
    pub fn last_value(&self, counter_id: i32, registration_id: i64) -> Option<i64> {
        let slot = self.slot(counter_id)?;
        let value = slot.value()?;
        // After the value, which can be that of the next counter.
        (slot.registration_id()? == registration_id).then_some(value)
    }

    /// Returns the label of a counter. `None` if there is no counter with the id.
    ///
    /// Bytes that are not UTF-8 are replaced.
    ///
    /// Corresponds to `aeron_counters_reader_counter_label`.
    #[doc(alias = "aeron_counters_reader_counter_label")]
    pub fn label(&self, counter_id: i32) -> Option<String> {
        let mut label = Vec::new();
        self.allocated(counter_id)?.copy_label_to(&mut label)?;
        Some(into_text(label))
    }

    /// Returns the key of a counter, with zeros after its end. `None` if there is no counter with
    /// the id.
    ///
    /// Corresponds to `aeron_counters_reader_metadata_key`.
    #[doc(alias = "aeron_counters_reader_metadata_key")]
    pub fn key(&self, counter_id: i32) -> Option<[u8; MAX_KEY_LENGTH]> {
        let mut key = [0; MAX_KEY_LENGTH];
        self.allocated(counter_id)?.copy_key_to(&mut key)?;
        Some(key)
    }

    /// Returns the type of a counter. `None` if there is no counter with the id.
    ///
    /// Corresponds to `aeron_counters_reader_counter_type_id`.
    #[doc(alias = "aeron_counters_reader_counter_type_id")]
    pub fn type_id(&self, counter_id: i32) -> Option<i32> {
        self.allocated(counter_id)?.type_id()
    }

    /// Returns the registration id of a counter. `None` if there is no counter with the id.
    ///
    /// Corresponds to `aeron_counters_reader_counter_registration_id`.
    #[doc(alias = "aeron_counters_reader_counter_registration_id")]
    pub fn registration_id(&self, counter_id: i32) -> Option<i64> {
        self.allocated(counter_id)?.registration_id()
    }

    /// Returns the id of the client that owns a counter. `None` if there is no counter with the id.
    ///
    /// The id is -1 for the driver's own and for static counters.
    ///
    /// Corresponds to `aeron_counters_reader_counter_owner_id`.
    #[doc(alias = "aeron_counters_reader_counter_owner_id")]
    pub fn owner_id(&self, counter_id: i32) -> Option<i64> {
        self.allocated(counter_id)?.owner_id()
    }

    /// Returns the registration id of the resource that a counter belongs to. `None` if there is no
    /// counter with the id.
    ///
    /// The registration id is 0 if the counter's type has none.
    ///
    /// Corresponds to `aeron_counters_reader_counter_reference_id`.
    #[doc(alias = "aeron_counters_reader_counter_reference_id")]
    pub fn reference_id(&self, counter_id: i32) -> Option<i64> {
        self.allocated(counter_id)?.reference_id()
    }

    /// Returns the state of the slot with an id. `None` if there is no such slot.
    ///
    /// Corresponds to `aeron_counters_reader_counter_state`.
    #[doc(alias = "aeron_counters_reader_counter_state")]
    pub fn state(&self, counter_id: i32) -> Option<CounterState> {
        match self.slot(counter_id)?.state()? {
            UNUSED => Some(CounterState::Unused),
            ALLOCATED => Some(CounterState::Allocated),
            RECLAIMED => Some(CounterState::Reclaimed),
            _ => None,
        }
    }

    /// Returns the time from which on the slot of a freed counter may be reused, by the driver's
    /// clock. `None` if there is no such slot, or no freed counter in it.
    ///
    /// Corresponds to `aeron_counters_reader_free_for_reuse_deadline_ms`.
    #[doc(alias = "aeron_counters_reader_free_for_reuse_deadline_ms")]
    pub fn free_for_reuse_deadline(&self, counter_id: i32) -> Option<SystemTime> {
        let slot = self.slot(counter_id)?;
        if slot.state()? != RECLAIMED {
            return None;
        }
        // The driver sets the deadline after the state, so the deadline may still say "never".
        slot.free_for_reuse_deadline_ms()
            .filter(|&deadline| deadline != i64::MAX)
            .and_then(epoch::time)
    }

    /// Makes a reader of two buffers, whose lengths may not fit together.
    pub(crate) fn new(values: SharedMemory<'a>, metadata: SharedMemory<'a>) -> Self {
        let count = i32::try_from(values.len() / size_of::<Value>()).unwrap_or(i32::MAX);
        Self { values, metadata, max_counter_id: count - 1 }
    }

    /// Makes a reader of the memory that a C reader reads.
    ///
    /// # Safety
    /// `reader` is live, and the memory that it reads stays mapped for `'a`.
    pub unsafe fn from_raw(reader: *mut sys::aeron_counters_reader_t) -> Self {
        let mut buffers = mem::MaybeUninit::uninit();
        // SAFETY: the reader is live by the contract; C copies all of its addresses and lengths.
        let buffers = unsafe {
            sys::aeron_counters_reader_get_buffers(reader, buffers.as_mut_ptr());
            buffers.assume_init()
        };
        // SAFETY: the reader is live by the contract.
        let max_counter_id = unsafe { sys::aeron_counters_reader_max_counter_id(reader) };
        // SAFETY: these are mapped by the contract.
        let (values, metadata) = unsafe {
            (
                SharedMemory::new(buffers.values, buffers.values_length),
                SharedMemory::new(buffers.metadata, buffers.metadata_length),
            )
        };
        Self { values, metadata, max_counter_id }
    }

    /// Returns the memory with the values.
    pub(crate) fn values(&self) -> SharedMemory<'a> {
        self.values
    }

    fn slot(&self, counter_id: i32) -> Option<Slot<'a>> {
        if counter_id > self.max_counter_id {
            return None;
        }
        let index = usize::try_from(counter_id).ok()?;
        let part = |memory: SharedMemory<'a>, length: usize| {
            memory.part(index.checked_mul(length)?, length)
        };
        Some(Slot {
            id: counter_id,
            value: part(self.values, size_of::<Value>())?,
            metadata: part(self.metadata, size_of::<Metadata>())?,
        })
    }

    fn allocated(&self, counter_id: i32) -> Option<Slot<'a>> {
        self.slot(counter_id).filter(Slot::is_allocated)
    }

    /// Returns all slots up to the first unused one.
    fn used_slots(&self) -> impl Iterator<Item = Slot<'a>> + use<'a> {
        let reader = *self;
        (0..=self.max_counter_id)
            .map_while(move |id| reader.slot(id))
            .take_while(|slot| slot.state() != Some(UNUSED))
    }

    /// Copies the next counter at or after `next_id`, and moves `next_id` past that counter.
    fn next(&self, next_id: &mut i32, counter: &mut CounterSnapshot) -> Option<()> {
        loop {
            let slot = self.slot(*next_id)?;
            if slot.state()? == UNUSED {
                return None;
            }
            *next_id = next_id.checked_add(1)?;
            if slot.copy_to(counter).is_some() {
                return Some(());
            }
        }
    }
}

crate::impl_debug!(CountersReader<'_>: max_counter_id);

/// An iterator over copies of counters. Made by [`CountersReader::iter`].
#[derive(Debug, Clone)]
pub struct Counters<'a> {
    reader: CountersReader<'a>,
    next_id: i32,
}

impl Iterator for Counters<'_> {
    type Item = CounterSnapshot;

    fn next(&mut self) -> Option<CounterSnapshot> {
        let mut counter = CounterSnapshot::empty();
        self.reader.next(&mut self.next_id, &mut counter)?;
        Some(counter)
    }
}

impl CounterSnapshot {
    fn empty() -> Self {
        Self {
            id: 0,
            type_id: 0,
            value: 0,
            label: String::new(),
            key: [0; MAX_KEY_LENGTH],
            registration_id: 0,
            owner_id: 0,
            reference_id: 0,
        }
    }
}

impl fmt::Display for CounterSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:3}: {:20} - {}", self.id, self.value, Printable(&self.label))
    }
}

const UNUSED: i32 = sys::AERON_COUNTER_RECORD_UNUSED as i32;
const ALLOCATED: i32 = sys::AERON_COUNTER_RECORD_ALLOCATED as i32;
const RECLAIMED: i32 = sys::AERON_COUNTER_RECORD_RECLAIMED;

/// The slot of a counter. Every field has its full size, so reading a field gives `None` only if
/// the memory is misaligned.
struct Slot<'a> {
    id: i32,
    value: SharedMemory<'a>,
    metadata: SharedMemory<'a>,
}

impl Slot<'_> {
    fn state(&self) -> Option<i32> {
        self.metadata.load_i32(offset_of!(Metadata, state))
    }

    fn is_allocated(&self) -> bool {
        self.state() == Some(ALLOCATED)
    }

    fn type_id(&self) -> Option<i32> {
        self.metadata.load_i32(offset_of!(Metadata, type_id))
    }

    fn free_for_reuse_deadline_ms(&self) -> Option<i64> {
        self.metadata.load_i64(offset_of!(Metadata, free_for_reuse_deadline_ms))
    }

    fn value(&self) -> Option<i64> {
        self.value.load_i64(offset_of!(Value, counter_value))
    }

    fn registration_id(&self) -> Option<i64> {
        self.value.load_i64(offset_of!(Value, registration_id))
    }

    fn owner_id(&self) -> Option<i64> {
        self.value.load_i64(offset_of!(Value, owner_id))
    }

    fn reference_id(&self) -> Option<i64> {
        self.value.load_i64(offset_of!(Value, reference_id))
    }

    fn copy_key_to(&self, key: &mut [u8; MAX_KEY_LENGTH]) -> Option<()> {
        self.metadata.part(offset_of!(Metadata, key), MAX_KEY_LENGTH)?.copy_to_slice(key)
    }

    /// Adds the label to `label`, limited to the space for labels, whatever length the label
    /// states.
    fn copy_label_to(&self, label: &mut Vec<u8>) -> Option<()> {
        let length = self.metadata.load_i32(offset_of!(Metadata, label_length))?;
        let length = usize::try_from(length).unwrap_or(0).min(MAX_LABEL_LENGTH);
        self.metadata.part(offset_of!(Metadata, label), length)?.copy_to(label);
        Some(())
    }

    /// Copies the counter, all fields from the same counter. `None` if the slot holds no counter,
    /// or not for long enough.
    fn copy_to(&self, counter: &mut CounterSnapshot) -> Option<()> {
        const ATTEMPTS: usize = 3;
        for _ in 0..ATTEMPTS {
            if !self.is_allocated() {
                return None;
            }
            let registration_id = self.registration_id()?;
            counter.id = self.id;
            counter.type_id = self.type_id()?;
            counter.value = self.value()?;
            counter.registration_id = registration_id;
            counter.owner_id = self.owner_id()?;
            counter.reference_id = self.reference_id()?;
            self.copy_key_to(&mut counter.key)?;
            let mut label = mem::take(&mut counter.label).into_bytes();
            label.clear();
            self.copy_label_to(&mut label)?;
            counter.label = into_text(label);
            // A slot that was freed and given to another counter has another registration id.
            if self.is_allocated() && self.registration_id()? == registration_id {
                return Some(());
            }
        }
        None
    }
}

/// Returns the number at an offset of a counter's key, a record in a file or a message: all are little-endian.
pub fn i32_at(bytes: &[u8], offset: usize) -> Option<i32> {
    bytes.get(offset..)?.first_chunk().copied().map(i32::from_le_bytes)
}

/// As [`i32_at`].
pub fn i64_at(bytes: &[u8], offset: usize) -> Option<i64> {
    bytes.get(offset..)?.first_chunk().copied().map(i64::from_le_bytes)
}

/// Converts the bytes to text. The allocation is reused unless bytes have to be replaced.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slots for counters in this process, written as a hostile process might.
    struct Slots {
        values: Vec<i64>,
        metadata: Vec<i64>,
    }

    impl Slots {
        fn new(count: usize) -> Self {
            Self {
                values: vec![0; count * size_of::<Value>() / 8],
                metadata: vec![0; count * size_of::<Metadata>() / 8],
            }
        }

        fn with(mut self, id: usize, state: i32, label_length: i32, label: u8) -> Self {
            let size = size_of::<Metadata>();
            // SAFETY: the vector's memory, as bytes.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(
                    self.metadata.as_mut_ptr().cast::<u8>(),
                    self.metadata.len() * 8,
                )
            };
            let slot = &mut bytes[id * size..][..size];
            slot.fill(label);
            slot[..4].copy_from_slice(&state.to_ne_bytes());
            slot[offset_of!(Metadata, label_length)..][..4]
                .copy_from_slice(&label_length.to_ne_bytes());
            self
        }

        fn reader(&mut self, max_counter_id: i32) -> CountersReader<'_> {
            let (values, metadata) = (self.values.as_mut_slice(), self.metadata.as_mut_slice());
            // SAFETY: the vectors live as long as the reader.
            unsafe {
                CountersReader {
                    values: SharedMemory::new(values.as_mut_ptr().cast(), values.len() * 8),
                    metadata: SharedMemory::new(metadata.as_mut_ptr().cast(), metadata.len() * 8),
                    max_counter_id,
                }
            }
        }
    }

    #[test]
    fn labels_are_clamped_and_repaired() {
        let mut slots = Slots::new(4)
            .with(0, ALLOCATED, i32::MAX, b'x')
            .with(1, ALLOCATED, -1, b'x')
            .with(2, ALLOCATED, 3, 0xFF);
        let reader = slots.reader(3);
        assert_eq!(reader.label(0).expect("a label"), "x".repeat(MAX_LABEL_LENGTH));
        assert_eq!(reader.label(1).expect("a label"), "");
        assert_eq!(reader.label(2).expect("a label"), "\u{FFFD}\u{FFFD}\u{FFFD}");
        assert_eq!(reader.iter().count(), 3);
    }

    #[test]
    fn freed_slots_are_skipped_until_unused() {
        let mut slots = Slots::new(6)
            .with(0, RECLAIMED, 1, b'x')
            .with(1, 77, 1, b'x')
            .with(2, ALLOCATED, 1, b'x')
            .with(4, ALLOCATED, 1, b'x');
        let reader = slots.reader(5);
        let ids: Vec<_> = reader.iter().map(|counter| counter.id).collect();
        assert_eq!(ids, [2]);
        let mut visited = Vec::new();
        reader.for_each(|counter| visited.push(counter.id));
        assert_eq!(visited, ids);
        assert_eq!(reader.state(0), Some(CounterState::Reclaimed));
        assert_eq!(reader.state(1), None);
        assert_eq!(reader.state(3), Some(CounterState::Unused));
        assert_eq!((reader.value(0), reader.label(3)), (None, None));
    }

    #[test]
    fn ids_beyond_memory_are_none() {
        let mut slots = Slots::new(2).with(0, ALLOCATED, 1, b'x').with(1, ALLOCATED, 1, b'x');
        let reader = slots.reader(i32::MAX);
        assert_eq!(reader.iter().count(), 2);
        assert_eq!(reader.find_by_type_id_and_registration_id(12345, 6), None);
        for id in [2, -1, i32::MAX, i32::MIN] {
            assert_eq!(reader.state(id), None);
            assert_eq!(reader.value(id), None);
            assert_eq!(reader.counter(id), None);
            assert_eq!(reader.free_for_reuse_deadline(id), None);
        }
    }

    #[test]
    fn the_lengths_are_those_of_the_c_headers() {
        assert_eq!((MAX_KEY_LENGTH, MAX_LABEL_LENGTH), (112, 380));
    }
}
