//! `rusteron log`: log buffer files.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rusteron_core::program::Failure;
use serde::Serialize;

use crate::driver_dir::DriverDir;
use crate::log_file::LogFile;
use crate::log_file::entries::Entry;
use crate::log_file::frame::Frame;
use crate::log_file::metadata::{LogKind, Metadata, PARTITION_COUNT};
use crate::options::{LogOptions, PayloadForm};
use crate::report::{self, Report};
use crate::text;

pub(crate) fn run(dir: &DriverDir, options: &LogOptions) -> Result<(), Failure> {
    let Some(name) = &options.log else {
        return report::print(&list(&dir.path)?, options.format.json);
    };
    let path = find(&dir.path, name)?;
    let file = LogFile::open_path(&path).map_err(|fault| Failure::run(path.display(), fault))?;
    let summary = LogSummary::new(&path, &file.metadata);
    let has_frames = options.frames || options.payload.is_some();
    let mut out = io::BufWriter::new(io::stdout().lock());
    if options.format.json {
        // Entry by entry: memory may not hold many millions of frames.
        out.write_all(b"{\"log\":")?;
        out.write_all(&report::to_json(&summary)?)?;
        if has_frames {
            out.write_all(b",\"entries\":[")?;
            let mut separator = "";
            for_each_entry(file, options, |entry| {
                out.write_all(separator.as_bytes())?;
                separator = ",";
                out.write_all(&report::to_json(&JsonEntry::new(&entry, options))?)?;
                Ok(())
            })?;
            out.write_all(b"]")?;
        }
        out.write_all(b"}\n")?;
    } else {
        writeln!(out, "{}", summary.lines().join("\n"))?;
        if has_frames {
            for_each_entry(file, options, |entry| {
                writeln!(out, "{}", entry_lines(&entry, options).join("\n"))?;
                Ok(())
            })?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Calls the handler with the entries of the terms, in the order of the file, up to the limit.
fn for_each_entry(
    mut file: LogFile<File>,
    options: &LogOptions,
    mut handler: impl FnMut(Entry) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let payload_limit = options.payload.map_or(0, |_| options.payload_limit);
    let mut remaining = options.limit.unwrap_or(u64::MAX);
    for partition in 0..PARTITION_COUNT {
        for entry in file.entries(partition, payload_limit) {
            if matches!(entry, Entry::Frame(_)) {
                if remaining == 0 {
                    return Ok(());
                }
                remaining -= 1;
            }
            handler(entry)?;
        }
    }
    Ok(())
}

/// The metadata of a log buffer, and its file.
#[derive(Debug, Serialize)]
struct LogSummary {
    /// Path, with replacements for bytes that are not UTF-8.
    file: String,
    /// Position of the publisher. `None` for images: their files do not have the position.
    position: Option<i64>,
    #[serde(flatten)]
    metadata: Metadata,
}

impl LogSummary {
    fn new(path: &Path, metadata: &Metadata) -> Self {
        let active = metadata.active_term_count.rem_euclid(PARTITION_COUNT as i32);
        let is_image = metadata.kind == LogKind::Image;
        Self {
            file: path.to_string_lossy().into_owned(),
            position: (!is_image).then(|| metadata.tails[active.unsigned_abs() as usize].position),
            metadata: metadata.clone(),
        }
    }

    fn lines(&self) -> Vec<String> {
        let Metadata { kind, registration_id, session_id, stream_id, .. } = &self.metadata;
        let metadata = &self.metadata;
        let mut lines = vec![
            text::printable(&self.file),
            format!("{kind} {registration_id}, session {session_id} stream {stream_id}"),
        ];
        let mut line = |name: &str, value: String| lines.push(format!("  {name:<24}{value}"));
        line("term length", metadata.term_length.to_string());
        line("page size", metadata.page_size.to_string());
        line("MTU", metadata.mtu_length.to_string());
        line("initial term id", metadata.initial_term_id.to_string());
        line("active term count", metadata.active_term_count.to_string());
        if let Some(position) = self.position {
            line("position", position.to_string());
        }
        let end = metadata.end_of_stream_position;
        line("end of stream", end.map_or("not yet".to_owned(), |end| end.to_string()));
        let connected = if metadata.is_connected { "yes" } else { "no" };
        line("connected", connected.to_owned());
        line("transports", metadata.active_transport_count.to_string());
        line("flags", self.flags());
        line("publication window", metadata.publication_window_length.to_string());
        line("receiver window", metadata.receiver_window_length.to_string());
        line("linger timeout", format!("{} ns", metadata.linger_timeout_ns));
        line("entity tag", metadata.entity_tag.to_string());
        let header = &metadata.default_header;
        line(
            "default header",
            format!(
                "{} bytes, type {:#06x}, flags {}, version {}, term {}, reserved value {}",
                header.length,
                header.frame_type,
                header.flags,
                header.version,
                header.term_id,
                header.reserved_value
            ),
        );
        for (partition, tail) in metadata.tails.iter().enumerate() {
            line(
                &format!("tail of partition {partition}"),
                format!(
                    "term {} offset {} position {}",
                    tail.term_id, tail.term_offset, tail.position
                ),
            );
        }
        lines
    }

    fn flags(&self) -> String {
        let metadata = &self.metadata;
        let flags = [
            (metadata.is_publication_revoked, "revoked"),
            (metadata.group, "group"),
            (metadata.is_response, "response"),
            (metadata.rejoin, "rejoin"),
            (metadata.reliable, "reliable"),
            (metadata.sparse, "sparse"),
            (metadata.signal_eos, "signal-eos"),
            (metadata.spies_simulate_connection, "spies-simulate-connection"),
            (metadata.tether, "tether"),
        ];
        let set: Vec<_> = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        if set.is_empty() { "none".to_owned() } else { set.join(" ") }
    }
}

/// An entry as JSON.
#[derive(Debug, Serialize)]
struct JsonEntry<'a> {
    #[serde(flatten)]
    entry: &'a Entry,
    /// Omitted without `--payload`, and for entries other than frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
}

impl<'a> JsonEntry<'a> {
    fn new(entry: &'a Entry, options: &LogOptions) -> Self {
        let payload = match (entry, options.payload) {
            (Entry::Frame(frame), Some(PayloadForm::Hex)) => Some(text::hex(&frame.payload)),
            (Entry::Frame(frame), Some(PayloadForm::Ascii)) => Some(ascii(&frame.payload)),
            _ => None,
        };
        Self { entry, payload }
    }
}

fn entry_lines(entry: &Entry, options: &LogOptions) -> Vec<String> {
    match entry {
        Entry::Gap { partition, offset, length } => {
            vec![format!("{partition}:{offset:<10} nothing for {length} bytes")]
        }
        Entry::Fault { partition, offset, reason } => {
            vec![format!("{partition}:{offset:<10} no frame: {}", text::printable(reason))]
        }
        Entry::Frame(frame) => frame_lines(frame, options),
    }
}

fn frame_lines(frame: &Frame, options: &LogOptions) -> Vec<String> {
    const BYTES_PER_LINE: usize = 32;
    let Frame { partition, offset, position, length, frame_type, flags, .. } = frame;
    let mut line = format!(
        "{partition}:{offset:<10} position {position} length {length} {frame_type} {flags} \
         session {} stream {} term {} reserved {}",
        frame.session_id, frame.stream_id, frame.term_id, frame.reserved_value
    );
    if !frame.committed {
        line += " not committed";
    }
    if u64::try_from(frame.term_offset) != Ok(*offset) {
        line += &format!(" (its header says offset {})", frame.term_offset);
    }
    if frame.version != 0 {
        line += &format!(" version {}", frame.version);
    }
    let mut lines = vec![line];
    lines.extend(frame.payload.chunks(BYTES_PER_LINE).map(|bytes| match options.payload {
        Some(PayloadForm::Ascii) => format!("    {}", ascii(bytes)),
        _ => format!("    {}", text::hex(bytes)),
    }));
    lines
}

fn ascii(bytes: &[u8]) -> String {
    let printable = |byte: &u8| matches!(byte, b' '..=b'~');
    bytes.iter().map(|byte| if printable(byte) { char::from(*byte) } else { '.' }).collect()
}

/// The log buffers in a driver's directory.
#[derive(Debug, Serialize)]
struct LogList {
    logs: Vec<Listed>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Listed {
    Log(Box<LogSummary>),
    Fault { file: String, fault: String },
}

const FOLDERS: [&str; 2] = ["publications", "images"];

/// Returns the named file, or the file of the log buffer with this registration id.
fn find(dir: &Path, name: &Path) -> Result<PathBuf, Failure> {
    let id = name.to_str().filter(|text| text.parse::<i64>().is_ok());
    let Some(id) = id.filter(|_| !name.exists()) else { return Ok(name.to_owned()) };
    let paths = FOLDERS.map(|folder| dir.join(folder).join(format!("{id}.logbuffer")));
    let found = paths.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| Failure::Run(format!("no log buffer {id} in {}", dir.display())))
}

fn list(dir: &Path) -> Result<LogList, Failure> {
    let mut logs = Vec::new();
    for folder in FOLDERS {
        let folder = dir.join(folder);
        let entries = fs::read_dir(&folder);
        let entries = entries.map_err(|error| Failure::run(folder.display(), error))?;
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "logbuffer"));
        paths.sort();
        for path in paths {
            match LogFile::open_path(&path) {
                Ok(file) => logs.push(Listed::Log(LogSummary::new(&path, &file.metadata).into())),
                // The log buffer was closed after the folder was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(fault) => logs.push(Listed::Fault {
                    file: path.to_string_lossy().into_owned(),
                    fault: fault.to_string(),
                }),
            }
        }
    }
    Ok(LogList { logs })
}

impl Report for LogList {
    fn header(&self) -> Vec<String> {
        vec![format!("{} log buffers", self.logs.len())]
    }

    fn body(&self) -> Vec<String> {
        let line = |listed: &Listed| match listed {
            Listed::Fault { file, fault } => {
                format!("{}: {}", text::printable(file), text::printable(fault))
            }
            Listed::Log(log) => {
                let metadata = &log.metadata;
                let position = log.position.map(|position| format!(" position {position}"));
                format!(
                    "{}: {} session {} stream {} term length {}{}",
                    text::printable(&log.file),
                    metadata.kind,
                    metadata.session_id,
                    metadata.stream_id,
                    metadata.term_length,
                    position.unwrap_or_default()
                )
            }
        };
        self.logs.iter().map(line).collect()
    }
}
