//! The campaign from its start to its end.

use std::fs;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use rusteron_client::Aeron;
use rusteron_core::agent::ShutdownSignal;
use rusteron_core::program::{Failure, on_interrupt};
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::programs::ResultsFile;
use rusteron_test_support::{DEADLINE, Random, command, context, has_java, java_run};

use super::life::{Life, Session};
use super::options::{ArchiveOptions, Damage};
use super::plan::{CopyMode, Plan};
use super::server::{Server, ServerOptions, driver_context};
use super::stream::{Fault, Recording, Stream};
use crate::process::{seed, temporary_dir};
use crate::report::Report;

/// The conditions that can be violated.
const CONDITIONS: [&str; 7] = [
    "missing",
    "corrupted",
    "refused to start",
    "refused",
    "stuck",
    "crashed",
    "refused by ArchiveTool",
];
const FIGURES: [&str; 9] = [
    "kills of the archive",
    "kills of archive and driver",
    "kills before a server was ready",
    "restored copies",
    "publications ended",
    "messages checked",
    "messages followed",
    "recordings",
    "directories verified by Java",
];
/// Kills of servers with the same directory. It then has hundreds of megabytes.
const KILLS_OF_DIRECTORY: u64 = 40;

/// Runs the campaign.
pub(crate) fn run(options: &ArchiveOptions) -> Result<(), Failure> {
    let has_java = has_java();
    let json = ResultsFile::open(&options.results, "archive-survival.json")?;
    let interrupt = on_interrupt()?;
    let seed = seed(options.seed);
    println!("seed {seed}, {:?}", options.duration);
    let root = match &options.dir {
        Some(dir) => tempfile::tempdir_in(dir)
            .map_err(|error| Failure::usage("--dir <DIR>", dir.display(), error))?,
        None => temporary_dir()?,
    };
    // Of most lives. The others have one in the server's process.
    let mut context = driver_context()?;
    context.set_dir(root.path().join("driver"))?;
    let driver = MediaDriver::launch(context)?;
    let mut campaign = Campaign {
        options,
        has_java,
        interrupt,
        root: root.path(),
        driver: &driver,
        random: Random::new(seed),
        session_id: 0,
        kills: 0,
        start: Instant::now(),
        damage: options.sabotage,
        report: Report::new(seed, &CONDITIONS, FIGURES),
    };
    if !has_java {
        campaign.report.skipped_faults.push("ArchiveTool: no Java".to_owned());
    }
    let mut number = 0;
    while !campaign.is_over() {
        let dir = root.path().join(format!("archive-{number}"));
        campaign.run_directory(&dir)?;
        if campaign.report.violations() > 0 {
            break;
        }
        fs::remove_dir_all(&dir).map_err(|error| Failure::run(dir.display(), error))?;
        number += 1;
    }
    let Campaign { mut report, start, .. } = campaign;
    report.elapsed = start.elapsed();
    drop(driver);
    if report.violations() > 0 && options.sabotage.is_none() {
        println!("Data of the servers: {}", root.keep().display());
    }
    report.finish(json)
}

struct Campaign<'a> {
    options: &'a ArchiveOptions,
    has_java: bool,
    interrupt: ShutdownSignal,
    root: &'a Path,
    driver: &'a MediaDriver,
    random: Random,
    /// The last one that was given to a publication.
    session_id: i32,
    kills: u64,
    start: Instant,
    /// What is still to be damaged.
    damage: Option<Damage>,
    report: Report,
}

