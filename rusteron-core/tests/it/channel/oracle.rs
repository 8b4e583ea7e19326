//! A driver as the oracle of channels. Each case names the fault of a channel for a publication and
//! for a subscription, if there is a fault. The driver gets the text unchecked and has to refuse
//! it. [`ChannelUri`] may find the fault as well, and never another one. It has to refuse misspelt
//! values, which the driver accepts.

use std::sync::atomic::{AtomicU32, Ordering};

use rusteron_client::{Aeron, Registration, Resource};
use rusteron_core::channel::{
    ChannelUri, ChannelUriError, ChannelUriErrorKind, Parameter, UncheckedChannel,
};
use rusteron_core::error::{Error, ErrorKind};
use rusteron_test_support::{await_some, connect, free_port, launch};

/// The verdict on a channel for one use: fine, a fault, which is a key or a kind, or a value that
/// only the client refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    Key(&'static str),
    /// The driver ignores the value, or a part of it.
    Misspelt(&'static str),
    Fault(ChannelUriErrorKind),
}

impl Verdict {
    fn of(result: Result<(), &ChannelUriError>, expected: Self) -> Self {
        let Err(error) = result else { return Fine };
        let key = error.parameter().map_or("(none)", Parameter::key);
        match expected {
            Self::Fault(_) => Self::Fault(error.kind()),
            Self::Misspelt(_) => Self::Misspelt(key),
            _ => Self::Key(key),
        }
    }
}

pub(crate) use Verdict::Fine;

pub(crate) const SCHEME: Verdict = Verdict::Fault(ChannelUriErrorKind::Scheme);
pub(crate) const LENGTH: Verdict = Verdict::Fault(ChannelUriErrorKind::Length);
pub(crate) const SYNTAX: Verdict = Verdict::Fault(ChannelUriErrorKind::Syntax);
pub(crate) const SPY: Verdict = Verdict::Fault(ChannelUriErrorKind::Spy);

/// A case: the channel, the verdict for publications, the verdict for subscriptions. `{port}` and
/// `{hex-port}` stand for a port that is free and `{tag}` for a tag, others for each resource.
pub(crate) type Case = (String, Verdict, Verdict);

pub(crate) fn case(channel: &str, publication: Verdict, subscription: Verdict) -> Case {
    (channel.to_owned(), publication, subscription)
}

pub(crate) fn both(channel: &str, verdict: Verdict) -> Case {
    case(channel, verdict, verdict)
}

pub(crate) fn key(key: &'static str) -> Verdict {
    Verdict::Key(key)
}

pub(crate) fn misspelt(key: &'static str) -> Verdict {
    Verdict::Misspelt(key)
}

/// Asks an oracle about every case, and compares.
pub(crate) fn consult(cases: &[Case]) {
    let driver = launch();
    let mut oracle = Oracle::new(connect(&driver));
    for case in cases {
        oracle.consult(case);
    }
    oracle.conclude();
}

/// A driver that is asked about each case, and the cases where it disagrees with the verdict.
struct Oracle {
    aeron: Aeron,
    stream_id: i32,
    pending: Vec<Pending>,
    answered: usize,
    disagreements: Vec<String>,
}

impl Oracle {
    /// Number of questions before the oracle awaits the answers.
    const BATCH: usize = 48;

    fn new(aeron: Aeron) -> Self {
        let (pending, disagreements) = (Vec::new(), Vec::new());
        Self { aeron, stream_id: 0, pending, answered: 0, disagreements }
    }

    fn consult(&mut self, (channel, publication, subscription): &Case) {
        let check = ChannelUri::check_publication;
        self.ask("publication", channel, *publication, check, |aeron, channel, stream_id| {
            answer(aeron.async_add_publication(channel, stream_id))
        });
        self.ask(
            "exclusive publication",
            channel,
            *publication,
            check,
            |aeron, channel, stream_id| {
                answer(aeron.async_add_exclusive_publication(channel, stream_id))
            },
        );
        let check = ChannelUri::check_subscription;
        self.ask("subscription", channel, *subscription, check, |aeron, channel, stream_id| {
            answer(aeron.async_add_subscription(channel, stream_id))
        });
        if self.pending.len() >= Self::BATCH {
            self.await_answers();
        }
    }

