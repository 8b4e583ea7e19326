//! A resource of the Aeron client that is being added.

use std::fmt;
use std::time::Instant;

use rusteron_client::{
    Aeron, Backoff, Counter, Error, ErrorKind, ExclusivePublication, IdleStrategy, Registration,
    Resource, Result, UncheckedChannel,
};

use crate::counters::CounterLayout;

/// A resource that is being added, again and again while the media driver is temporarily unable: for a while after a
/// stream has ended, its sockets are still closing.
pub(crate) struct Adding<R: Resource> {
    begin: Box<Begin<R>>,
    registration: Option<Registration<R>>,
}

type Begin<R> = dyn Fn(&Aeron) -> Result<Registration<R>> + Send;

impl<R: Resource> Adding<R> {
    /// `begin` is called by [`poll`](Self::poll), once or more.
    pub(crate) fn new(begin: impl Fn(&Aeron) -> Result<Registration<R>> + Send + 'static) -> Self {
        Self { begin: Box::new(begin), registration: None }
    }

    /// Returns the resource once it is there. Does not block. Dropping this cancels a request.
    pub(crate) fn poll(&mut self, aeron: &Aeron) -> Result<Option<R>> {
        match self.attempt(aeron) {
            Err(error) if error.is_retryable() => {
                self.registration = None;
                Ok(None)
            }
            outcome => outcome,
        }
    }

    fn attempt(&mut self, aeron: &Aeron) -> Result<Option<R>> {
        let registration = match &mut self.registration {
            Some(registration) => registration,
            None => self.registration.insert((self.begin)(aeron)?),
        };
        registration.poll()
    }
}

impl Adding<Counter> {
    pub(crate) fn counter(layout: CounterLayout) -> Self {
        let CounterLayout { type_id, key, label } = layout;
        Self::new(move |aeron| aeron.async_add_counter(type_id, &key, &label))
    }
}

impl Adding<ExclusivePublication> {
    pub(crate) fn publication(channel: String, stream_id: i32) -> Self {
        Self::new(move |aeron| {
            aeron.async_add_exclusive_publication(UncheckedChannel(&channel), stream_id)
        })
    }
}

impl<R: Resource> fmt::Debug for Adding<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adding").field("registration", &self.registration).finish_non_exhaustive()
    }
}

/// Returns what a client is told if the driver refuses a resource: the reason, then the driver's number as Java's client
/// writes it.
pub(crate) fn refusal(error: &Error) -> String {
    let number = match (error.code(), error.kind()) {
        // Numbers of the driver are negative here.
        (code @ ..0, _) => code.unsigned_abs(),
        // The client has refused what the driver would refuse.
        (_, ErrorKind::InvalidChannel) => 1,
        _ => return error.to_string(),
    };
    format!("{error}, errorCodeValue={number}")
}

/// Adds resources at once, and waits for all of them, which it returns in order. Does the client's work meanwhile.
///
/// # Errors
/// The first error, or [`ErrorKind::DriverTimeout`] if the media driver is unable for twice the driver timeout.
pub(crate) fn await_all<R: Resource>(
    aeron: &Aeron,
    adding: impl IntoIterator<Item = Adding<R>>,
) -> Result<Vec<R>> {
    let deadline = Instant::now() + 2 * aeron.context().driver_timeout();
    let mut idle = Backoff::default();
    let mut adding: Vec<_> = adding.into_iter().enumerate().collect();
    let mut added = Vec::new();
    loop {
        for (index, outcome) in poll_all(aeron, &mut adding) {
            added.push((index, outcome?));
        }
        if adding.is_empty() {
            break;
        }
        if Instant::now() >= deadline {
            let text = "the media driver is still closing an earlier stream of the same channel";
            return Err(Error::new(ErrorKind::DriverTimeout, text));
        }
        idle.idle(aeron.do_work()?);
    }
    added.sort_by_key(|(index, _)| *index);
    Ok(added.into_iter().map(|(_, resource)| resource).collect())
}

/// Goes on with all that are being added, and takes out those that have an outcome.
pub(crate) fn poll_all<T, R: Resource>(
    aeron: &Aeron,
    adding: &mut Vec<(T, Adding<R>)>,
) -> Vec<(T, Result<R>)> {
    let mut outcomes = Vec::new();
    let mut index = 0;
    while let Some((_, request)) = adding.get_mut(index) {
        match request.poll(aeron).transpose() {
            Some(outcome) => outcomes.push((adding.remove(index).0, outcome)),
            None => index += 1,
        }
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use rusteron_client::Context;

    use super::*;

    fn layout(number: usize) -> CounterLayout {
        CounterLayout { type_id: 1001, key: Vec::new(), label: number.to_string() }
    }

    #[test]
    fn all_are_added_in_order() {
        let driver = rusteron_test_support::launch();
        let mut context = Context::new().expect("a context");
        context
            .set_dir(driver.aeron_dir())
            .and_then(|context| context.set_use_conductor_agent_invoker(true))
            .expect("settings");
        let aeron = Aeron::connect(context).expect("a client");
        let counters =
            await_all(&aeron, [0, 1, 2, 3].map(|number| Adding::counter(layout(number))));
        for (number, counter) in counters.expect("counters").iter().enumerate() {
            let label = aeron.counters_reader().label(counter.counter_id());
            assert_eq!(label, Some(number.to_string()));
        }
        let wrong = Adding::publication("aeron:udp?endpoint=localhost".to_owned(), 1);
        let error = await_all(&aeron, [wrong]).expect_err("no port");
        assert_ne!(error.kind(), ErrorKind::DriverTimeout, "{error}");
        let text = refusal(&error);
        assert!(text.ends_with(", errorCodeValue=11"), "{text}");
        assert_eq!(refusal(&Error::new(ErrorKind::Other, "a reason")), "error: a reason");
    }
}
