//! `rusteron stat --listen`: a driver's metrics over HTTP.

use rusteron_core::program::{Failure, on_interrupt, print_error};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::exposition::{Metrics, Syntax};
use crate::metrics::Sources;

/// Connections that are served at a time. A further one takes the place of the oldest idle one or, if none
/// is idle, of the oldest.
const MAX_CONNECTIONS: usize = 16;
/// The same for one address.
const MAX_CONNECTIONS_OF_PEER: usize = 4;
/// The longest head of a request, in bytes.
const MAX_HEAD: usize = 8192;
const MAX_HEADERS: usize = 64;
/// Time for a connection, from its start to its end.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Serves the metrics until Ctrl-C.
pub(crate) fn run(sources: Sources, address: &str) -> Result<(), Failure> {
    let shutdown = on_interrupt()?;
    let failed = |error| Failure::run(format_args!("cannot listen on {address}"), error);
    let listener = TcpListener::bind(address).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    match announce(address) {
        // The metrics do not need a reader of the line.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    // The end of the program ends the thread.
    thread::spawn(move || accept(&listener, &Arc::new(Exporter::new(sources))));
    shutdown.wait();
    Ok(())
}

fn announce(address: SocketAddr) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "serving http://{address}/metrics")?;
    out.flush()
}

/// The metrics, with a memory of the last failure.
struct Exporter {
    sources: Sources,
    /// The failure of the last scrape, if any.
    failure: Mutex<Option<String>>,
}

impl Exporter {
    fn new(sources: Sources) -> Self {
        Self { sources, failure: Mutex::new(None) }
    }

    /// Returns the metrics, without those that cannot be read. Reports each failure once.
    fn metrics(&self) -> Metrics {
        let (metrics, outcome) = self.sources.read();
        let failure = match outcome {
            Err(Failure::Run(text)) => Some(text),
            _ => None,
        };
        let mut last = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != failure {
            if let Some(text) = &failure {
                print_error("rusteron", text);
            }
            *last = failure;
        }
        metrics
    }
}

fn accept(listener: &TcpListener, exporter: &Arc<Exporter>) {
    // Without file descriptors, accepting fails until a connection ends.
    const PAUSE: Duration = Duration::from_millis(100);
    let table = Arc::new(Table::default());
    loop {
        let Ok((stream, peer)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        // Without a descriptor or a thread, the connection is closed.
        let Ok(connection) = Connection::open(stream, peer.ip(), &table) else { continue };
        let exporter = Arc::clone(exporter);
        let _ = thread::Builder::new().spawn(move || connection.serve(&exporter));
    }
}

/// The open connections, the oldest first.
#[derive(Default)]
struct Table(Mutex<Vec<Entry>>);

struct Entry {
    peer: IpAddr,
    /// Another descriptor of the stream, which ends the reads and writes of the connection's thread.
    stream: TcpStream,
    is_busy: Arc<AtomicBool>,
}

impl Table {
    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. Closes another one if there are too many.
    fn add(&self, entry: Entry) {
        let mut entries = self.entries();
        let states = entries.iter().map(|one| (one.peer, one.is_busy.load(Ordering::Relaxed)));
        if let Some(index) = evicted(entry.peer, &states.collect::<Vec<_>>()) {
            // An error means that it has ended.
            let _ = entries.remove(index).stream.shutdown(Shutdown::Both);
        }
        entries.push(entry);
    }
}

/// Returns which of the open connections, the oldest first, has to go for one of this peer: if its address or all together
/// have too many, the oldest idle one of these, or else the oldest.
fn evicted(peer: IpAddr, open: &[(IpAddr, bool)]) -> Option<usize> {
    let of_peer = open.iter().filter(|(other, _)| *other == peer).count();
    let is_peer_only = of_peer >= MAX_CONNECTIONS_OF_PEER;
    if !is_peer_only && open.len() < MAX_CONNECTIONS {
        return None;
    }
    let mut candidates: Vec<_> = (0..open.len()).collect();
    candidates.retain(|index| !is_peer_only || open[*index].0 == peer);
    candidates.into_iter().min_by_key(|index| open[*index].1)
}

/// An open connection, which is in the table until it is dropped.
struct Connection {
    stream: TcpStream,
    deadline: Instant,
    /// True from the end of the request to the end of the answer.
    is_busy: Arc<AtomicBool>,
    table: Arc<Table>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.table.entries().retain(|entry| !Arc::ptr_eq(&entry.is_busy, &self.is_busy));
    }
}

