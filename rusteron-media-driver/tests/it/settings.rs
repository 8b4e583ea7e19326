//! Settings read back as they were set. The table's defaults and limits are right.

use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use rusteron_client::IdleStrategyKind;
use rusteron_codegen::Table;
use rusteron_core::scan;
use rusteron_media_driver::{
    CongestionControlStrategy, DirAccess, DriverContext, ErrorKind, FlowControlStrategy,
    InferableBoolean, MediaDriver, NameResolver, TermCleaning, ThreadNaming, ThreadingMode,
    for_each_setting,
};
use rusteron_test_support::driver_context;

type Read = Box<dyn Fn(&DriverContext)>;

macro_rules! round_trip {
    (($context:ident, $reads:ident) $(($language:ident $kind:ident $get:ident $set:ident))*) => {
        $(
            let value = another(&owned!($kind $context.$get()));
            $context.$set(argument!($kind value)).expect(stringify!($set));
            let read = move |c: &DriverContext| assert_eq!(owned!($kind c.$get()), value, stringify!($get));
            read(&$context);
            $reads.push(Box::new(read) as Read);
        )*
    };
}

macro_rules! owned {
    (text $value:expr) => {
        $value.into_owned()
    };
    (path $value:expr) => {
        $value.to_owned()
    };
    (choice $value:expr) => {
        $value.expect("a choice")
    };
    (value $value:expr) => {
        $value
    };
}

macro_rules! argument {
    (text $value:ident) => {
        &$value
    };
    (path $value:ident) => {
        &$value
    };
    ($kind:ident $value:ident) => {
        $value.clone()
    };
}

#[test]
fn round_trips() {
    let mut context = DriverContext::new().expect("a context");
    let mut reads: Vec<Read> = Vec::new();
    for_each_setting!(round_trip!(context, reads));
    assert!(reads.len() > 100, "{}", reads.len());

    // Once more, when the others have been set as well.
    for read in &reads {
        read(&context);
    }
}

#[test]
fn defaults_of_table() {
    let context = DriverContext::new().expect("a context");
    let table = Table::parse(include_str!("../../settings.txt")).expect("a table");
    let mut compared = 0;
    for (variable, default) in table.defaults() {
        let setting = DriverContext::setting(variable).expect(variable);
        let Some(value) = setting.value_in_context(&context) else { continue };
        // In milliseconds, without a unit.
        let value = if variable == "AERON_DRIVER_TIMEOUT" { value + "ms" } else { value };
        assert_eq!(quantity(&value), quantity(default), "{variable}: {value}, not {default}");
        compared += 1;
    }
    assert!(compared > 70, "{compared} only");
}

/// A number, such as `16m` or `200ms`, in bytes or nanoseconds; any other text as it is.
pub(super) fn quantity(text: &str) -> Result<i128, &str> {
    let number = text.parse().ok().or_else(|| scan::size(text).map(i128::from));
    let nanos = || scan::duration(text).map(|duration| duration.as_nanos() as i128);
    number.or_else(nanos).ok_or(text)
}

