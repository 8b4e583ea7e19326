//! `rusteron stat --listen`: a driver's metrics over HTTP.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::driver_dir::DriverDir;
use crate::exposition::{Metrics, Syntax};
use crate::failure::Failure;
use crate::interrupt;
use crate::metrics;

/// Connections that are served at a time. Further ones are closed.
const MAX_CONNECTIONS: usize = 16;
/// The longest head of a request, in bytes.
const MAX_HEAD: usize = 8192;
const MAX_HEADERS: usize = 64;
/// Time for reading a request, and for writing an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Serves the metrics until Ctrl-C.
pub(crate) fn run(dir: DriverDir, addresses: &[SocketAddr]) -> Result<(), Failure> {
    let interrupted = interrupt::on_signals()?;
    let failed = |error| {
        let addresses: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
        Failure::run(format_args!("cannot listen on {}", addresses.join(", ")), error)
    };
    let listener = TcpListener::bind(addresses).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let mut out = io::stdout().lock();
    writeln!(out, "serving http://{address}/metrics")?;
    out.flush()?;
    // The end of the program ends the thread.
    thread::spawn(move || accept(&listener, &Arc::new(Source::new(dir))));
    // An error would mean that the handler of signals is gone.
    let _ = interrupted.recv();
    Ok(())
}

/// The directory that the metrics come from.
struct Source {
    dir: DriverDir,
    /// The failure of the last scrape, if any.
    failure: Mutex<Option<String>>,
}

impl Source {
    fn new(dir: DriverDir) -> Self {
        Self { dir, failure: Mutex::new(None) }
    }

    /// Returns the metrics, which are only `aeron_up` if they cannot be read.
    fn metrics(&self) -> Metrics {
        let (metrics, failure) = match metrics::read(&self.dir) {
            Ok(metrics) => (metrics, None),
            // While a driver starts, its files may be of any state.
            Err(Failure::Run(text)) => (metrics::absent(), Some(text)),
            Err(_) => (metrics::absent(), None),
        };
        let mut last = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != failure {
            if let Some(text) = &failure {
                // If standard error is closed, there is no way to report the failure.
                let _ = writeln!(io::stderr(), "rusteron: {text}");
            }
            *last = failure;
        }
        metrics
    }
}

fn accept(listener: &TcpListener, source: &Arc<Source>) {
    // Without file descriptors, accepting fails until a connection ends.
    const PAUSE: Duration = Duration::from_millis(100);
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        // Only this thread adds.
        if open.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
            continue;
        }
        open.fetch_add(1, Ordering::Relaxed);
        let connection = Connection { stream, open: Arc::clone(&open) };
        let source = Arc::clone(source);
        // Without a thread, the connection is closed.
        let _ = thread::Builder::new().spawn(move || connection.serve(&source));
    }
}

/// An open connection, which is counted until it is dropped.
struct Connection {
    stream: TcpStream,
    open: Arc<AtomicUsize>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connection {
    /// Answers one request. An error means that the client has gone or is too slow.
    fn serve(mut self, source: &Source) {
        let Ok(answer) = self.read_request().map(|request| request.answer(source)) else { return };
        if self.write(&answer).and_then(|()| self.stream.shutdown(Shutdown::Write)).is_ok() {
            self.drain();
        }
    }

    fn write(&mut self, mut answer: &[u8]) -> io::Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while !answer.is_empty() {
            self.stream.set_write_timeout(Some(remaining(deadline)?))?;
            let count = self.stream.write(answer)?;
            answer = &answer[count..];
        }
        Ok(())
    }

    fn read_request(&mut self) -> io::Result<Request> {
        let deadline = Instant::now() + TIMEOUT;
        let mut head = Vec::new();
        loop {
            let mut bytes = [0; 1024];
            let count = self.read_until(deadline, &mut bytes)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            head.extend(&bytes[..count]);
            match Request::parse(&head) {
                Some(request) => return Ok(request),
                None if head.len() > MAX_HEAD => return Ok(Request::Refused(431)),
                None => {}
            }
        }
    }

    /// Reads what the client still sends: closing before that could destroy the answer on its way.
    fn drain(&mut self) {
        let deadline = Instant::now() + TIMEOUT;
        let mut bytes = [0; 1024];
        while self.read_until(deadline, &mut bytes).is_ok_and(|count| count > 0) {}
    }

    fn read_until(&mut self, deadline: Instant, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(remaining(deadline)?))?;
        self.stream.read(bytes)
    }
}

/// Returns the time until a deadline, or an error after the deadline.
fn remaining(deadline: Instant) -> io::Result<Duration> {
    let remaining = deadline.saturating_duration_since(Instant::now());
    if remaining.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(remaining) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    /// The metrics, or only the head of the answer.
    Metrics { syntax: Syntax, is_head: bool },
    /// Refused with a status.
    Refused(u16),
}

impl Request {
    /// Parses the head of a request. `None` if the head is incomplete.
    fn parse(head: &[u8]) -> Option<Self> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(head) {
            Ok(httparse::Status::Partial) => return None,
            Ok(httparse::Status::Complete(_)) => {}
            Err(httparse::Error::TooManyHeaders) => return Some(Self::Refused(431)),
            Err(_) => return Some(Self::Refused(400)),
        }
        let path = request.path.and_then(|path| path.split('?').next());
        let method = request.method.unwrap_or_default();
        if path != Some("/metrics") {
            return Some(Self::Refused(404));
        }
        if !["GET", "HEAD"].contains(&method) {
            return Some(Self::Refused(405));
        }
        let is_openmetrics = request.headers.iter().any(|header| {
            header.name.eq_ignore_ascii_case("accept")
                && String::from_utf8_lossy(header.value).contains("application/openmetrics-text")
        });
        let syntax = if is_openmetrics { Syntax::OpenMetrics } else { Syntax::Prometheus };
        Some(Self::Metrics { syntax, is_head: method == "HEAD" })
    }

    fn answer(self, source: &Source) -> Vec<u8> {
        let (status, media_type, body, is_head) = match self {
            Self::Metrics { syntax, is_head } => {
                ("200 OK", syntax.media_type(), source.metrics().to_text(syntax), is_head)
            }
            Self::Refused(code) => {
                let status = match code {
                    404 => "404 Not Found",
                    405 => "405 Method Not Allowed\r\nAllow: GET, HEAD",
                    431 => "431 Request Header Fields Too Large",
                    _ => "400 Bad Request",
                };
                (status, "text/plain", "GET /metrics returns the metrics\n".to_owned(), false)
            }
        };
        let length = body.len();
        let mut answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n"
        );
        if !is_head {
            answer.push_str(&body);
        }
        answer.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(head: &str) -> Option<Request> {
        Request::parse(head.as_bytes())
    }

    #[test]
    fn accept_chooses_syntax() {
        let metrics = |syntax, is_head| Some(Request::Metrics { syntax, is_head });
        let plain = parse("GET /metrics HTTP/1.1\r\nAccept: text/plain\r\n\r\n");
        assert_eq!(plain, metrics(Syntax::Prometheus, false));
        let accept = "accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5";
        let open = parse(&format!("HEAD /metrics?x=y HTTP/1.1\r\n{accept}\r\n\r\n"));
        assert_eq!(open, metrics(Syntax::OpenMetrics, true));
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
            assert_eq!(parse(head), Some(Request::Refused(status)), "{head:?}");
        }
        assert_eq!(parse("GET /metrics HTTP/1.1\r\nHost: x\r\n"), None);
    }
}
