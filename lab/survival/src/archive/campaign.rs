//! The campaign: its options, its parties, its start and its end.

use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use clap::{Args, ValueEnum};
use rusteron_core::program::Failure;
use rusteron_media_driver::MediaDriver;
use rusteron_test_support::{DEADLINE, command, has_java, java_run};

use super::life::{Life, Plan, Session};
use super::server::{SEGMENT_LENGTH, Server, ServerOptions, driver_context};
use super::stream::Stream;
use crate::campaign::{Campaign, CommonOptions, Defaults, Frame};
use crate::report::Finding;

pub(crate) const NAME: &str = "archive";

const DEFAULTS: Defaults = Defaults {
    duration: Duration::from_secs(60),
    deadline: Duration::from_secs(60),
    results: "target/survival",
    report: "archive-survival.json",
};
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
    KILLS_OF_ARCHIVE,
    KILLS_OF_BOTH,
    "kills before a server was ready",
    "restored copies",
    "publications ended",
    "messages checked",
    "messages followed",
    "recordings",
    "directories verified by Java",
];
const KILLS_OF_ARCHIVE: &str = "kills of the archive";
const KILLS_OF_BOTH: &str = "kills of archive and driver";
/// Kills of servers with the same directory. It then has hundreds of megabytes.
const KILLS_OF_DIRECTORY: u64 = 40;

#[derive(Debug, Clone, Args)]
pub(crate) struct ArchiveOptions {
    #[command(flatten)]
    common: CommonOptions,

    /// Ends after so many kills if they come before the end of the duration [default: no limit]
    #[arg(long, value_name = "COUNT")]
    kills: Option<u64>,

    /// Number of streams that are recorded at once
    #[arg(long, default_value_t = 6, value_name = "COUNT",
          value_parser = clap::value_parser!(u16).range(1..=16))]
    streams: u16,

    /// Directory for the recordings, which are deleted in the end [default: shared memory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// Damages the first recording between a kill and the start, which the campaign must notice
    #[arg(long, hide = true, value_name = "DAMAGE")]
    sabotage: Option<Damage>,
}

/// A fault of a server, as its files would show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Damage {
    /// A segment that was announced is empty
    Cut,
    /// A byte of a message that was announced is another one
    Change,
}

/// Runs the campaign.
pub(crate) fn run(options: &ArchiveOptions) -> Result<(), Failure> {
    let mut frame = Frame::new(&options.common, &DEFAULTS, &CONDITIONS, &FIGURES)?;
    if let Some(dir) = &options.dir {
        frame.root = tempfile::tempdir_in(dir)
            .map_err(|error| Failure::usage("--dir <DIR>", dir.display(), error))?;
    }
    let has_java = has_java();
    if !has_java {
        frame.report.skipped_faults.push("ArchiveTool: no Java".to_owned());
    }
    let mut context = driver_context()?;
    context.set_dir(frame.root.path().join("driver"))?;
    let campaign = ArchiveCampaign {
        options: options.clone(),
        has_java,
        driver: MediaDriver::launch(context)?,
        session_id: 0,
        kills: 0,
        damage: options.sabotage,
        directory: None,
        frame,
    };
    campaign.run()
}

/// A directory of recordings, on which one server after the other runs.
struct Directory {
    path: PathBuf,
    streams: Vec<Stream>,
    checksum: bool,
    last_kill: u64,
}

struct ArchiveCampaign {
    options: ArchiveOptions,
    has_java: bool,
    /// The media driver that most servers use; the others have one in their own process.
    driver: MediaDriver,
    /// The last one that was given to a publication.
    session_id: i32,
    kills: u64,
    /// What is still to be damaged.
    damage: Option<Damage>,
    directory: Option<Directory>,
    frame: Frame,
}

impl Campaign for ArchiveCampaign {
    const TICK: Duration = Duration::from_millis(1);
    const ENDS_WITH_VIOLATION: bool = true;

    fn frame(&mut self) -> &mut Frame {
        &mut self.frame
    }

    fn begin(&mut self) -> Result<bool, Failure> {
        Ok(true)
    }

    fn step(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.options.kills.is_some_and(|kills| self.kills >= kills)
    }

    /// The life of a server, and the end of its directory when there were enough lives.
    fn round(&mut self) -> Result<bool, Failure> {
        let mut directory = self.directory.take().unwrap_or_else(|| self.new_directory());
        self.live(&mut directory)?;
        if self.frame.has_violations() {
            return Ok(false);
        }
        if self.kills < directory.last_kill {
            self.directory = Some(directory);
            return Ok(true);
        }
        self.finish(directory)
    }

    fn end(&mut self) -> Result<(), Failure> {
        let directory = self.directory.take();
        directory.map_or(Ok(()), |directory| self.finish(directory).map(drop))
    }

    fn complete(&mut self) -> bool {
        self.options.sabotage.is_none()
    }
}

impl ArchiveCampaign {
    fn new_directory(&mut self) -> Directory {
        Directory {
            path: self.frame.root.path().join(format!("archive-{}", self.kills)),
            streams: (0..self.options.streams.into()).map(Stream::new).collect(),
            checksum: self.frame.random.percent(50),
            last_kill: self.kills + KILLS_OF_DIRECTORY,
        }
    }