#[test]
fn documented_limits() {
    const MIB: usize = 1 << 20;
    type Set = fn(&mut DriverContext, usize) -> rusteron_client::Result<&mut DriverContext>;
    let sizes: [(Set, &[usize], usize); 8] = [
        (DriverContext::set_to_conductor_buffer_length, &[MIB, MIB + 769, 1 << 31], MIB + 768),
        (DriverContext::set_to_clients_buffer_length, &[MIB, MIB + 129, 1 << 31], MIB + 128),
        (DriverContext::set_counters_buffer_length, &[MIB - 1, 500 * MIB + 1], MIB),
        (DriverContext::set_error_buffer_length, &[4 * MIB - 1, 1 << 31], 4 * MIB),
        (DriverContext::set_term_buffer_length, &[32 << 10, 65 << 10, 2 << 30], 64 << 10),
        (DriverContext::set_ipc_term_buffer_length, &[32 << 10, 65 << 10, 2 << 30], 1 << 30),
        (DriverContext::set_mtu_length, &[32, 1400, 65_505, 65_536], 64),
        (DriverContext::set_ipc_mtu_length, &[32, 1400, 65_505, 65_536], 65_504),
    ];
    let windows: [(Set, &[usize], usize); 3] = [
        (DriverContext::set_publication_term_window_length, &[(1 << 30) + 1], 1 << 30),
        (DriverContext::set_ipc_publication_term_window_length, &[(1 << 30) + 1], 1 << 30),
        (DriverContext::set_file_page_size, &[2 << 10, 5 << 10, 2 << 30], 4 << 10),
    ];
    let mut at_the_limits = driver_context();
    for (number, (set, refused, limit)) in sizes.iter().chain(&windows).enumerate() {
        for value in *refused {
            let mut context = driver_context();
            set(&mut context, *value).expect("a setter that does not look");
            let error = MediaDriver::launch_embedded_with(context).expect_err("out of range");
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{number}, {value}: {error:?}");
        }
        set(&mut at_the_limits, *limit).expect("a setter that does not look");
    }
    let driver = MediaDriver::launch_embedded_with(at_the_limits).expect("what is allowed");
    drop(driver);

    type SetTime = fn(&mut DriverContext, Duration) -> rusteron_client::Result<&mut DriverContext>;
    let times: [(SetTime, u64); 3] = [
        (DriverContext::set_publication_unblock_timeout, 10),
        (DriverContext::set_timer_interval, 10),
        (DriverContext::set_timer_interval, 5),
    ];
    for (set, seconds) in times {
        let mut context = driver_context();
        set(&mut context, Duration::from_secs(seconds)).expect("a setter that does not look");
        let error = MediaDriver::launch_embedded_with(context).expect_err("out of range");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{seconds} s: {error:?}");
    }
}

fn another<T: Setting>(value: &T) -> T {
    let other = value.another();
    assert_ne!(other, *value);
    other
}

trait Setting: Clone + Debug + PartialEq {
    /// A valid value that is not this one.
    fn another(&self) -> Self;
}

macro_rules! numbers {
    ($($ty:ty)+) => {$(
        impl Setting for $ty {
            fn another(&self) -> Self {
                self.checked_add(1).unwrap_or_else(|| self - 1)
            }
        }
    )+};
}

numbers!(u8 i32 u32 i64 u64 usize);

macro_rules! choices {
    ($($ty:ty: $one:expr, $other:expr;)+) => {$(
        impl Setting for $ty {
            fn another(&self) -> Self {
                if *self == $one { $other } else { $one }
            }
        }
    )+};
}

choices! {
    ThreadingMode: ThreadingMode::Shared, ThreadingMode::SharedNetwork;
    ThreadNaming: ThreadNaming::New, ThreadNaming::Classic;
    InferableBoolean: InferableBoolean::ForceTrue, InferableBoolean::ForceFalse;
    IdleStrategyKind: IdleStrategyKind::Yielding, IdleStrategyKind::NoOp;
    FlowControlStrategy: FlowControlStrategy::MulticastMin, FlowControlStrategy::MulticastTagged;
    CongestionControlStrategy: CongestionControlStrategy::Cubic, CongestionControlStrategy::Static;
    NameResolver: NameResolver::CsvTable, NameResolver::Driver;
    DirAccess: DirAccess::Group, DirAccess::Umask;
    TermCleaning: TermCleaning::Cached, TermCleaning::Streaming;
    Option<i64>: Some(7), None;
    Option<Duration>: Some(Duration::from_secs(7)), None;
    Option<RangeInclusive<u16>>: Some(20_000..=20_100), None;
}

impl Setting for bool {
    fn another(&self) -> Self {
        !self
    }
}

impl Setting for Duration {
    /// In whole milliseconds, as one setting is.
    fn another(&self) -> Self {
        *self + Duration::from_millis(1)
    }
}

impl Setting for String {
    fn another(&self) -> Self {
        format!("{self}7us")
    }
}

impl Setting for PathBuf {
    fn another(&self) -> Self {
        self.join("another")
    }
}
