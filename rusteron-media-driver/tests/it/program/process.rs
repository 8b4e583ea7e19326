//! The program `media_driver`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::Output;

use rusteron_client::{Aeron, request_driver_termination};
use rusteron_test_support::{
    DriverProcess, await_that, connected_pair, context, exchange, free_port, media_driver,
};

use crate::MEDIA_DRIVER;

#[test]
fn ready_and_closed_on_signal() {
    for signal in ["TERM", "INT"] {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("aeron");
        let mut driver = DriverProcess::start(MEDIA_DRIVER, &dir, &[]);
        assert_eq!(driver.line(), format!("media driver ready: {}", dir.display()));
        assert!(dir.join("cnc.dat").is_file());
        driver.signal(signal);
        assert_eq!(driver.line(), format!("media driver closed: {}", dir.display()));
        assert_eq!(driver.end(), (0, String::new()), "SIG{signal}");
    }
}

#[test]
fn invoker_mode_works_on_the_main_thread() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut command = media_driver(MEDIA_DRIVER);
    command.args(["--threading-mode", "invoker", "--dir"]).arg(&dir);
    let mut driver = DriverProcess::run(&mut command);
    assert!(driver.line().starts_with("media driver ready"));
    let aeron = Aeron::connect(context(&dir)).expect("a client");
    let channel = format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
    let (mut publication, mut subscription) = connected_pair(&aeron, &channel);
    exchange(&mut publication, &mut subscription, 10);
}

#[test]
fn duration_without_unit_is_warned_of() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut command = media_driver(MEDIA_DRIVER);
    command.env("AERON_DIR", &dir).env("AERON_THREADING_MODE", "SHARED");
    command.env("AERON_PUBLICATION_LINGER_TIMEOUT", "5").env("AERON_IMAGE_LIVENESS_TIMEOUT", "10s");
    let mut driver = DriverProcess::run(&mut command);
    assert!(driver.line().starts_with("media driver ready"));
    driver.signal("TERM");
    let (code, errors) = driver.end();
    assert_eq!(code, 0, "{errors}");
    let warning = "AERON_PUBLICATION_LINGER_TIMEOUT=5: nanoseconds, because it has no unit";
    assert!(errors.contains(warning), "{errors}");
    assert!(!errors.contains("AERON_IMAGE_LIVENESS_TIMEOUT"), "{errors}");
}

#[test]
fn hangup_and_nohup() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    // The tests themselves may have been started with nohup or without.
    let start = |hangup: libc::sighandler_t| {
        let mut command = media_driver(MEDIA_DRIVER);
        command.env("AERON_DIR", &dir).env("AERON_THREADING_MODE", "SHARED");
        // SAFETY: between fork and exec this calls one function, which is safe there.
        unsafe {
            command.pre_exec(move || {
                libc::signal(libc::SIGHUP, hangup);
                Ok(())
            })
        };
        let mut driver = DriverProcess::run(&mut command);
        assert!(driver.line().starts_with("media driver ready"));
        driver.signal("HUP");
        driver
    };
    let mut driver = start(libc::SIG_DFL);
    await_that("its end", || driver.try_wait().is_some());
    assert!(driver.line().starts_with("media driver closed"));
    assert_eq!(driver.end(), (0, String::new()));

    let mut driver = start(libc::SIG_IGN);
    let aeron = Aeron::connect(context(&dir)).expect("a client");
    for stream_id in 0..100 {
        drop(aeron.add_publication("aeron:ipc?term-length=64k", stream_id).expect("a publication"));
    }
    drop(aeron);
    driver.signal("TERM");
    assert!(driver.line().starts_with("media driver closed"));
    assert_eq!(driver.end(), (0, String::new()));
}

