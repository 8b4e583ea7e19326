//! `rusteron archive verify --archive-dir`.

use std::path::Path;

use rusteron_archive::RecordingId;
use rusteron_archive_server::Checksum;
use rusteron_archive_server::offline::{
    ArchiveEditor, ArchiveFiles, Finding, LastFragment, RecordingEntry, RecordingState, Repair,
    Verification, VerifyOptions,
};
use rusteron_client::Position;
use rusteron_core::program::Failure;
use serde::Serialize;

use super::recordings;
use crate::options::{LastFragmentDecision, RecordChecksum};
use crate::report::{self, Report};
use crate::{options, text};

#[derive(Serialize)]
struct VerifiedRecordings {
    recordings: Vec<VerifiedRecording>,
    /// Segments of recordings that the catalog does not have. Empty if one recording was asked for.
    unknown_segments: Vec<String>,
}

#[derive(Serialize)]
struct VerifiedRecording {
    recording_id: i64,
    /// Before a repair, as the stop position.
    state: &'static str,
    start_position: Position,
    stop_position: Option<Position>,
    /// Where the frames of the last segment end.
    end_position: Option<Position>,
    /// Whether the catalog or a mark file confirms that.
    is_end_known: bool,
    findings: Vec<Problem>,
    /// `None` without `--repair`.
    repair: Option<Repaired>,
}

#[derive(Serialize)]
struct Problem {
    file: Option<String>,
    position: Option<Position>,
    text: String,
    invalidates: bool,
    #[serde(skip)]
    line: String,
}

#[derive(Serialize)]
struct Repaired {
    state: Option<&'static str>,
    stop_position: Option<Position>,
    is_truncated: bool,
}

pub(super) fn run(archive_dir: &Path, options: &options::VerifyOptions) -> Result<(), Failure> {
    let mut verify = VerifyOptions::default();
    verify.all_segments = options.all_segments;
    verify.checksum = options.record_checksum.map(|checksum| match checksum {
        RecordChecksum::Crc32 => Checksum::Crc32,
        RecordChecksum::Crc32c => Checksum::Crc32c,
    });
    verify.last_fragment = options.last_fragment.map(|decision| match decision {
        LastFragmentDecision::Truncate => LastFragment::Truncate,
        LastFragmentDecision::Keep => LastFragment::Keep,
    });
    let mut verified = Vec::new();
    let unknown_of = |files: &ArchiveFiles| match options.recording_id {
        Some(_) => Vec::new(),
        None => files.unknown_segments(),
    };
    let unknown_segments = if options.repair {
        let mut editor = ArchiveEditor::open(archive_dir)?;
        for entry in chosen(editor.files(), options.recording_id)? {
            let verification = editor.files().verify(&entry, &verify);
            let repair = editor.repair(&verification)?;
            verified.push(VerifiedRecording::new(verification, Some(repair)));
        }
        unknown_of(editor.files())
    } else {
        let files = ArchiveFiles::open_stopped(archive_dir)?;
        for entry in chosen(&files, options.recording_id)? {
            verified.push(VerifiedRecording::new(files.verify(&entry, &verify), None));
        }
        unknown_of(&files)
    };
    let wrong = verified.iter().filter(|it| !it.findings.is_empty()).count();
    let unknown = unknown_segments.len();
    let report = VerifiedRecordings { recordings: verified, unknown_segments };
    let printed = report::print(&report, options.format.json);
    match wrong {
        0 if unknown == 0 => printed,
        0 => Err(Failure::Run(format!("segments of no recording in the catalog: {unknown}"))),
        // Also if the reader of the output is gone.
        1 => Err(Failure::Run("1 recording is not as it should be".to_owned())),
        _ => Err(Failure::Run(format!("{wrong} recordings are not as they should be"))),
    }
}

fn chosen(files: &ArchiveFiles, id: Option<RecordingId>) -> Result<Vec<RecordingEntry>, Failure> {
    Ok(match id {
        Some(id) => vec![files.recording(id)?.clone()],
        None => files.recordings().to_vec(),
    })
}

impl VerifiedRecording {
    fn new(verification: Verification, repair: Option<Repair>) -> Self {
        let problem = |finding: Finding| Problem {
            line: finding.to_string(),
            file: finding.file,
            position: finding.position,
            text: finding.text,
            invalidates: finding.invalidates,
        };
        let repaired = |repair: Repair| Repaired {
            state: repair.state.map(|state| recordings::state(Some(state))),
            stop_position: repair.stop_position,
            is_truncated: repair.is_truncated,
        };
        Self {
            recording_id: verification.recording_id.get(),
            state: recordings::state(verification.state),
            start_position: verification.start_position,
            stop_position: verification.stop_position,
            end_position: verification.end_position,
            is_end_known: verification.is_end_known,
            findings: verification.findings.into_iter().map(problem).collect(),
            repair: repair.map(repaired),
        }
    }

    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.findings.iter().map(|it| text::printable(&it.line)).collect();
        if lines.is_empty() {
            let end = self.end_position.filter(|_| self.stop_position.is_none());
            let active = end.map(|end| {
                let doubt = match self.is_end_known {
                    true => "",
                    false => {
                        "; neither the catalog nor a mark file tells whether more was recorded"
                    }
                };
                format!("no stop position, frames end at {end}{doubt}")
            });
            lines.push(if self.state == recordings::state(Some(RecordingState::Deleted)) {
                "deleted".to_owned()
            } else {
                format!("{}, {}", self.state, active.as_deref().unwrap_or("files ok"))
            });
        }
        if let Some(repair) = &self.repair {
            lines.extend(repair.state.map(|state| format!("{state} now")));
            lines.extend(repair.stop_position.map(|stop| format!("stop position {stop} now")));
            lines.extend(repair.is_truncated.then(|| "last fragment cut off".to_owned()));
        }
        lines.iter().map(|line| format!("recording {}: {line}", self.recording_id)).collect()
    }
}

impl Report for VerifiedRecordings {
    fn header(&self) -> Vec<String> {
        let unknown = self.unknown_segments.iter();
        let unknown = unknown.map(|name| format!("{name}: the catalog has no such recording"));
        let recordings = self.recordings.iter().flat_map(VerifiedRecording::lines);
        let lines: Vec<_> = recordings.chain(unknown).collect();
        if lines.is_empty() { vec!["no recordings".to_owned()] } else { lines }
    }
}
