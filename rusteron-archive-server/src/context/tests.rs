//! Tests of every setting: variable, default, range.

use std::collections::BTreeMap;

use super::*;
use crate::error::ServerErrorKind;

const SAMPLE: &str = "io.aeron.samples.archive.SampleAuthenticatorSupplier";

/// Of each variable the default, another value with the text in which it is printed, and faulty values with a part of
/// the error.
type Case = (
    &'static str,
    Option<&'static str>,
    (&'static str, &'static str),
    &'static [(&'static str, &'static str)],
);

const FLAGS: &[(&str, &str)] = &[("yes", "must be true or false"), ("TRUE", "true or false")];
const TERMS: &[(&str, &str)] = &[
    ("100k", "must be a power of two from 64k to 1g"),
    ("32k", "must be a power of two from 64k to 1g"),
    ("2g", "must be a power of two from 64k to 1g"),
    ("64kb", "must be a power of two from 64k to 1g"),
];
const STREAMS: &[(&str, &str)] = &[
    ("x", "must be an integer from -2147483648 to 2147483647"),
    ("2147483648", "must be an integer from -2147483648 to 2147483647"),
];
const LEVELS: &[(&str, &str)] = &[("3", "must be an integer from 0 to 2"), ("-1", "from 0 to 2")];
const COUNTS: &[(&str, &str)] = &[("-1", "must be an integer from 0 to 2147483647")];
const CPUS: &[(&str, &str)] = &[("-2", "from -1 to 1023"), ("1024", "from -1 to 1023")];
const TIMEOUTS: &[(&str, &str)] = &[
    ("0", "must be a duration with ns, us, ms or s, from 1ns to 31536000s"),
    ("5m", "must be a duration"),
    ("31536001s", "from 1ns to 31536000s"),
];
const TIMES: &[(&str, &str)] = &[("-1s", "must be a duration with ns, us, ms or s, from 0ns to")];
const IDLE: &[(&str, &str)] = &[("com.Mine", "must be spin, yield, sleep-ns, backoff, noop, ")];
const CHECKSUM: &[(&str, &str)] = &[("CRC-64", "must be CRC-32, CRC-32C, io.aeron.archive")];

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("AERON_ARCHIVE_DIR", Some("aeron-archive"), ("a/b", "a/b"), &[]),
    ("RUSTERON_DIR_ACCESS", Some("private"), ("group", "group"), &[("0700", "must be private, group or umask")]),
    ("AERON_ARCHIVE_DIR_DELETE_ON_START", Some("false"), ("true", "true"), FLAGS),
    ("AERON_ARCHIVE_MARK_FILE_DIR", None, ("marks", "marks"), &[]),
    ("AERON_ARCHIVE_ID", Some("-1"), ("42", "42"), &[("x", "must be an integer from -9223372036854775808")]),
    ("AERON_ARCHIVE_SEGMENT_FILE_LENGTH", Some("134217728"), ("64k", "65536"), TERMS),
    ("AERON_ARCHIVE_FILE_IO_MAX_LENGTH", Some("1048576"), ("2M", "2097152"), TERMS),
    ("AERON_ARCHIVE_FILE_SYNC_LEVEL", Some("0"), ("2", "2"), LEVELS),
    ("AERON_ARCHIVE_CATALOG_FILE_SYNC_LEVEL", Some("0"), ("2", "2"), LEVELS),
    ("AERON_ARCHIVE_CATALOG_CAPACITY", Some("1048576"), ("32", "32"), &[("31", "must be a size from 32 to 2147483647")]),
    ("AERON_ARCHIVE_LOW_STORAGE_SPACE_THRESHOLD", Some("134217728"), ("0", "0"), &[("-1", "must be a size from 0")]),
    ("AERON_ARCHIVE_RECORD_CHECKSUM", None, ("io.aeron.archive.checksum.Crc32", "CRC-32"), CHECKSUM),
    ("AERON_ARCHIVE_REPLAY_CHECKSUM", None, ("org.agrona.checksum.Crc32c", "CRC-32C"), CHECKSUM),
    ("AERON_ARCHIVE_ERROR_BUFFER_LENGTH", Some("1048576"), ("2m", "2097152"), &[("1k", "must be a size from 1m to 2147475455")]),
    ("AERON_ARCHIVE_MAX_CATALOG_ENTRIES", None, ("128", ""), &[("x", "must be a size from 0")]),
    ("AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED", Some("true"), ("off", "false"), FLAGS),
    ("AERON_ARCHIVE_CONTROL_CHANNEL", None, ("aeron:udp?endpoint=localhost:8010", "aeron:udp?endpoint=localhost:8010"), &[("aeron:ipc", "must begin with aeron:udp"), ("localhost:1", "must begin with")]),
    ("AERON_ARCHIVE_CONTROL_STREAM_ID", Some("10"), ("-5", "-5"), STREAMS),
    ("AERON_ARCHIVE_LOCAL_CONTROL_CHANNEL", Some("aeron:ipc?term-length=64k"), ("aeron:ipc", "aeron:ipc"), &[("aeron:udp?endpoint=a:1", "must begin with aeron:ipc")]),
    ("AERON_ARCHIVE_LOCAL_CONTROL_STREAM_ID", Some("10"), ("0x10", "16"), STREAMS),
    ("AERON_ARCHIVE_CONTROL_TERM_BUFFER_LENGTH", Some("65536"), ("1g", "1073741824"), TERMS),
    ("AERON_ARCHIVE_CONTROL_TERM_BUFFER_SPARSE", Some("true"), ("false", "false"), FLAGS),
    ("AERON_ARCHIVE_CONTROL_MTU_LENGTH", Some("1408"), ("8k", "8192"), &[("1400", "must be a multiple of 32 from 64 to 65504"), ("32", "from 64"), ("64k", "to 65504")]),
    ("AERON_ARCHIVE_CONNECT_TIMEOUT", Some("5s"), ("10ms", "10ms"), TIMEOUTS),
    ("AERON_ARCHIVE_SESSION_LIVENESS_CHECK_INTERVAL", Some("1s"), ("250000000", "250ms"), TIMEOUTS),
    ("AERON_ARCHIVE_AUTHENTICATOR_SUPPLIER", Some("io.aeron.security.DefaultAuthenticatorSupplier"), (SAMPLE, SAMPLE), &[("com.Mine", SAMPLE)]),
    ("AERON_ARCHIVE_AUTHORISATION_SERVICE_SUPPLIER", Some("ALLOW_ALL"), ("DENY_ALL", "DENY_ALL"), &[("com.Mine", "must be ALLOW_ALL or DENY_ALL")]),
    ("AERON_ARCHIVE_MAX_CONCURRENT_RECORDINGS", Some("20"), ("0", "0"), COUNTS),
    ("AERON_ARCHIVE_MAX_CONCURRENT_REPLAYS", Some("20"), ("100", "100"), COUNTS),
    ("AERON_ARCHIVE_MAX_CONCURRENT_REPLICATIONS", Some("20"), ("0", "0"), COUNTS),
    ("AERON_ARCHIVE_MAX_UNAUTHENTICATED_SESSIONS", Some("64"), ("1", "1"), &[("0", "must be an integer from 1 to 2147483647")]),
    ("AERON_ARCHIVE_REPLAY_LINGER_TIMEOUT", Some("5s"), ("0", "0ns"), TIMES),
    ("AERON_ARCHIVE_RECORDING_EVENTS_ENABLED", Some("false"), ("true", "true"), FLAGS),
    ("AERON_ARCHIVE_RECORDING_EVENTS_CHANNEL", None, ("aeron:udp?control-mode=dynamic", "aeron:udp?control-mode=dynamic"), &[("udp", "must begin with aeron:")]),
    ("AERON_ARCHIVE_RECORDING_EVENTS_STREAM_ID", Some("30"), ("31", "31"), STREAMS),
    ("AERON_ARCHIVE_THREADING_MODE", Some("DEDICATED"), ("SHARED", "SHARED"), &[("shared", "must be DEDICATED, SHARED or INVOKER")]),
    ("AERON_ARCHIVE_IDLE_STRATEGY", Some("backoff"), ("org.agrona.concurrent.YieldingIdleStrategy", "yield"), IDLE),
    ("AERON_ARCHIVE_RECORDER_IDLE_STRATEGY", None, ("spin", "spin"), IDLE),
    ("AERON_ARCHIVE_REPLAYER_IDLE_STRATEGY", None, ("sleep-ms", "backoff"), IDLE),
    ("AERON_ARCHIVE_CONDUCTOR_CYCLE_THRESHOLD", Some("100ms"), ("7us", "7us"), TIMES),
    ("AERON_ARCHIVE_RECORDER_CYCLE_THRESHOLD", Some("100ms"), ("7ns", "7ns"), TIMES),
    ("AERON_ARCHIVE_REPLAYER_CYCLE_THRESHOLD", Some("100ms"), ("2s", "2s"), TIMES),
    ("AERON_ARCHIVE_CONDUCTOR_CPU_AFFINITY", Some("-1"), ("0", "0"), CPUS),
    ("AERON_ARCHIVE_RECORDER_CPU_AFFINITY", Some("-1"), ("1", "1"), CPUS),
    ("AERON_ARCHIVE_REPLAYER_CPU_AFFINITY", Some("-1"), ("1023", "1023"), CPUS),
    ("AERON_ARCHIVE_REPLICATION_CHANNEL", None, ("aeron:udp?endpoint=localhost:0", "aeron:udp?endpoint=localhost:0"), &[("udp", "must begin with aeron:")]),
    ("AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL", None, ("aeron:udp?endpoint=localhost:0", "aeron:udp?endpoint=localhost:0"), &[("udp", "must begin with aeron:")]),
    ("AERON_ARCHIVE_CONTROL_RESPONSE_STREAM_ID", Some("20"), ("21", "21"), STREAMS),
    ("AERON_ARCHIVE_MESSAGE_TIMEOUT", Some("10s"), ("1ns", "1ns"), TIMEOUTS),
    ("AERON_ARCHIVE_MESSAGE_RETRY_ATTEMPTS", Some("3"), ("0", "0"), COUNTS),
];

