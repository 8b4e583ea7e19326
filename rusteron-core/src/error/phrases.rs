//! Phrases of C's error texts. Where only that text has the facts of a failure, a sentence in the caller's words
//! replaces it.
//!
//! If C words a failure differently, its own text is shown. The tests `mistakes` of the client and `small_file_system`
//! of the driver notice that.

use std::io;

use crate::error::ErrorKind;

/// Returns whether a line is the C client's heading above the driver's text, such as
/// `async_add_publication registration error`.
pub(super) fn is_heading(line: &str) -> bool {
    line.starts_with("async_") && line.ends_with(" registration error")
}

/// Returns whether there is no space left, on the file system or within the user's quota.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Returns what helps when the operating system reports that a resource is used up.
///
/// Most of these failures are the media driver's, whose text a client shows, so no advice says
/// whose process it is.
pub fn exhausted(errno: i32) -> Option<&'static str> {
    // The values are the same on all operating systems.
    const ENOMEM: i32 = 12;
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    match errno {
        ENOMEM => Some(
            "the process, its control group or the machine has no memory left for this; raise its limit (`ulimit -v`, \
             MemoryMax= in a unit, or vm.max_map_count), or use a shorter term-length",
        ),
        ENFILE => Some(
            "all processes of the machine together have too many files open; raise fs.file-max, or close some",
        ),
        EMFILE => Some(
            "the process that opens the file or socket is at its limit; raise it (`ulimit -n`, or LimitNOFILE= in a \
             unit)",
        ),
        _ if is_full(&io::Error::from_raw_os_error(errno)) => {
            Some("free space on the file system, or use another directory")
        }
        _ => None,
    }
}

/// Returns what is wrong and what helps, if `text` has a known phrase.
pub(super) fn explain(kind: ErrorKind, text: &str) -> Option<String> {
    let after = |phrase| Some(text.split_once(phrase)?.1.lines().next()?.trim_end());
    match kind {
        ErrorKind::Io(io::ErrorKind::AddrInUse) => {
            // `9, 127.0.0.1:40123)`
            let (_, address) = after("failed to bind(")?.strip_suffix(')')?.split_once(", ")?;
            Some(format!(
                "{address}: another process, or another channel of this driver, has this port; choose another, or \
                 port 0 for any"
            ))
        }
        ErrorKind::UnknownHost => {
            // `no-host): (-2) Name or service not known`
            let unresolved = after("Unable to resolve host=(");
            let reason = unresolved.and_then(|rest| rest.rsplit_once(") "));
            let reason = reason.map(|(_, reason)| format!(" ({reason})")).unwrap_or_default();
            match after("Unresolved - ") {
                Some(rest) => {
                    let (parameter, _) = rest.split_once(", name-and-port=")?;
                    Some(format!(
                        "{parameter}: the driver's machine cannot resolve this host name{reason}"
                    ))
                }
                // C names the parameter of endpoints only.
                None => {
                    let (host, _) = unresolved?.split_once(')')?;
                    Some(format!(
                        "interface={host}: the driver's machine cannot resolve this host name{reason}; write \
                         {{{host}}} for a network interface of this name"
                    ))
                }
            }
        }
        ErrorKind::InvalidArgument => {
            if let Some(setting) = after("could not parse driver timeout: ") {
                return Some(format!("{setting}: must be a number of milliseconds, such as 10000"));
            }
            let (key, values) = after("existing publication has different '")?.split_once("': ")?;
            let (existing, requested) =
                values.strip_prefix("existing=")?.split_once(" requested=")?;
            Some(format!(
                "{key}={requested}: a publication of this channel and stream has {key}={existing}, perhaps of a \
                 process that ended seconds ago; request the same, or use another stream id"
            ))
        }
        ErrorKind::ConductorServiceTimeout => {
            let times = after("service interval exceeded in ns: timeout=")?;
            let (timeout, interval) = times.split_once(", interval=")?;
            let millis = |nanos: &str| Some(nanos.parse::<u64>().ok()? / 1_000_000);
            Some(format!(
                "the client's conductor did no work for {} ms, timeout {} ms; make a new client, and call do_work more \
                 often or return from handlers sooner",
                millis(interval)?,
                millis(timeout)?
            ))
        }
        ErrorKind::Io(io::ErrorKind::FileTooLarge) => {
            let path = after("Failed to truncate file: ")
                .or_else(|| after("Failed to allocate file space: "))?;
            Some(format!(
                "{path}: longer than a file of the driver's process may be; raise its limit (`ulimit -f`, or LimitFSIZE= \
                 in a unit), or use a shorter term-length"
            ))
        }
        ErrorKind::StorageSpace => {
            if let Some(path) = after("Failed to allocate file space: ") {
                return Some(format!(
                    "{path}: its file system has no space for this file; free some there, or use another directory"
                ));
            }
            let lengths = after("insufficient usable storage for new log of length=")?;
            let (length, rest) = lengths.split_once(" usable=")?;
            let (usable, dir) = rest.split_once(" in ")?;
            Some(format!(
                "a log buffer of {length} bytes does not fit into {dir}, which has {usable} bytes left for \
                 log buffers; use a shorter term-length, or give the directory more space"
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::error::Error;

    #[test]
    fn known_phrases_become_one_sentence() {
        for (code, text, expected) in [
            (
                -11,
                "(-11) generic error\n[p, c.c:1] async_add_subscription registration error\n\
                 (98) Address already in use\n[b, s.c:93] failed to bind(9, [::1]:40123)\n[t, t.c:165] unicast bind",
                "address in use: [::1]:40123: another process, or another channel of this driver, has this port; \
                 choose another, or port 0 for any",
            ),
            (
                22,
                "(22) Invalid argument\n[i, c.c:149] could not parse driver timeout: AERON_DRIVER_TIMEOUT=10s\n",
                "invalid argument: AERON_DRIVER_TIMEOUT=10s: must be a number of milliseconds, such as 10000 \
                 (Aeron error 22)",
            ),
            (
                -1002,
                "(-1002) x\n[c, c.c:1] service interval exceeded in ns: timeout=2000000000, interval=2013481775",
                "conductor service timeout: the client's conductor did no work for 2013 ms, timeout 2000 ms; make a new \
                 client, and call do_work more often or return from handlers sooner (Aeron error -1002)",
            ),
            (
                -9,
                "(-9) unknown host\n[r, n.c:94] Unable to resolve host=(eth0): (-2) Name or service not known",
                "unknown host: interface=eth0: the driver's machine cannot resolve this host name (Name or service not \
                 known); write {eth0} for a network interface of this name (Aeron error -9)",
            ),
            // Not as expected: C's text stays.
            (
                98,
                "(98) in use\n[b, s.c:93] failed to bind",
                "address in use: failed to bind (Aeron error 98)",
            ),
        ] {
            assert_eq!(Error::from_code(code, text).to_string(), expected);
        }
    }
}
