//! Settings: ranges, variables, and the archive's context.

use super::*;

#[test]
fn values_out_of_range_are_refused() {
    let refused = |change: fn(&mut ServiceContext) -> &mut ServiceContext, text: &str| {
        let mut context = ServiceContext::new();
        context.conclude().expect("the defaults are valid");
        change(&mut context);
        let error = context.conclude().expect_err(text);
        assert!(error.message().starts_with(text), "{error}");
    };
    refused(|x| x.set_service_id(-1), "service_id=-1: from 0 to 9");
    refused(|x| x.set_service_id(10), "service_id=10: from 0 to 9");
    refused(|x| x.set_cluster_id(-1), "cluster_id=-1: ");
    refused(|x| x.set_cluster_id(i32::MAX), "cluster_id=2147483647: ");
    refused(|x| x.set_service_name("a\0b"), "service_name=\"a\\0b\": ");
    refused(|x| x.set_log_fragment_limit(0), "log_fragment_limit=0: ");
    const UDP: &str = "aeron:udp?endpoint=localhost:1";
    refused(|x| x.set_archive_channel(UDP), "control_request_channel=aeron:udp?endpoint");
    refused(
        |x| x.set_archive_configurator(|_| panic!("no token")),
        "archive_configurator: panic: no token",
    );
    refused(
        |x| {
            x.set_archive_configurator(|archive| {
                archive.set_control_response_channel(UDP).map(drop)
            })
        },
        "control_response_channel=aeron:udp?endpoint",
    );
}

#[test]
fn archive_context_has_settings_and_configuration() {
    let mut context = ServiceContext::new();
    context.set_cluster_id(2).set_service_id(3).set_service_name("orders");
    context.set_archive_channel("aeron:ipc?term-length=1m").set_archive_stream_id(77);
    let archive = context.new_archive_context().expect("valid");
    assert_eq!(archive.control_request_channel(), "aeron:ipc?term-length=1m");
    assert_eq!(archive.control_response_channel(), "aeron:ipc?term-length=1m");
    assert_eq!(archive.control_request_stream_id(), 77);
    assert_eq!(archive.control_response_stream_id(), 324);
    assert_eq!(archive.client_name(), "orders");
    context.set_archive_configurator(|archive| {
        archive.set_message_timeout(Duration::from_secs(77))?;
        archive.set_control_response_stream_id(9)?;
        archive.set_control_response_channel("aeron:ipc?term-length=2m")?;
        Ok(())
    });
    let archive = context.new_archive_context().expect("valid");
    assert_eq!(archive.message_timeout(), Duration::from_secs(77));
    assert_eq!(archive.control_response_stream_id(), 9);
    assert_eq!(archive.control_response_channel(), "aeron:ipc?term-length=2m");
}

type Case = (&'static str, &'static str, Option<(&'static str, &'static str)>);

/// A value of each variable, and of those that do not take all texts, a faulty value and the
/// accepted values.
const CASES: [Case; 20] = [
    ("AERON_CLUSTER_ID", "1", Some(("-1", "from 0 to 21474736"))),
    ("AERON_CLUSTER_SERVICE_ID", "9", Some(("10", "from 0 to 9"))),
    ("AERON_CLUSTER_SERVICE_NAME", "orders", None),
    ("AERON_CLUSTER_SERVICE_RESPONDER", "false", Some(("no", "true or false"))),
    ("AERON_CLUSTER_DIR", "node", None),
    ("AERON_CLUSTER_MARK_FILE_DIR", "marks", None),
    ("AERON_CLUSTER_SERVICE_ERROR_BUFFER_LENGTH", "2m", Some(("1k", "from 1048576 to "))),
    ("AERON_CLUSTER_IDLE_STRATEGY", "yield", Some(("x", "backoff"))),
    ("AERON_CLUSTER_LOG_FRAGMENT_LIMIT", "7", Some(("0", "from 1 to 2147483647"))),
    ("AERON_CLUSTER_SERVICE_CYCLE_THRESHOLD", "7us", Some(("7m", "500ms"))),
    ("AERON_CLUSTER_SERVICE_SNAPSHOT_THRESHOLD", "3s", Some(("7h", "500ms"))),
    ("AERON_CLUSTER_CONTROL_CHANNEL", "aeron:ipc?a=1", None),
    ("AERON_CLUSTER_SERVICE_STREAM_ID", "1104", Some(("x", "from -2147483648 to "))),
    ("AERON_CLUSTER_CONSENSUS_MODULE_STREAM_ID", "1105", Some(("2147483648", "2147483647"))),
    ("AERON_CLUSTER_SNAPSHOT_CHANNEL", "aeron:ipc?a=2", None),
    ("AERON_CLUSTER_SNAPSHOT_STREAM_ID", "1106", Some(("x", "2147483647"))),
    ("AERON_CLUSTER_REPLAY_CHANNEL", "aeron:ipc?a=3", None),
    ("AERON_CLUSTER_REPLAY_STREAM_ID", "1103", Some(("x", "2147483647"))),
    ("AERON_ARCHIVE_LOCAL_CONTROL_CHANNEL", "aeron:ipc?a=4", None),
    ("AERON_ARCHIVE_LOCAL_CONTROL_STREAM_ID", "1010", Some(("x", "2147483647"))),
];

#[test]
fn variables_change_defaults() {
    assert_eq!(CASES.map(|case| case.0), ServiceContext::VARIABLES);
    let find = |name: &str| CASES.iter().find(|x| x.0 == name).map(|x| x.1.into());
    let x = ServiceContext::from_variables(find).expect("valid");
    assert_eq!((x.cluster_id(), x.service_id(), x.service_name()), (1, 9, "orders"));
    assert_eq!((x.is_responding_service(), x.cluster_dir()), (false, Path::new("node")));
    assert_eq!(x.mark_file_dir(), Some(Path::new("marks")));
    assert_eq!((x.error_buffer_length(), x.log_fragment_limit()), (2 << 20, 7));
    assert_eq!(x.idle_strategy().name(), "yield");
    assert_eq!(x.cycle_threshold(), Duration::from_micros(7));
    assert_eq!(x.snapshot_duration_threshold(), Duration::from_secs(3));
    assert_eq!((x.service_stream_id(), x.consensus_module_stream_id()), (1104, 1105));
    assert_eq!((x.control_channel(), x.archive_channel()), ("aeron:ipc?a=1", "aeron:ipc?a=4"));
    assert_eq!((x.snapshot_channel(), x.snapshot_stream_id()), ("aeron:ipc?a=2", 1106));
    assert_eq!((x.replay_channel(), x.replay_stream_id()), ("aeron:ipc?a=3", 1103));
    assert_eq!(x.archive_stream_id(), 1010);
}

#[test]
fn faulty_variables_are_named() {
    for (name, _, faulty) in CASES {
        let Some((value, accepted)) = faulty else {
            continue;
        };
        let variable = |asked: &str| (asked == name).then(|| value.into());
        let error = ServiceContext::from_variables(variable).expect_err(name);
        let text = error.message();
        assert!(text.starts_with(&format!("{name}={value}: ")), "{error}");
        assert!(text.contains(accepted), "{error}");
    }
}