fn from(variables: &BTreeMap<&str, &str>) -> Result<ArchiveServerContext> {
    ArchiveServerContext::from_variables(|name| variables.get(name).map(|value| value.into()))
}

fn from_one(name: &str, value: &str) -> Result<ArchiveServerContext> {
    from(&[(name, value)].into())
}

fn printed(context: &ArchiveServerContext) -> BTreeMap<&'static str, Option<String>> {
    ArchiveServerContext::settings().map(|it| (it.variable(), it.value(context))).collect()
}

#[test]
fn every_variable_has_its_default() {
    let defaults: BTreeMap<_, _> =
        CASES.iter().map(|(name, value, ..)| (*name, value.map(str::to_owned))).collect();
    assert_eq!(printed(&ArchiveServerContext::new()), defaults);
    let empty = CASES.iter().map(|(name, ..)| (*name, "")).collect();
    assert_eq!(printed(&from(&empty).expect("defaults")), printed(&ArchiveServerContext::new()));
}

#[test]
fn every_variable_changes_its_setting_alone() {
    let defaults = printed(&ArchiveServerContext::new());
    for (name, _, (value, text), _) in CASES {
        let mut expected = defaults.clone();
        expected.insert(*name, (!text.is_empty()).then(|| (*text).to_owned()));
        let context = from_one(name, value).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(printed(&context), expected, "{name}={value}");
        // What is printed gives the same settings again.
        let again: BTreeMap<_, _> =
            expected.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
        assert_eq!(printed(&from(&again).expect("what was printed")), expected, "{name}={value}");
    }
}