impl Connection {
    fn open(stream: TcpStream, peer: IpAddr, table: &Arc<Table>) -> io::Result<Self> {
        let is_busy = Arc::new(AtomicBool::new(false));
        let (table, deadline) = (Arc::clone(table), Instant::now() + TIMEOUT);
        table.add(Entry { peer, stream: stream.try_clone()?, is_busy: Arc::clone(&is_busy) });
        Ok(Self { stream, deadline, is_busy, table })
    }

    /// Answers one request. An error means that the client has gone or is too slow.
    fn serve(mut self, exporter: &Exporter) {
        let Ok(request) = self.read_request() else { return };
        self.is_busy.store(true, Ordering::Relaxed);
        let answer = request.answer(exporter);
        let written = self.write(&answer).and_then(|()| self.stream.shutdown(Shutdown::Write));
        self.is_busy.store(false, Ordering::Relaxed);
        if written.is_ok() {
            self.drain();
        }
    }

    fn write(&mut self, mut answer: &[u8]) -> io::Result<()> {
        while !answer.is_empty() {
            self.stream.set_write_timeout(Some(remaining(self.deadline)?))?;
            let count = self.stream.write(answer)?;
            answer = &answer[count..];
        }
        Ok(())
    }

    fn read_request(&mut self) -> io::Result<Request> {
        let mut head = Vec::new();
        loop {
            let mut bytes = [0; 1024];
            let count = self.read(&mut bytes)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            head.extend(&bytes[..count]);
            if head.len() > MAX_HEAD {
                return Ok(Request::refused(431));
            }
            if let Some(request) = Request::parse(&head) {
                return Ok(request);
            }
        }
    }

    /// Reads what the client still sends: closing before that could destroy the answer on its way.
    fn drain(&mut self) {
        let mut bytes = [0; 1024];
        while self.read(&mut bytes).is_ok_and(|count| count > 0) {}
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(remaining(self.deadline)?))?;
        self.stream.read(bytes)
    }
}

/// Returns the time until a deadline, or an error after the deadline.
fn remaining(deadline: Instant) -> io::Result<Duration> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    if remaining.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(remaining) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Request {
    /// The answer is only a head.
    is_head: bool,
    /// The syntax of the metrics, or the status of a refused request.
    outcome: Result<Syntax, u16>,
}

impl Request {
    fn refused(status: u16) -> Self {
        Self { is_head: false, outcome: Err(status) }
    }

    /// Parses the head of a request. `None` if the head is incomplete.
    fn parse(head: &[u8]) -> Option<Self> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(head) {
            Ok(httparse::Status::Partial) => return None,
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return Some(Self::refused(431)),
            Err(_) => return Some(Self::refused(400)),
        }
        let outcome = if path(request.path.unwrap_or_default()) != "/metrics" {
            Err(404)
        } else if !["GET", "HEAD"].contains(&request.method.unwrap_or_default()) {
            Err(405)
        } else if request.headers.iter().any(asks_for_openmetrics) {
            Ok(Syntax::OpenMetrics)
        } else {
            Ok(Syntax::Prometheus)
        };
        Some(Self { is_head: request.method == Some("HEAD"), outcome })
    }

    fn answer(self, exporter: &Exporter) -> Vec<u8> {
        let (status, media_type, body) = match self.outcome {
            Ok(syntax) => ("200 OK", syntax.media_type(), exporter.metrics().to_text(syntax)),
            Err(code) => {
                let status = match code {
                    404 => "404 Not Found",
                    405 => "405 Method Not Allowed\r\nAllow: GET, HEAD",
                    431 => "431 Request Header Fields Too Large",
                    _ => "400 Bad Request",
                };
                (status, "text/plain", "GET /metrics returns the metrics\n".to_owned())
            }
        };
        let length = body.len();
        let mut answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n"
        );
        if !self.is_head {
            answer.push_str(&body);
        }
        answer.into_bytes()
    }
}

