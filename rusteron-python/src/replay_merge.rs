//! Replays that are merged with the live stream.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use rusteron_archive as rust;

use crate::error;
use crate::exit;
use crate::message::Header;
use crate::notifier::SubscriptionSlot;
use crate::settings::Seconds;
use crate::slot::{Close, Owned, OwnedSlot, Owner, Scope};
use crate::subscription::poll_with;
use crate::wait::{self, Deadline};

/// The slots that a merge has taken its session and its subscription from.
struct Lenders {
    archive: Arc<OwnedSlot<Arc<rust::Archive>>>,
    subscription: Arc<SubscriptionSlot>,
    archive_driver: Option<Owner>,
    subscription_driver: Option<Owner>,
}

impl Lenders {
    /// Takes session and subscription from their slots.
    fn take(
        archive: &Arc<OwnedSlot<Arc<rust::Archive>>>,
        subscription: &Arc<SubscriptionSlot>,
    ) -> PyResult<(rust::Archive, rusteron_client::Subscription, Self)> {
        let (session, archive_driver) = archive.take()?.into_parts();
        let session = match Arc::try_unwrap(session) {
            Ok(session) => session,
            // Another thread's request is under way.
            Err(session) => {
                archive.put_back(Owned::from_parts(session, archive_driver));
                return Err(error::in_use("archive session"));
            }
        };
        let taken = match subscription.take() {
            Ok(taken) => taken,
            Err(error) => {
                archive.put_back(Owned::from_parts(Arc::new(session), archive_driver));
                return Err(error);
            }
        };
        let (taken, subscription_driver) = taken.into_parts();
        let lenders = Self {
            archive: Arc::clone(archive),
            subscription: Arc::clone(subscription),
            archive_driver,
            subscription_driver,
        };
        Ok((session, taken, lenders))
    }

    fn give_back(&mut self, archive: rust::Archive, subscription: rusteron_client::Subscription) {
        self.archive.put_back(Owned::from_parts(Arc::new(archive), self.archive_driver.take()));
        let driver = self.subscription_driver.take();
        self.subscription.put_back(Owned::from_parts(subscription, driver));
    }

    /// Gives back nothing: the merge has closed both.
    fn forget(&self) {
        self.archive.close();
        self.archive.release();
        self.subscription.close();
        self.subscription.release();
    }
}

/// A merge, which gives session and subscription back when it is dropped.
struct Merge {
    merge: Option<rust::ReplayMerge>,
    lenders: Lenders,
}

impl Drop for Merge {
    fn drop(&mut self) {
        let Some(merge) = self.merge.take() else { return };
        match merge.into_parts() {
            Ok((archive, subscription)) => self.lenders.give_back(archive, subscription),
            Err(error) => {
                drop(error);
                self.lenders.forget();
            }
        }
    }
}

/// A replay that is merged with the live stream.
///
/// Made by `Archive.replay_merge`. Closing it gives session and subscription back; after a merge, the subscription then
/// receives the live stream.
#[pyclass(frozen, module = "rusteron")]
pub(crate) struct ReplayMerge {
    slot: Arc<OwnedSlot<Merge>>,
}

impl ReplayMerge {
    /// Takes session and subscription, and starts the merge without the GIL. If the archive refuses, gives both back.
    pub(crate) fn start(
        py: Python<'_>,
        scope: &Scope,
        builder: rust::ReplayMergeBuilder,
        archive: &Arc<OwnedSlot<Arc<rust::Archive>>>,
        subscription: &Arc<SubscriptionSlot>,
        recording_id: i64,
    ) -> PyResult<Self> {
        let (archive, subscription, mut lenders) = Lenders::take(archive, subscription)?;
        let merge = wait::interruptible(py, move || {
            match builder.start(archive, subscription, recording_id.into()) {
                Ok(merge) => Ok(Merge { merge: Some(merge), lenders }),
                Err(refused) => {
                    let (error, archive, subscription) = refused.into_parts();
                    lenders.give_back(archive, subscription);
                    Err(error)
                }
            }
        })?
        .map_err(error::archive)?;
        Ok(Self { slot: scope.own("replay merge", merge) })
    }

    fn with<R>(&self, function: impl FnOnce(&mut rust::ReplayMerge) -> PyResult<R>) -> PyResult<R> {
        let mut entered = self.slot.enter()?;
        match entered.merge.as_mut() {
            Some(merge) => function(merge),
            None => Err(error::closed("replay merge")),
        }
    }
}

#[pymethods]
impl ReplayMerge {
    /// Works on the merge, and calls `handler(message, header)` as `Subscription.poll` does.
    ///
    /// With a timeout in seconds, repeats this without the GIL in between, until there are fragments. Returns their
    /// number.
    #[pyo3(signature = (handler, fragment_limit=10, timeout=None))]
    fn poll(
        &self,
        py: Python<'_>,
        handler: &Bound<'_, PyAny>,
        fragment_limit: usize,
        timeout: Option<Seconds>,
    ) -> PyResult<usize> {
        if fragment_limit == 0 {
            return Err(error::invalid("fragment_limit: 0; must be 1 or more"));
        }
        let attempt = || {
            self.with(|merge| {
                merge.do_work().map_err(error::archive)?;
                let Some(mut image) = merge.image() else { return Ok(None) };
                let fragments = poll_with(
                    |handler| Ok(image.controlled_poll(handler, fragment_limit)),
                    |message, header| {
                        let message = PyBytes::new(py, message);
                        exit::call(handler, (message, Bound::new(py, Header::from(header))?))?;
                        Ok(rusteron_client::Action::Continue)
                    },
                )?;
                Ok((fragments > 0).then_some(fragments))
            })
        };
        // The merge itself has to be worked on, so each idle ends with an attempt.
        wait::until(py, None, Deadline::after_optional(timeout), attempt, || true)
            .map(|found| found.unwrap_or(0))
    }

    /// Works on the merge. Returns the number of steps.
    fn do_work(&self) -> PyResult<usize> {
        self.with(|merge| merge.do_work().map_err(error::archive))
    }

    /// The step that the merge waits for: "ResolveReplayPort", "GetRecordingPosition", "Replay", "Catchup" or "AttemptLiveJoin";
    /// or its end, "Merged" or "Failed".
    #[getter]
    fn state(&self) -> PyResult<String> {
        self.with(|merge| Ok(format!("{:?}", merge.state())))
    }

    /// True if the replay has caught up, and the stream is the live stream now.
    #[getter]
    fn is_merged(&self) -> PyResult<bool> {
        self.with(|merge| Ok(merge.is_merged()))
    }

    /// True if the merge has failed for good.
    #[getter]
    fn has_failed(&self) -> PyResult<bool> {
        self.with(|merge| Ok(merge.has_failed()))
    }

    /// True if the live destination was added.
    #[getter]
    fn is_live_added(&self) -> PyResult<bool> {
        self.with(|merge| Ok(merge.is_live_added()))
    }

    /// True if the merge was closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.slot.is_closed()
    }

    /// Ends the merge, and gives session and subscription back. Does nothing if the merge is closed.
    fn close(&self) {
        self.slot.close();
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }
}