impl Campaign<'_> {
    fn is_over(&self) -> bool {
        self.interrupt.is_signalled()
            || self.start.elapsed() >= self.options.duration
            || self.options.kills.is_some_and(|kills| self.kills >= kills)
    }

    /// Kills servers of one directory, and checks all recordings in the end.
    fn run_directory(&mut self, dir: &Path) -> Result<(), Failure> {
        let mut streams: Vec<_> = (0..self.options.streams.into()).map(Stream::new).collect();
        let checksum = self.random.percent(50);
        let last = self.kills + KILLS_OF_DIRECTORY;
        while self.kills < last && !self.is_over() {
            let plan = Plan::choose(&mut self.random, streams.len());
            self.kills += 1;
            if let (Some(copy), true) = (plan.copy, dir.exists()) {
                restore_copy(copy, dir)?;
                self.report.add("restored copies", 1);
            }
            let outcome = self.run_life(plan, dir, checksum, &mut streams)?;
            let name = match plan.with_driver {
                true => "kills of archive and driver",
                false => "kills of the archive",
            };
            self.report.add(name, 1);
            if let Err(Fault(name, text)) = outcome {
                self.report.violation(name, 1, &format!("life {}, {plan:?}: {text}", self.kills));
                return Ok(());
            }
            if let Some(damage) = self.damage {
                let is_done = damage_recording(damage, dir, &streams[0])
                    .map_err(|error| Failure::run("cannot damage a recording", error))?;
                self.damage = self.damage.filter(|_| !is_done);
            }
        }
        let count: usize = streams.iter().map(|stream| stream.recordings().len()).sum();
        self.report.add("recordings", count as u64);
        if let Err(Fault(name, text)) = self.finish(dir, checksum, &mut streams)? {
            self.report.violation(name, 1, &format!("after life {}: {text}", self.kills));
        }
        Ok(())
    }

    fn run_life(
        &mut self,
        plan: Plan,
        dir: &Path,
        checksum: bool,
        streams: &mut [Stream],
    ) -> Result<Result<(), Fault>, Failure> {
        let options = self.server_options(plan, dir, checksum);
        let mut server = Server::start(&options)?;
        let session_id = &mut self.session_id;
        let mut life = Life {
            number: self.kills,
            plan,
            session_ids: &mut || {
                *session_id += 1;
                *session_id
            },
            server: &options,
            deadline: self.options.deadline,
            report: &mut self.report,
        };
        Ok(life.run(&mut server, streams))
    }

    fn server_options(&self, plan: Plan, dir: &Path, checksum: bool) -> ServerOptions {
        let Plan { with_driver, sync_level, dedicated, .. } = plan;
        ServerOptions {
            archive_dir: dir.to_owned(),
            aeron_dir: match with_driver {
                true => self.root.join("driver-of-archive"),
                false => self.driver.aeron_dir().to_owned(),
            },
            // Each life has another one, and none is that of a control stream.
            events_stream_id: 1000 + self.kills as i32,
            with_driver,
            sync_level,
            checksum,
            dedicated,
        }
    }

    /// Checks all recordings with a server that ends in order, and with Java's tool.
    fn finish(
        &mut self,
        dir: &Path,
        checksum: bool,
        streams: &mut [Stream],
    ) -> Result<Result<(), Fault>, Failure> {
        let mut plan = Plan::choose(&mut self.random, streams.len());
        plan.with_driver = false;
        let mut server = Server::start(&self.server_options(plan, dir, checksum))?;
        Ok(self.check_all(&mut server, streams).and_then(|()| {
            server.end().map_err(|text| Fault("crashed", text))?;
            self.verify(dir, checksum, streams)
        }))
    }

    fn check_all(&mut self, server: &mut Server, streams: &mut [Stream]) -> Result<(), Fault> {
        let ready = server.await_ready(None, self.options.deadline);
        let time = ready.map_err(|text| Fault("refused to start", text))?;
        if let Some(time) = time {
            self.report.time("restart of archive", time);
        }
        let aeron = Aeron::connect(context(self.driver.aeron_dir()))?;
        let session = Session::connect(&aeron, self.kills as i32, DEADLINE, &|| false)?;
        for (stream, session) in streams.iter_mut().zip(session.iter().cycle()) {
            let count = stream.check(session.archive(), true, &|| false)?;
            self.report.add("messages checked", count as u64);
        }
        Ok(())
    }

    /// Lets Java's tool verify everything.
    fn verify(&mut self, dir: &Path, checksum: bool, streams: &[Stream]) -> Result<(), Fault> {
        if !self.has_java {
            return Ok(());
        }
        let fault = |text: String| Fault("refused by ArchiveTool", text);
        let (script, dir) = (java_run(), dir.to_string_lossy());
        let mut command = command(
            &script.to_string_lossy(),
            ["io.aeron.archive.ArchiveTool", &dir, "verify", "-a"],
        );
        if checksum {
            command.args(["-checksum", "io.aeron.archive.checksum.Crc32"]);
        }
        // For Agrona's CRC-32.
        let options = "--add-opens=java.base/java.util.zip=ALL-UNNAMED";
        command.env("RUSTERON_JAVA_OPTIONS", options);
        let (status, text) = answer_no(command).map_err(|error| fault(error.to_string()))?;
        let is_valid = |id: i64| text.contains(&format!("(recordingId={id}) OK"));
        let mut ids = streams.iter().flat_map(Stream::recordings).map(Recording::id);
        if !status.success() || !ids.all(is_valid) || text.contains("ERR") {
            return Err(fault(format!("{status}: {text}")));
        }
        self.report.add("directories verified by Java", 1);
        Ok(())
    }
}