/// Returns the path of a request's target, which may be a complete URI.
fn path(target: &str) -> &str {
    let path = target.split('?').next().unwrap_or_default();
    match path.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => path,
    }
}

/// Returns whether the header accepts OpenMetrics. The weight 0 rejects a media type.
fn asks_for_openmetrics(header: &httparse::Header<'_>) -> bool {
    let value = String::from_utf8_lossy(header.value).to_ascii_lowercase();
    header.name.eq_ignore_ascii_case("accept")
        && value.split(',').any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let is_rejected =
                |part: &str| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0));
            parts.next() == Some("application/openmetrics-text") && !parts.any(is_rejected)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_idle_connection_goes() {
        let [one, other] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
        let full = |peer| vec![(peer, false); MAX_CONNECTIONS_OF_PEER];
        assert_eq!(evicted(one, &full(one)[1..]), None);
        assert_eq!(evicted(one, &full(one)), Some(0));
        // A peer with many connections pays itself.
        assert_eq!(evicted(other, &full(one)), None);
        assert_eq!(evicted(one, &[full(other), full(one)].concat()), Some(full(other).len()));
        let mut open = full(one);
        (open[0].1, open[1].1) = (true, true);
        assert_eq!(evicted(one, &open), Some(2));
        open.iter_mut().for_each(|(_, is_busy)| *is_busy = true);
        assert_eq!(evicted(one, &open), Some(0));
        let many: Vec<_> = (0..MAX_CONNECTIONS)
            .map(|last| (IpAddr::from([10, 0, 1, last as u8]), last < 3))
            .collect();
        assert_eq!(evicted(one, &many), Some(3));
        assert_eq!(evicted(one, &many[1..]), None);
    }

    fn parse(head: &str) -> Option<Request> {
        Request::parse(head.as_bytes())
    }

    #[test]
    fn accept_chooses_syntax() {
        let metrics = |syntax, is_head| Some(Request { is_head, outcome: Ok(syntax) });
        for plain in ["text/plain", "application/openmetrics-text; version=1.0.0; q=0.0, */*"] {
            let plain = parse(&format!("GET /metrics HTTP/1.1\r\nAccept: {plain}\r\n\r\n"));
            assert_eq!(plain, metrics(Syntax::Prometheus, false));
        }
        let accept = "accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1";
        let open = parse(&format!("HEAD /metrics?x=y HTTP/1.1\r\n{accept}\r\n\r\n"));
        assert_eq!(open, metrics(Syntax::OpenMetrics, true));
    }

    #[test]
    fn target_may_be_complete_uri() {
        for (target, expected) in [
            ("http://host:9942/metrics?x=http://y", "/metrics"),
            ("/metrics?x=://y/z", "/metrics"),
            ("http://host", "/"),
            ("*", "*"),
        ] {
            assert_eq!(path(target), expected);
        }
    }

    #[test]
    fn bad_requests_are_refused() {
        let cases = [
            ("GET / HTTP/1.1\r\n\r\n", 404),
            ("POST /metrics HTTP/1.1\r\n\r\n", 405),
            ("no request\r\n\r\n", 400),
            (&format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS + 1)), 431),
        ];
        for (head, status) in cases {
            assert_eq!(parse(head), Some(Request::refused(status)), "{head:?}");
        }
        assert_eq!(parse("GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
    }
}