#[test]
fn faulty_variables_are_named() {
    for (name, _, _, faulty) in CASES {
        for (value, part) in *faulty {
            let error = from_one(name, value).expect_err(name);
            assert_eq!(error.kind(), ServerErrorKind::InvalidArgument);
            assert!(error.message().starts_with(&format!("{name}={value}: must ")), "{error}");
            assert!(error.message().contains(part), "{error}");
        }
    }
    let two = [("AERON_ARCHIVE_ID", "x"), ("AERON_ARCHIVE_DIR", "a\0b")].into();
    let error = from(&two).expect_err("two");
    assert_eq!(error.message().matches("; ").count(), 1, "{error}");
}

#[test]
fn setters_refuse_what_variables_refuse() {
    type Set = fn(&mut ArchiveServerContext) -> Result<&mut ArchiveServerContext>;
    // The cases have a setter of each type.
    let cases: &[(Set, &str)] = &[
        (|x| x.set_archive_dir(""), "archive_dir=: must be a path"),
        (|x| x.set_mark_file_dir("a\0"), "mark_file_dir=a\\0: must be a path"),
        (|x| x.set_aeron_dir(""), "aeron_dir=: must be a path"),
        (|x| x.set_segment_file_length(0), "segment_file_length=0: must be a power of two"),
        (|x| x.set_file_sync_level(3), "file_sync_level=3: must be an integer from 0 to 2"),
        (|x| x.set_low_storage_space_threshold(u64::MAX), "low_storage_space_threshold=18446744"),
        (|x| x.set_control_channel("aeron:ipc"), "control_channel=aeron:ipc: must begin with"),
        (|x| x.set_control_mtu_length(100), "control_mtu_length=100: must be a multiple of 32"),
        (|x| x.set_connect_timeout(Duration::ZERO), "connect_timeout=0ns: must be a duration"),
        (|x| x.set_replay_linger_timeout(Duration::MAX), "replay_linger_timeout="),
        (|x| x.set_max_concurrent_replays(u32::MAX), "max_concurrent_replays=4294967295"),
        (|x| x.set_replayer_cpu_affinity(1024), "replayer_cpu_affinity=1024: must be"),
        (|x| x.set_authenticator_supplier("Mine"), "authenticator_supplier=Mine: must be io.aeron"),
    ];
    for (set, expected) in cases {
        let mut context = ArchiveServerContext::new();
        let error = set(&mut context).map(drop).expect_err(expected);
        assert_eq!(error.kind(), ServerErrorKind::InvalidArgument);
        assert!(error.message().starts_with(expected), "{error}");
        assert_eq!(printed(&context), printed(&ArchiveServerContext::new()), "{expected}");
    }
}

