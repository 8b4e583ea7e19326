//! Log buffers whose metadata another process has overwritten. A publication refuses them, or what
//! it would compute with them, before it writes.

use std::fs::File;
use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusteron_client::{
    Aeron, ErrorKind, ExclusivePublication, OfferError, Publication, Publisher, Registration,
    Resource, Result,
};
use rusteron_media_driver::DriverInvoker;
use rusteron_test_support::{SHORT_TERMS, await_some, context, driver_context};

const TERM_LENGTH: u64 = 64 * 1024;
const METADATA: u64 = 3 * TERM_LENGTH;
const COUNT: u64 = METADATA + 24;
const INITIAL_TERM_ID: u64 = METADATA + 264;
const MTU: u64 = METADATA + 272;
const TERM_LENGTH_FIELD: u64 = METADATA + 276;
/// A driver and a client that work only when asked to: nothing else moves a tail or a limit.
struct Pair {
    driver: DriverInvoker,
    aeron: Aeron,
}

impl Pair {
    fn new() -> Self {
        let mut driver = DriverInvoker::launch_embedded(driver_context()).expect("a driver");
        driver.do_work().expect("work");
        let mut context = context(driver.aeron_dir());
        context
            .set_use_conductor_agent_invoker(true)
            .and_then(|context| context.set_error_handler(|_| ()))
            .expect("settings");
        let aeron = Aeron::connect(context).expect("a client");
        Self { driver, aeron }
    }

    /// The outcome of an add whose log buffer was changed before the client maps it.
    fn outcome<R: Resource>(
        &mut self,
        mut registration: Registration<R>,
        corrupt: impl FnOnce(&Log),
    ) -> Result<R> {
        let path = self.log_path(registration.registration_id());
        await_some("the log buffer", || {
            self.driver.do_work().expect("work");
            path.exists().then_some(())
        });
        corrupt(&Log::open(&path));
        await_some("the outcome", || {
            self.aeron.do_work().expect("work");
            registration.poll().transpose()
        })
    }

    fn log_path(&self, registration_id: i64) -> std::path::PathBuf {
        self.driver.aeron_dir().join(format!("publications/{registration_id}.logbuffer"))
    }

    /// A publication that is never back-pressured.
    fn shared(&mut self) -> (Publication, Log) {
        let registration = self.aeron.async_add_publication(SHORT_TERMS, 1001).expect("a request");
        let publication = self.outcome(registration, |_| ()).expect("a publication");
        self.open_window(publication.constants().publication_limit_counter_id);
        let log = Log::open(&self.log_path(publication.original_registration_id()));
        (publication, log)
    }

    fn exclusive(&mut self) -> (ExclusivePublication, Log) {
        let registration =
            self.aeron.async_add_exclusive_publication(SHORT_TERMS, 1001).expect("a request");
        let publication = self.outcome(registration, |_| ()).expect("a publication");
        self.open_window(publication.constants().publication_limit_counter_id);
        let log = Log::open(&self.log_path(publication.original_registration_id()));
        (publication, log)
    }

    fn open_window(&self, counter_id: i32) {
        let path = self.driver.aeron_dir().join("cnc.dat");
        let file = File::options().read(true).write(true).open(path).expect("the file");
        let length = |index: u64| {
            let mut bytes = [0; 4];
            file.read_exact_at(&mut bytes, 4 * index).expect("the header");
            u64::from(u32::from_ne_bytes(bytes))
        };
        // Behind the version: to driver, to clients, the counters' metadata; then their values.
        let values = 128 + length(1) + length(2) + length(3);
        file.write_all_at(&i64::MAX.to_ne_bytes(), values + 128 * counter_id as u64)
            .expect("the limit");
    }
}

struct Log(File);

impl Log {
    fn open(path: &Path) -> Self {
        Self(File::options().read(true).write(true).open(path).expect("the log buffer"))
    }

    fn int(&self, at: u64) -> i32 {
        let mut bytes = [0; 4];
        self.0.read_exact_at(&mut bytes, at).expect("a field");
        i32::from_ne_bytes(bytes)
    }

    fn set_int(&self, at: u64, value: i32) {
        self.0.write_all_at(&value.to_ne_bytes(), at).expect("a field");
    }