#[test]
fn failed_close_is_reported() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let options = ["-D", "aeron.dir.delete.on.shutdown=true"];
    let mut driver = DriverProcess::start(MEDIA_DRIVER, &dir, &options);
    assert!(driver.line().starts_with("media driver ready"));
    // There is nothing left to delete.
    std::fs::rename(&dir, home.path().join("elsewhere")).expect("another name");
    driver.signal("TERM");
    assert_eq!(driver.line(), "");
    let (code, errors) = driver.end();
    assert_eq!(code, 1, "{errors}");
    assert!(errors.contains("not deleted: its cnc.dat was removed"), "{errors}");
}

#[test]
fn closed_output() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut driver = DriverProcess::start(MEDIA_DRIVER, &dir, &["--stats", "0.001"]);
    assert!(driver.line().starts_with("media driver ready"));
    let line = driver.await_line("stats ");
    assert!(line.contains(", errors 0, lost 0 B"), "{line}");
    driver.hang_up();
    let aeron = Aeron::connect(context(&dir)).expect("a client");
    // The driver has printed, or tried to, while it answered all of these.
    for stream_id in 0..100 {
        drop(aeron.add_publication("aeron:ipc?term-length=64k", stream_id).expect("a publication"));
    }
    drop(aeron);
    driver.signal("TERM");
    assert_eq!(driver.end(), (0, String::new()));
}

#[test]
fn dir_in_use_and_unknown_options() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let mut first = DriverProcess::start(MEDIA_DRIVER, &dir, &[]);
    assert!(first.line().starts_with("media driver ready"));
    let mut second = DriverProcess::start(MEDIA_DRIVER, &dir, &[]);
    let (code, errors) = second.end();
    assert_eq!(code, 75);
    let runs = format!("active media driver: process {} runs in {}", first.id(), dir.display());
    assert!(
        errors.contains(&runs) && errors.matches(&*dir.to_string_lossy()).count() == 1,
        "{errors}"
    );
    assert!(dir.join("cnc.dat").is_file());

    let output = media_driver(MEDIA_DRIVER)
        .args(["--threading-mode", "sequential"])
        .output()
        .expect("the program");
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("--threading-mode"), "{errors}");
}

#[test]
fn client_requests_termination() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let name = "AERON_DRIVER_TERMINATION_VALIDATOR";
    for validator in ["allow", "aeron_driver_termination_validator_default_allow"] {
        let mut driver = DriverProcess::run(
            media_driver(MEDIA_DRIVER).env("AERON_DIR", &dir).env(name, validator),
        );
        assert!(driver.line().starts_with("media driver ready"));
        request_driver_termination(&dir, b"").expect("a request");
        assert_eq!(driver.line(), format!("media driver closed: {}", dir.display()));
        assert_eq!(driver.end(), (0, String::new()), "{validator}");
    }

    let mut driver = DriverProcess::start(MEDIA_DRIVER, &dir, &[]);
    assert!(driver.line().starts_with("media driver ready"));
    request_driver_termination(&dir, b"").expect("a request");
    // The request comes before the publication's, and did nothing.
    let aeron = Aeron::connect(context(&dir)).expect("a client");
    drop(aeron.add_publication("aeron:ipc", 1001).expect("a publication"));
    assert!(driver.try_wait().is_none());
}

#[test]
fn precedence_of_settings() {
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("driver.properties");
    std::fs::write(&file, "# comment\naeron.mtu.length=2048\n\naeron.ipc.mtu.length : 4096\n")
        .expect("a file");
    let output = media_driver(MEDIA_DRIVER)
        .envs([
            ("AERON_MTU_LENGTH", "8192"),
            ("AERON_IPC_MTU_LENGTH", "8192"),
            ("AERON_TERM_BUFFER_LENGTH", "131072"),
            ("AERON_SENDER_IDLE_STRATEGY", "noop"),
        ])
        .args(["-D", "aeron.mtu.length=1024", "-Daeron.socket.so_sndbuf=262144"])
        .args(["--term-buffer-length", "1m", "--idle", "yield", "--cpu", "-,1", "--print-config"])
        .args(["--ipc-term-buffer-length", "2m", "--term-cleaning", "cached"])
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the program");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    for line in [
        "AERON_MTU_LENGTH=2048",
        "AERON_IPC_MTU_LENGTH=4096",
        "AERON_SOCKET_SO_SNDBUF=262144",
        "AERON_TERM_BUFFER_LENGTH=1048576",
        "AERON_IPC_TERM_BUFFER_LENGTH=2097152",
        "RUSTERON_TERM_CLEANING=cached",
        "AERON_SENDER_IDLE_STRATEGY=yield",
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY=sleep-ns",
        "AERON_CONDUCTOR_CPU_AFFINITY=-1",
        "AERON_SENDER_CPU_AFFINITY=1",
        "AERON_RECEIVER_CPU_AFFINITY=-1",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
    }
}