    fn ask(
        &mut self,
        kind: &str,
        channel: &str,
        expected: Verdict,
        check: impl Fn(&ChannelUri) -> Result<(), ChannelUriError>,
        add: impl Fn(&Aeron, UncheckedChannel<'_>, i32) -> Option<Answer>,
    ) {
        self.stream_id += 1;
        let channel = with_tags(&with_ports(channel));
        let ours = channel.parse::<ChannelUri>().and_then(|uri| check(&uri));
        let Some(theirs) = add(&self.aeron, UncheckedChannel(&channel), self.stream_id) else {
            // The driver would read beyond the end of a text that does not begin as a channel, and
            // knows the prefix of spies for subscriptions only.
            let is_spy = kind != "subscription" && channel.starts_with("aeron-spy:");
            assert!(expected == SCHEME || is_spy, "{channel}: the driver was not asked");
            assert_eq!(Verdict::of(ours.as_ref().copied(), expected), expected, "{channel}");
            return;
        };
        self.pending.push(Pending { what: format!("{kind} {channel}"), expected, ours, theirs });
    }

    fn await_answers(&mut self) {
        for Pending { what, expected, ours, mut theirs } in self.pending.drain(..) {
            self.answered += 1;
            let theirs = await_some(&what, &mut theirs);
            let verdict = Verdict::of(ours.as_ref().copied(), expected);
            let is_misspelt = matches!(expected, Verdict::Misspelt(_));
            let is_ours_right = verdict == expected || ours.is_ok() && !is_misspelt;
            let is_theirs_right = theirs.is_ok() == (expected == Fine || is_misspelt);
            if !is_ours_right || !is_theirs_right {
                self.disagreements.push(format!(
                    "{what}: expected {expected:?}, we say {ours:?}, the driver says {theirs:?}"
                ));
            }
        }
    }

    fn conclude(mut self) {
        self.await_answers();
        assert!(!self.aeron.is_closed());
        assert!(
            self.disagreements.is_empty(),
            "{} of {} verdicts differ:\n{}",
            self.disagreements.len(),
            self.answered,
            self.disagreements.join("\n")
        );
    }
}

/// A case that the driver has been asked about.
struct Pending {
    what: String,
    expected: Verdict,
    ours: Result<(), ChannelUriError>,
    theirs: Answer,
}

type Answer = Box<dyn FnMut() -> Option<Result<(), Error>>>;

/// Polls a registration until there is an answer; `None` for a channel that the driver must not be
/// asked about.
fn answer<R: Resource + 'static>(registration: Result<Registration<R>, Error>) -> Option<Answer> {
    let mut registration = match registration {
        Ok(registration) => registration,
        Err(error) if error.kind() == ErrorKind::InvalidChannel => return None,
        Err(error) => panic!("{error}"),
    };
    Some(Box::new(move || match registration.poll() {
        Ok(None) => None,
        Ok(Some(_)) => Some(Ok(())),
        // The channel was fine, the machine is too small for it.
        Err(error) if error.kind() == ErrorKind::StorageSpace => Some(Ok(())),
        Err(error) => Some(Err(error)),
    }))
}

/// Replaces each `{tag}` by a tag that nothing else has.
fn with_tags(channel: &str) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1001);
    channel.replace("{tag}", &NEXT.fetch_add(1, Ordering::Relaxed).to_string())
}

/// Replaces each `{port}`, and as hexadecimal each `{hex-port}`, by a port that is free.
pub(crate) fn with_ports(channel: &str) -> String {
    let mut channel = channel.to_owned();
    while channel.contains("{port}") {
        channel = channel.replacen("{port}", &free_port().to_string(), 1);
    }
    while channel.contains("{hex-port}") {
        channel = channel.replacen("{hex-port}", &format!("{:#x}", free_port()), 1);
    }
    channel
}
