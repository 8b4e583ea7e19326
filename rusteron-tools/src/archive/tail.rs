//! `rusteron archive tail`.

use std::io::{self, Write};

use rusteron_archive::{Archive, ReplayLength, ReplayParams};
use rusteron_client::{Header, Position};
use rusteron_core::program::Failure;
use serde_json::json;

use super::session::{self, IdleLoop};
use super::{REPLAY_STREAM_ID, recordings};
use crate::options::TailOptions;
use crate::{report, text};

/// Most fragments that a poll takes.
const FRAGMENT_LIMIT: usize = 10;

pub(super) fn run(archive: &Archive, options: &TailOptions) -> Result<(), Failure> {
    let recording_id = recordings::descriptor(archive, options.recording_id)?.recording_id;
    let mut idle_loop = IdleLoop::until_interrupted()?;
    let start = match options.from {
        Some(position) => position,
        None if options.new => archive.max_recorded_position(recording_id)?,
        None => archive.start_position(recording_id)?,
    };
    if archive.stop_position(recording_id)? == Some(start) {
        // An archive refuses to replay nothing.
        return Ok(());
    }
    let params = ReplayParams::new().position(start).length(ReplayLength::Follow);
    let channel = &options.replay.replay_channel;
    let mut subscription = archive.replay(recording_id, channel, REPLAY_STREAM_ID, params)?;
    let (mut remaining, mut end) = (options.messages.unwrap_or(u64::MAX), start);
    let mut was_connected = false;
    let mut out = io::stdout();
    while remaining > 0 {
        // Before the poll, which still reads everything that has arrived until then.
        let is_connected = subscription.is_connected();
        was_connected |= is_connected;
        let mut lines = Vec::new();
        let handler = |message: &[u8], header: &Header<'_>| {
            end = header.position();
            lines.push(line(message, end, options.format.json));
        };
        let limit = FRAGMENT_LIMIT.min(usize::try_from(remaining).unwrap_or(usize::MAX));
        let fragments = subscription.poll(handler, limit)?;
        remaining = remaining.saturating_sub(lines.len() as u64);
        for line in lines {
            out.write_all(&line?)?;
        }
        if was_connected && !is_connected && fragments == 0 {
            return match archive.stop_position(recording_id)? {
                Some(stop) if end == stop => Ok(()),
                _ => Err(session::replay_ended(
                    archive,
                    format!("the replay has ended at {end}, before its time"),
                )),
            };
        }
        idle_loop.idle(fragments)?;
    }
    Ok(())
}

/// Returns the line of a message, with the position after the message.
fn line(message: &[u8], position: Position, json: bool) -> Result<Vec<u8>, Failure> {
    let mut line = match std::str::from_utf8(message) {
        Ok(text) if json => report::to_json(&json!({"position": position, "text": text}))?,
        Err(_) if json => {
            report::to_json(&json!({"hex": text::hex(message), "position": position}))?
        }
        _ => format!("{position:>12}  {}", message.escape_ascii()).into_bytes(),
    };
    line.push(b'\n');
    Ok(line)
}