/// The program's answer to `--print-config` with properties from a server.
fn print_config_from_server(properties: &str) -> Output {
    print_config_with_answer(&format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{properties}",
        properties.len()
    ))
}

/// The program's answer to `--print-config` with what a server answers.
fn print_config_with_answer(answer: &str) -> Output {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/driver.properties", listener.local_addr().expect("an address"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut connection, _) = listener.accept().expect("a connection");
            let mut request = BufReader::new(connection.try_clone().expect("a clone"));
            let mut line = String::new();
            while request.read_line(&mut line).is_ok_and(|length| length > 2) {
                line.clear();
            }
            connection.write_all(answer.as_bytes()).expect("an answer");
        });
        media_driver(MEDIA_DRIVER).arg("--print-config").arg(&url).output().expect("the program")
    })
}

#[test]
fn properties_from_url() {
    let output = print_config_from_server("\n\r\n \t \n  aeron.mtu.length=2048\n\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.contains("\nAERON_MTU_LENGTH=2048\n"), "{text}");

    let output = print_config_from_server("       =x\n");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(78), "{errors}");
    assert!(errors.contains("line 1 malformed"), "{errors}");
}

/// Aeron copies the parts of a URL into arrays on the stack, and a server names the next URL.
#[test]
fn redirection_to_any_url_is_refused() {
    let path = "p".repeat(511);
    let host = "h".repeat(384);
    for url in ["1/a@b", "1/@", "%[]:1/", &format!("1/{path}"), &host, &format!("{host}@1/")] {
        let answer = format!("HTTP/1.1 302 Found\r\nLocation: http://{url}\r\n\r\n");
        let output = print_config_with_answer(&answer);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{url}: {text}");
        assert!(text.contains(url.trim_end_matches('/')), "{text}");
    }
}

#[test]
fn exit_status() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let missing = home.path().join("missing").display().to_string();
    let file = home.path().join("file");
    std::fs::write(&file, b"in the way").expect("a file");
    let in_the_way = file.join("aeron").display().to_string();
    let cases: [(&[&str], i32, &str); 7] = [
        (&["-D", "nonsense"], 78, "nonsense"),
        (&["-D", "aeron.mtu.length=33"], 78, "mtu"),
        (&["-D", "aeron.sender.idle.strategy=sleepy"], 78, "sleepy"),
        (&[&missing], 78, "missing"),
        (&["--dir", &in_the_way], 73, "aeron"),
        (&["--term-buffer-length", "100k"], 2, "power of two"),
        (&["--idle", "sleepy"], 2, "backoff"),
    ];
    for (arguments, status, text) in cases {
        let mut driver =
            DriverProcess::run(media_driver(MEDIA_DRIVER).env("AERON_DIR", &dir).args(arguments));
        let (code, errors) = driver.end();
        assert_eq!(code, status, "{arguments:?}: {errors}");
        assert!(errors.contains(text), "{arguments:?}: {errors}");
        assert!(errors.matches(&missing).count() <= 1, "{arguments:?}: {errors}");
        assert!(!dir.exists(), "{arguments:?}");
    }
}