    fn tail(&self, index: u64) -> i64 {
        let mut bytes = [0; 8];
        self.0.read_exact_at(&mut bytes, METADATA + 8 * index).expect("a tail");
        i64::from_ne_bytes(bytes)
    }

    fn set_tail(&self, index: u64, term_id: i32, offset: u32) {
        let tail = i64::from(term_id) << 32 | i64::from(offset);
        self.0.write_all_at(&tail.to_ne_bytes(), METADATA + 8 * index).expect("a tail");
    }

    fn initial_term_id(&self) -> i32 {
        self.int(INITIAL_TERM_ID)
    }
}

/// Each way to send, with messages of one and of several fragments.
fn offers(publisher: &mut impl Publisher) -> [std::result::Result<i64, OfferError>; 7] {
    let (short, long) = ([7; 300], vec![8; 3 * 1408]);
    let batch = publisher.offer_batch(&[&short[..], &short]);
    [
        publisher.offer(&short),
        publisher.offer(&long),
        publisher.offer_parts(&[IoSlice::new(&short), IoSlice::new(&short)]),
        publisher.offer_parts(&[IoSlice::new(&long), IoSlice::new(&short)]),
        publisher.offer_with_reserved_value(&long, |_| 1),
        publisher.try_claim(300).and_then(|mut claim| {
            claim.fill(9);
            claim.commit()
        }),
        batch.stopped_by.map_or(Ok(0), Err),
    ]
}