#[test]
fn drivers_settings_are_defaults() {
    let variables = [("AERON_MTU_LENGTH", "8k"), ("AERON_PUBLICATION_LINGER_TIMEOUT", "2s")];
    let context = from(&variables.into()).expect("valid");
    assert_eq!(context.control_mtu_length(), 8192);
    assert_eq!(context.replay_linger_timeout(), Duration::from_secs(2));
    let own = [("AERON_MTU_LENGTH", "8k"), ("AERON_ARCHIVE_CONTROL_MTU_LENGTH", "4k")];
    assert_eq!(from(&own.into()).expect("valid").control_mtu_length(), 4096);
}

#[test]
fn check_names_what_does_not_fit() {
    let mut context = ArchiveServerContext::new();
    let error = context.check().expect_err("no control channel");
    assert!(error.message().starts_with("control_channel (AERON_ARCHIVE_CONTROL_CHANNEL): "));
    context.set_control_channel("aeron:udp?endpoint=localhost:8010").expect("a channel");
    context.check().expect("valid");
    context
        .set_recording_events_enabled(true)
        .and_then(|context| context.set_local_control_channel(""))
        .and_then(|context| context.set_file_sync_level(2))
        .expect("each is valid");
    let error = context.check().expect_err("three problems");
    assert_eq!(error.kind(), ServerErrorKind::InvalidArgument);
    for name in ["catalog_file_sync_level", "local_control_channel", "recording_events_channel"] {
        assert!(error.message().contains(name), "{error}");
    }
    let mut context = ArchiveServerContext::new();
    context.set_control_channel_enabled(false).expect("a flag").check().expect("IPC only");
}

/// Returns the error of variables that are valid one by one.
fn pair_error(variables: &[(&'static str, &'static str)]) -> String {
    let mut all =
        BTreeMap::from([("AERON_ARCHIVE_CONTROL_CHANNEL", "aeron:udp?endpoint=localhost:8010")]);
    all.extend(variables.iter().copied());
    let error = from(&all).expect("valid one by one").check().expect_err("a pair");
    assert_eq!(error.kind(), ServerErrorKind::InvalidArgument);
    error.message().to_owned()
}

