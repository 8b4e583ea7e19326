//! Settings read back as they were set. The documented defaults and limits are right.

use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use rusteron_client::IdleStrategyKind;
use rusteron_media_driver::{
    CongestionControlStrategy, Context, ErrorKind, FlowControlStrategy, InferableBoolean,
    MediaDriver, NameResolver, ThreadNaming, ThreadingMode,
};
use rusteron_test_support::driver_context;

type Read = Box<dyn Fn(&Context)>;

#[test]
fn round_trips() {
    let mut context = Context::new().expect("a context");
    let mut reads: Vec<Read> = Vec::new();
    macro_rules! round_trip {
        ($set:ident, $get:ident, value) => {
            let value = another(&context.$get());
            context.$set(value.clone()).expect(stringify!($set));
            let read = move |c: &Context| assert_eq!(c.$get(), value, stringify!($get));
            read(&context);
            reads.push(Box::new(read));
        };
        ($set:ident, $get:ident, text) => {
            let value = another(&context.$get().into_owned());
            context.$set(&value).expect(stringify!($set));
            let read = move |c: &Context| assert_eq!(c.$get(), value, stringify!($get));
            read(&context);
            reads.push(Box::new(read));
        };
        ($set:ident, $get:ident, path) => {
            let value = another(&context.$get().to_owned());
            context.$set(&value).expect(stringify!($set));
            let read = move |c: &Context| assert_eq!(c.$get(), value, stringify!($get));
            read(&context);
            reads.push(Box::new(read));
        };
        ($set:ident, $get:ident, choice) => {
            let value = another(&context.$get().expect("a choice"));
            context.$set(value).expect(stringify!($set));
            let read = move |c: &Context| assert_eq!(c.$get(), Some(value), stringify!($get));
            read(&context);
            reads.push(Box::new(read));
        };
    }
    include!(concat!(env!("OUT_DIR"), "/round_trips.rs"));
    let generated = include!(concat!(env!("OUT_DIR"), "/coverage.rs"));
    let setters = generated.wrapped.iter().filter(|name| name.contains("_context_set_"));
    assert_eq!(reads.len(), setters.count(), "not every generated setter has a getter");
    // The setters that are written by hand.
    round_trip!(set_unicast_flow_control, unicast_flow_control, choice);
    round_trip!(set_multicast_flow_control, multicast_flow_control, choice);
    round_trip!(set_congestion_control, congestion_control, choice);
    round_trip!(set_name_resolver, name_resolver, choice);
    round_trip!(set_receiver_group_tag, receiver_group_tag, value);
    round_trip!(set_sender_wildcard_port_range, sender_wildcard_port_range, value);
    round_trip!(set_receiver_wildcard_port_range, receiver_wildcard_port_range, value);

    // Once more, when the others have been set as well.
    for read in &reads {
        read(&context);
    }
}

/// The documentation's defaults are generated from C's sources, by the names of environment variables.
#[test]
fn documented_defaults() {
    let context = Context::new().expect("a context");
    let mut compared = 0;
    macro_rules! round_trip {
        ($set:ident, $get:ident, value) => {
            if let Some(default) = documented_default(stringify!($get)) {
                let value = context.$get();
                assert!(value.is(default), "{}: {default}, not {value:?}", stringify!($get));
                compared += 1;
            }
        };
        ($set:ident, $get:ident, $kind:ident) => {
            assert_eq!(documented_default(stringify!($get)), None, "text: {}", stringify!($get));
        };
    }
    include!(concat!(env!("OUT_DIR"), "/round_trips.rs"));
    assert!(compared > 40, "{compared} only");
}

/// Returns the text behind `Default:` above a getter.
fn documented_default(getter: &str) -> Option<&'static str> {
    let generated = include_str!(concat!(env!("OUT_DIR"), "/generated.rs"));
    let (before, _) = generated.split_once(&format!("    pub fn {getter}(&self)"))?;
    let above = before.lines().rev().map(str::trim).skip_while(|line| line.starts_with("#["));
    let lines = above.take_while(|line| line.starts_with("///"));
    lines.filter_map(|line| line.strip_prefix("/// Default: ")?.strip_suffix('.')).next()
}

#[test]
fn documented_limits() {
    const MIB: usize = 1 << 20;
    type Set = fn(&mut Context, usize) -> rusteron_client::Result<&mut Context>;
    let sizes: [(Set, &[usize], usize); 8] = [
        (Context::set_to_conductor_buffer_length, &[MIB, MIB + 769, 1 << 31], MIB + 768),
        (Context::set_to_clients_buffer_length, &[MIB, MIB + 129, 1 << 31], MIB + 128),
        (Context::set_counters_buffer_length, &[MIB - 1, 500 * MIB + 1], MIB),
        (Context::set_error_buffer_length, &[4 * MIB - 1, 1 << 31], 4 * MIB),
        (Context::set_term_buffer_length, &[32 << 10, 65 << 10, 2 << 30], 64 << 10),
        (Context::set_ipc_term_buffer_length, &[32 << 10, 65 << 10, 2 << 30], 1 << 30),
        (Context::set_mtu_length, &[32, 1400, 65_505, 65_536], 64),
        (Context::set_ipc_mtu_length, &[32, 1400, 65_505, 65_536], 65_504),
    ];
    let windows: [(Set, &[usize], usize); 3] = [
        (Context::set_publication_term_window_length, &[(1 << 30) + 1], 1 << 30),
        (Context::set_ipc_publication_term_window_length, &[(1 << 30) + 1], 1 << 30),
        (Context::set_file_page_size, &[2 << 10, 5 << 10, 2 << 30], 4 << 10),
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

    type SetTime = fn(&mut Context, Duration) -> rusteron_client::Result<&mut Context>;
    let times: [(SetTime, u64); 3] = [
        (Context::set_publication_unblock_timeout, 10),
        (Context::set_timer_interval, 10),
        (Context::set_timer_interval, 5),
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

    /// Returns whether the setting has the documented value.
    fn is(&self, _documented: &str) -> bool {
        false
    }
}

/// A number, such as `16 MiB` or `200 ms`, in bytes or nanoseconds.
fn quantity(documented: &str) -> Option<i128> {
    let (number, unit) = documented.split_once(' ').unwrap_or((documented, ""));
    let size = match unit {
        "" | "bytes" | "ns" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    Some(number.parse::<i128>().ok()? * size)
}

macro_rules! numbers {
    ($($ty:ty)+) => {$(
        impl Setting for $ty {
            fn another(&self) -> Self {
                self.checked_add(1).unwrap_or_else(|| self - 1)
            }

            fn is(&self, documented: &str) -> bool {
                quantity(documented) == i128::try_from(*self).ok()
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
    Option<i64>: Some(7), None;
    Option<Duration>: Some(Duration::from_secs(7)), None;
    Option<RangeInclusive<u16>>: Some(20_000..=20_100), None;
}

impl Setting for bool {
    fn another(&self) -> Self {
        !self
    }

    fn is(&self, documented: &str) -> bool {
        documented == format!("`{self}`")
    }
}

impl Setting for Duration {
    /// In whole milliseconds, as one setting is.
    fn another(&self) -> Self {
        *self + Duration::from_millis(1)
    }

    fn is(&self, documented: &str) -> bool {
        quantity(documented) == i128::try_from(self.as_nanos()).ok()
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