/// Runs a program, and answers no to all that it asks. The tool asks whether to cut off a last message with a page of
/// zeros, however the recording has ended.
fn answer_no(mut command: Command) -> std::io::Result<(ExitStatus, String)> {
    const QUESTION: &[u8] = b"(n) to do nothing:";
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let mut text = Vec::new();
    if let (Some(mut stdin), Some(stdout)) = (stdin, stdout) {
        // One by one: each question has a reader of its own, which takes everything that is there.
        for byte in BufReader::new(stdout).bytes() {
            text.push(byte?);
            if text.ends_with(QUESTION) {
                stdin.write_all(b"n\n")?;
            }
        }
    }
    Ok((child.wait()?, String::from_utf8_lossy(&text).into_owned()))
}

/// Replaces the directory of a server that was killed by a copy, as an operator would who moves to
/// another disk.
fn restore_copy(mode: CopyMode, dir: &Path) -> Result<(), Failure> {
    let copy = dir.with_extension("copy");
    let cannot = |error| Failure::run("cannot copy the archive's directory", error);
    let output =
        Command::new("cp").args(mode.arguments()).args([dir, &copy]).output().map_err(cannot)?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::Run(format!("cannot copy the archive's directory: {text}")));
    }
    fs::remove_dir_all(dir).map_err(cannot)?;
    fs::rename(&copy, dir).map_err(cannot)
}

/// Damages what was announced of a stream's recording, if there is something.
fn damage_recording(damage: Damage, dir: &Path, stream: &Stream) -> std::io::Result<bool> {
    let Some(recording) = stream.recordings().last() else { return Ok(false) };
    let Some(position) = recording.payload() else { return Ok(false) };
    let (path, base) = segment_of(dir, recording.id(), position)?;
    let mut file = fs::File::options().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    match damage {
        Damage::Cut => {
            file.set_len(0)?;
            file.set_len(length)?;
        }
        Damage::Change => {
            let (offset, mut byte) = (SeekFrom::Start((position - base) as u64), [0]);
            file.seek(offset)?;
            file.read_exact(&mut byte)?;
            file.seek(offset)?;
            file.write_all(&[!byte[0]])?;
        }
    }
    Ok(true)
}

/// Returns the segment file with a position, and the file's first position.
fn segment_of(dir: &Path, id: i64, position: i64) -> std::io::Result<(PathBuf, i64)> {
    let prefix = format!("{id}-");
    let base_of = |path: &Path| {
        let name = path.file_name()?.to_str()?.strip_prefix(&prefix)?.strip_suffix(".rec")?;
        name.parse::<i64>().ok().filter(|base| *base <= position)
    };
    let paths = fs::read_dir(dir)?.filter_map(|entry| entry.ok().map(|entry| entry.path()));
    let segments = paths.filter_map(|path| base_of(&path).map(|base| (path, base)));
    segments.max_by_key(|(_, base)| *base).ok_or_else(|| std::io::ErrorKind::NotFound.into())
}
