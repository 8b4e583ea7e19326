//! What is set is what is read.

use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use rusteron_client::IdleStrategyKind;
use rusteron_media_driver::{
    CongestionControlStrategy, Context, FlowControlStrategy, InferableBoolean, NameResolver,
    ThreadNaming, ThreadingMode,
};

type Read = Box<dyn Fn(&Context)>;

#[test]
fn every_setting_is_read_as_it_was_set_and_changes_no_other() {
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
    // Those that are written by hand.
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
    bool: true, false;
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