#[test]
fn streams_that_the_server_would_hear_are_refused() {
    let events = ("AERON_ARCHIVE_RECORDING_EVENTS_ENABLED", "true");
    let error = pair_error(&[
        events,
        ("AERON_ARCHIVE_RECORDING_EVENTS_CHANNEL", "aeron:ipc"),
        ("AERON_ARCHIVE_RECORDING_EVENTS_STREAM_ID", "10"),
    ]);
    assert_eq!(
        error,
        "local_control_stream_id=10 (local_control_channel=aeron:ipc?term-length=64k) and \
         recording_events_stream_id=10 (recording_events_channel=aeron:ipc) are one stream; set different stream ids"
    );
    let error = pair_error(&[
        ("AERON_ARCHIVE_CONTROL_RESPONSE_CHANNEL", "aeron:udp?endpoint=localhost:8010"),
        ("AERON_ARCHIVE_CONTROL_STREAM_ID", "20"),
    ]);
    assert!(error.starts_with("control_response_stream_id=20 ("), "{error}");
}

#[test]
fn checksums_that_refuse_each_other_are_refused() {
    let replay = ("AERON_ARCHIVE_REPLAY_CHECKSUM", "CRC-32");
    for recorded in ["", "CRC-32C"] {
        let record = ("AERON_ARCHIVE_RECORD_CHECKSUM", recorded);
        let error = pair_error(&[replay, record]);
        assert!(error.starts_with("replay_checksum=CRC-32 (AERON_"), "{error}");
        let none = ("AERON_ARCHIVE_MAX_CONCURRENT_RECORDINGS", "0");
        let ipc = ("AERON_ARCHIVE_CONTROL_CHANNEL_ENABLED", "false");
        from(&[replay, record, none, ipc].into()).expect("valid").check().expect("only replays");
    }
}

#[test]
fn directories_that_end_with_another_are_refused() {
    let mut context = ArchiveServerContext::new();
    let error = |context: &ArchiveServerContext, aeron_dir: &str| {
        context.check_dirs(Path::new(aeron_dir)).map_err(|error| error.message().to_owned())
    };
    context.set_archive_dir("/data/driver/archive").expect("a directory");
    let text = error(&context, "/data/driver").expect_err("inside");
    assert!(
        text.starts_with("archive_dir=/data/driver/archive (AERON_ARCHIVE_DIR) and "),
        "{text}"
    );
    assert!(error(&context, "/data/driver/archive").is_err());
    error(&context, "/data/driver/archive/aeron").expect("nothing is deleted");
    error(&context, "/data/driver-2").expect("apart");
    context.set_archive_dir_delete_on_start(true).expect("a flag");
    let text = error(&context, "/data/driver/archive/aeron").expect_err("deleted");
    assert!(text.contains("archive_dir_delete_on_start would delete"), "{text}");
}

#[test]
fn authenticators_replace_named_ones() {
    use crate::control::authentication::{AcceptAll, AllowAll, Authentication};

    let mut context = ArchiveServerContext::new();
    context.set_authenticator_supplier(SAMPLE).expect("a sample");
    context.set_authorisation_service_supplier("DENY_ALL").expect("one");
    let decision = |context: &ArchiveServerContext| {
        let mut authenticator = context.new_authenticator().expect("one");
        authenticator.on_connect_request(1.into(), b"", 0);
        authenticator.on_connected_session(1.into(), 0)
    };
    let is_authorised = |context: &ArchiveServerContext| {
        context.new_authorisation().expect("one").is_authorised(4, b"")
    };
    assert_eq!((decision(&context), is_authorised(&context)), (Authentication::Reject, false));
    context.set_authenticator(|| AcceptAll).expect("one");
    context.set_authorisation(|| AllowAll).expect("one");
    let accepted = Authentication::Accept(Vec::new());
    assert_eq!((decision(&context.clone()), is_authorised(&context)), (accepted, true));
}

#[test]
fn threading_modes_have_names() {
    for mode in ArchiveThreadingMode::ALL {
        assert_eq!(mode.to_string().parse::<ArchiveThreadingMode>().expect("a mode"), *mode);
    }
    let error = "SHARED_NETWORK".parse::<ArchiveThreadingMode>().expect_err("the driver's");
    assert!(error.message().ends_with("there are DEDICATED, SHARED, INVOKER"), "{error}");
}