#[test]
fn unknown_names_in_environment() {
    let home = tempfile::tempdir().expect("a directory");
    for (variable, value) in [
        ("AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA", "nosuch"),
        ("AERON_CONDUCTOR_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA", "nosuch"),
        ("AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", ""),
        ("AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS", ",,"),
        // Aeron would call a function that there is none of when the first channel is opened. The
        // library offers none for outgoing datagrams.
        ("AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS", "loss"),
        ("AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS", "fixed-loss"),
        ("AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS", "multi-gap-loss"),
        ("AERON_SENDER_WILDCARD_PORT_RANGE", "99999999999999999999"),
    ] {
        let mut driver = DriverProcess::run(
            media_driver(MEDIA_DRIVER)
                .env("AERON_DIR", home.path().join("aeron"))
                .env(variable, value),
        );
        let (code, errors) = driver.end();
        assert_eq!(code, 78, "{variable}: {errors}");
        assert!(errors.contains(variable) || errors.contains(value), "{variable}: {errors}");
    }
}

#[test]
fn event_log_by_name_and_number() {
    let home = tempfile::tempdir().expect("a directory");
    let (dir, log) = (home.path().join("aeron"), home.path().join("events"));
    let mut driver = DriverProcess::run(
        media_driver(MEDIA_DRIVER)
            .env("AERON_DIR", &dir)
            .env("AERON_THREADING_MODE", "SHARED")
            // 5 is CMD_IN_ADD_SUBSCRIPTION.
            .env("AERON_EVENT_LOG", "CMD_IN_ADD_PUBLICATION,CMD_IN_REMOVE_PUBLICATION,5")
            .env("AERON_EVENT_LOG_DISABLE", "CMD_IN_ADD_PUBLICATION")
            .env("AERON_EVENT_LOG_FILENAME", &log),
    );
    assert!(driver.line().starts_with("media driver ready"));
    let aeron = Aeron::connect(context(&dir)).expect("a client");
    let _subscription = aeron.add_subscription("aeron:ipc", 1001).expect("a subscription");
    drop(aeron.add_publication("aeron:ipc", 1001).expect("a publication"));
    await_that("the last event", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let events =
            text.lines().filter_map(|line| line.split("DRIVER: ").nth(1)?.split(' ').next());
        events.skip(1).eq(["CMD_IN_ADD_SUBSCRIPTION", "CMD_IN_REMOVE_PUBLICATION"])
    });
}

#[test]
fn files_beyond_the_limit_are_refused_by_name() {
    let home = tempfile::tempdir().expect("a directory");
    let dir = home.path().join("aeron");
    let limited = |limit: libc::rlim_t| {
        let mut command = media_driver(MEDIA_DRIVER);
        command.arg("--dir").arg(&dir);
        // SAFETY: between fork and exec this calls one function, which is safe there.
        unsafe {
            command.pre_exec(move || {
                let limit = libc::rlimit { rlim_cur: limit, rlim_max: limit };
                match libc::setrlimit(libc::RLIMIT_FSIZE, &limit) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            })
        };
        DriverProcess::run(&mut command)
    };
    let (code, errors) = limited(100_000).end();
    assert!(code > 0, "not ended by a signal: {code} {errors}");
    let expected = "cnc.dat: longer than a file of the driver's process may be";
    assert!(errors.contains(expected), "{errors}");

    let mut driver = limited(100 << 20);
    assert!(driver.line().starts_with("media driver ready"));
    let aeron = Aeron::connect(context(&dir)).expect("a client");
    let error = aeron.add_publication("aeron:ipc?term-length=64m", 1).expect_err("too long");
    let expected = ".logbuffer: longer than a file of the driver's process may be";
    assert!(error.to_string().contains(expected), "{error}");
    drop(aeron.add_publication("aeron:ipc?term-length=64k", 1).expect("a publication"));
    driver.signal("TERM");
    assert_eq!(driver.end(), (0, String::new()));
}