type Corruption = (fn(&Log), &'static str);

/// Values from which every publication computes.
const CONSTANTS: [Corruption; 6] = [
    (
        |log| log.set_int(COUNT, -1),
        "active term count of the log buffer is -1, expected at least 0",
    ),
    (|log| log.set_int(COUNT, i32::MIN), "active term count of the log buffer is -2147483648"),
    (|log| log.set_int(MTU, 32), "MTU of the log buffer is 32, expected a multiple of 32 from 64"),
    (|log| log.set_int(MTU, -64), "MTU of the log buffer is -64"),
    (|log| log.set_int(MTU, 1409), "MTU of the log buffer is 1409"),
    (|log| log.set_int(MTU, 65536), "MTU of the log buffer is 65536"),
];

/// Values from which only an exclusive publication computes when it is made.
const TAILS: [Corruption; 7] = [
    (
        |log| log.set_tail(0, log.initial_term_id(), 8),
        "tail offset of the log buffer is 8, expected a multiple of 32 up to the term length",
    ),
    (
        |log| log.set_tail(0, log.initial_term_id(), TERM_LENGTH as u32 + 32),
        "tail offset of the log buffer is 65568",
    ),
    (
        |log| log.set_tail(0, log.initial_term_id(), 0xffff_ffe0),
        "tail offset of the log buffer is 4294967264",
    ),
    (
        |log| log.set_tail(0, log.initial_term_id().wrapping_sub(65536), 0xffff_ffe0),
        "expected the initial term id plus the active term count",
    ),
    (|log| log.set_int(COUNT, 1), "active term id of the log buffer is "),
    (|log| log.set_int(COUNT, 3), "active term id of the log buffer is "),
    (
        |log| log.set_int(INITIAL_TERM_ID, log.initial_term_id().wrapping_add(1)),
        "active term id of the log buffer is ",
    ),
];

#[track_caller]
fn assert_refused<R>(outcome: Result<R>, expected: &str) {
    let error = outcome.err().expect("it is refused");
    assert_eq!(error.kind(), ErrorKind::CorruptLogBuffer, "{error}");
    assert!(error.message().starts_with("publication refused: "), "{error}");
    assert!(error.message().contains(expected), "{error}");
}

#[test]
fn exclusive_publication_is_refused() {
    let mut pair = Pair::new();
    for (corrupt, expected) in CONSTANTS.into_iter().chain(TAILS) {
        let registration =
            pair.aeron.async_add_exclusive_publication(SHORT_TERMS, 1001).expect("a request");
        let path = pair.log_path(registration.registration_id());
        assert_refused(pair.outcome(registration, corrupt), expected);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let mappings = maps.lines().filter(|line| line.ends_with(path.to_str().expect("Unicode")));
        // The driver's own.
        assert!(mappings.count() <= 1, "the log buffer stays mapped");
    }
    let (mut publication, _) = pair.exclusive();
    assert_eq!(publication.offer(&[7; 300]), Ok(352));
}

#[test]
fn shared_publication_is_refused() {
    for (corrupt, expected) in CONSTANTS {
        // The driver would go on with the same log buffer.
        let mut pair = Pair::new();
        let registration = pair.aeron.async_add_publication(SHORT_TERMS, 1001).expect("a request");
        assert_refused(pair.outcome(registration, corrupt), expected);
    }
}

#[test]
fn term_length_is_the_mapped_one() {
    fn lengths<R: Resource>(
        begin: fn(&Aeron) -> Registration<R>,
        lengths: fn(&R) -> (usize, usize),
    ) -> (usize, usize) {
        let mut pair = Pair::new();
        let mut registration = begin(&pair.aeron);
        let path = pair.log_path(registration.registration_id());
        await_some("the log buffer", || {
            pair.driver.do_work().expect("work");
            path.exists().then_some(())
        });
        // The client maps it.
        await_some("the mapping", || {
            pair.aeron.do_work().expect("work");
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
            (maps.matches(path.to_str().expect("Unicode")).count() > 1 || maps.is_empty())
                .then_some(())
        });
        Log::open(&path).set_int(TERM_LENGTH_FIELD, 1 << 30);
        let publication = await_some("the publication", || registration.poll().expect("no error"));
        lengths(&publication)
    }
    let expected = (TERM_LENGTH as usize, TERM_LENGTH as usize / 8);
    let exclusive = lengths::<ExclusivePublication>(
        |aeron| aeron.async_add_exclusive_publication(SHORT_TERMS, 1001).expect("a request"),
        |publication| (publication.term_buffer_length(), publication.max_message_length()),
    );
    assert_eq!(exclusive, expected);
    let shared = lengths::<Publication>(
        |aeron| aeron.async_add_publication(SHORT_TERMS, 1001).expect("a request"),
        |publication| (publication.term_buffer_length(), publication.max_message_length()),
    );
    assert_eq!(shared, expected);
}

#[test]
fn unaligned_tail_is_refused() {
    let mut pair = Pair::new();
    let (publication, log) = pair.shared();
    let term_id = log.initial_term_id();
    for offset in [8, 31, 33, TERM_LENGTH as u32 - 24, TERM_LENGTH as u32 + 8, 0xffff_ffff] {
        log.set_tail(0, term_id, offset);
        let before = log.tail(0);
        assert_eq!(offers(&mut &publication), [Err(OfferError::CorruptLogBuffer); 7], "{offset}");
        assert!(!OfferError::CorruptLogBuffer.is_retryable());
        assert_eq!(log.tail(0), before);
    }
    log.set_tail(0, term_id, 64);
    assert_eq!(publication.offer(&[7; 300]), Ok(64 + 352));
}

#[test]
fn tail_before_first_term_is_refused() {
    let mut pair = Pair::new();
    let (publication, log) = pair.shared();
    log.set_int(COUNT, -1);
    log.set_tail(0, log.initial_term_id().wrapping_sub(1), 0);
    assert_eq!(offers(&mut &publication), [Err(OfferError::CorruptLogBuffer); 7]);
    assert_eq!(publication.position(), Err(OfferError::CorruptLogBuffer));
    assert_eq!(publication.available_window(), Err(OfferError::CorruptLogBuffer));
}

#[test]
fn tail_of_another_term_is_not_claimed() {
    let mut pair = Pair::new();
    let (publication, log) = pair.shared();
    let term_id = log.initial_term_id();
    log.set_tail(0, term_id.wrapping_sub(65536), 0xffff_ffe0);
    assert_eq!(offers(&mut &publication), [Err(OfferError::AdminAction); 7]);
    // As after as many offers at the end of a term.
    log.set_tail(0, term_id, 0xffff_ffe0);
    assert_eq!(publication.offer(&[7; 300]), Err(OfferError::AdminAction));
    assert_eq!(publication.offer(&[7; 300]), Ok(TERM_LENGTH as i64 + 352));
}