    fn live(&mut self, directory: &mut Directory) -> Result<(), Failure> {
        let plan = Plan::choose(&mut self.frame.random, directory.streams.len());
        self.kills += 1;
        if let Some(copy) = plan.copy.filter(|_| directory.path.exists()) {
            restore_copy(copy, &directory.path)?;
            self.frame.report.add("restored copies", 1);
        }
        let mut server = Server::start(self.server_options(plan, directory), self.frame.deadline)?;
        let life = Life {
            number: self.kills,
            plan,
            session_id: &mut self.session_id,
            server: &mut server,
            streams: &mut directory.streams,
            deadline: self.frame.deadline,
            report: &mut self.frame.report,
        };
        let outcome = life.run();
        let figure = if plan.with_driver { KILLS_OF_BOTH } else { KILLS_OF_ARCHIVE };
        self.frame.report.add(figure, 1);
        self.note(outcome, &format!("life {}, {plan:?}", self.kills));
        if let Some(damage) = self.damage.filter(|_| !self.frame.has_violations()) {
            let is_done = damage_recording(damage, directory)
                .map_err(|error| Failure::run("cannot damage a recording", error))?;
            self.damage = self.damage.filter(|_| !is_done);
        }
        Ok(())
    }

    fn note(&mut self, outcome: Result<(), Finding>, when: &str) {
        if let Err(Finding { condition, count, text }) = outcome {
            self.frame.report.violation(condition, count, &format!("{when}: {text}"));
        }
    }

    fn server_options(&self, plan: Plan, directory: &Directory) -> ServerOptions {
        let Plan { with_driver, sync_level, dedicated, .. } = plan;
        ServerOptions {
            archive_dir: directory.path.clone(),
            aeron_dir: match with_driver {
                true => self.frame.root.path().join("driver-of-archive"),
                false => self.driver.aeron_dir().to_owned(),
            },
            // Each life has another one, and none is that of a control stream.
            events_stream_id: 1000 + self.kills as i32,
            with_driver,
            sync_level,
            checksum: directory.checksum,
            dedicated,
        }
    }

    /// Checks all recordings with a server that ends in order, and with Java's tool. Returns
    /// whether all are right.
    fn finish(&mut self, mut directory: Directory) -> Result<bool, Failure> {
        let recordings: usize =
            directory.streams.iter().map(|stream| stream.recordings.len()).sum();
        self.frame.report.add("recordings", recordings as u64);
        let mut plan = Plan::choose(&mut self.frame.random, directory.streams.len());
        plan.with_driver = false;
        let server = Server::start(self.server_options(plan, &directory), self.frame.deadline)?;
        let outcome = self
            .check_all(server, &mut directory.streams)
            .and_then(|()| if self.has_java { self.verify(&directory) } else { Ok(()) });
        self.note(outcome, &format!("after life {}", self.kills));
        if self.frame.has_violations() {
            return Ok(false);
        }
        let path = &directory.path;
        fs::remove_dir_all(path).map_err(|error| Failure::run(path.display(), error))?;
        Ok(true)
    }

    fn check_all(&mut self, mut server: Server, streams: &mut [Stream]) -> Result<(), Finding> {
        if let Some(time) = server.await_ready()? {
            self.frame.report.time("restart of archive", time);
        }
        let session = Session::connect(&server, DEADLINE, DEADLINE)?;
        for (stream, session) in streams.iter_mut().zip(session.iter().cycle()) {
            let count = stream.check(&session.archive, true, &server)?;
            self.frame.report.add("messages checked", count as u64);
        }
        drop(session);
        server.end()
    }

    /// Lets Java's tool verify everything.
    fn verify(&mut self, directory: &Directory) -> Result<(), Finding> {
        let refused = |text: String| Finding::new("refused by ArchiveTool", text);
        let dir = directory.path.to_string_lossy();
        let arguments = ["io.aeron.archive.ArchiveTool", &dir, "verify", "-a"];
        let mut command = command(&java_run().to_string_lossy(), arguments);
        if directory.checksum {
            command.args(["-checksum", "io.aeron.archive.checksum.Crc32"]);
        }
        let (status, text) = answer_no(command).map_err(|error| refused(error.to_string()))?;
        let mut recordings = directory.streams.iter().flat_map(|stream| &stream.recordings);
        let are_valid = recordings.all(|it| text.contains(&format!("(recordingId={}) OK", it.id)));
        if !status.success() || !are_valid || text.contains("ERR") {
            return Err(refused(format!("{status}: {text}")));
        }
        self.frame.report.add("directories verified by Java", 1);
        Ok(())
    }
}

/// Runs a program, and answers no to all that it asks. The tool asks whether to cut off a last message with a page of
/// zeros, however the recording has ended.
fn answer_no(mut command: Command) -> io::Result<(ExitStatus, String)> {
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
fn restore_copy(sparse: &str, dir: &Path) -> Result<(), Failure> {
    let copy = dir.with_extension("copy");
    let cannot = |error| Failure::run("cannot copy the archive's directory", error);
    let sparse = format!("--sparse={sparse}");
    let status = Command::new("cp").args(["-a", &sparse]).args([dir, &copy]).status();
    if !status.map_err(cannot)?.success() {
        return Err(Failure::Run("cannot copy the archive's directory".to_owned()));
    }
    fs::remove_dir_all(dir).map_err(cannot)?;
    fs::rename(&copy, dir).map_err(cannot)
}

/// Damages what was announced of the first stream's recording, if there is something.
fn damage_recording(damage: Damage, directory: &Directory) -> io::Result<bool> {
    let Some(recording) = directory.streams[0].recordings.last() else { return Ok(false) };
    let Some(position) = recording.payload() else { return Ok(false) };
    let offset = position as u64 % SEGMENT_LENGTH as u64;
    let name = format!("{}-{}.rec", recording.id, position as u64 - offset);
    let file = fs::File::options().read(true).write(true).open(directory.path.join(name))?;
    match damage {
        Damage::Cut => {
            let length = file.metadata()?.len();
            file.set_len(0)?;
            file.set_len(length)?;
        }
        Damage::Change => {
            let mut byte = [0];
            file.read_exact_at(&mut byte, offset)?;
            file.write_all_at(&[!byte[0]], offset)?;
        }
    }
    Ok(true)
}
