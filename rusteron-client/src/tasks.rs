//! Messages between the thread that polls and tasks of an async runtime.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rusteron_core::agent::{Agent, AgentError};

use crate::publication::Publisher;
use crate::subscription::{Header, Subscription};

/// Greatest number of fragments in a duty cycle.
const FRAGMENT_LIMIT: usize = 10;

/// The messages between an agent and a task. Only the task waits.
struct Queue<T>(Mutex<State<T>>);

struct State<T> {
    messages: VecDeque<T>,
    /// The number of messages that the agent has taken, and not offered yet.
    taken: usize,
    capacity: usize,
    is_closed: bool,
    /// Set when the agent has discarded a message.
    has_lost: bool,
    /// The task that waits.
    waker: Option<Waker>,
}

impl<T> Queue<T> {
    fn new(capacity: NonZeroUsize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            messages: VecDeque::new(),
            taken: 0,
            capacity: capacity.get(),
            is_closed: false,
            has_lost: false,
            waker: None,
        })))
    }

    /// Changes the state as the agent, and wakes the task if the change returns true.
    fn change<R>(&self, change: impl FnOnce(&mut State<T>) -> (bool, R)) -> R {
        let mut state = self.lock();
        let (has_news, result) = change(&mut state);
        let waker = if has_news { state.waker.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        result
    }

    /// Asks for an outcome as the task, which is woken at the agent's next change if there is none.
    fn poll<R>(
        &self,
        context: &Context<'_>,
        outcome: impl FnOnce(&mut State<T>) -> Option<R>,
    ) -> Poll<R> {
        let mut state = self.lock();
        match outcome(&mut state) {
            Some(result) => Poll::Ready(result),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn close(&self) {
        self.change(|state| (true, state.is_closed = true));
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No step leaves the state half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    fn unsent(&self) -> usize {
        self.messages.len() + self.taken
    }
}

/// One end of a queue. Dropping it closes the queue.
struct End<T>(Arc<Queue<T>>);

impl<T> Drop for End<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// An agent that polls a subscription for a task.
///
/// The agent polls only as many fragments as its queue has room for. When the task is slow, messages stay in the log
/// buffer; when that is full, publishers get [`BackPressured`](crate::OfferError::BackPressured) over IPC, and are held up
/// by flow control over UDP. Nothing is dropped.
///
/// The agent ends with the error of a poll, and requests its end when the [`TaskReceiver`] has been dropped.
///
/// ```
/// use std::num::NonZeroUsize;
///
/// use rusteron_client::agent::{AgentRunner, CompositeAgent};
/// use rusteron_client::{ExclusivePublication, PublicationAgent, Subscription, SubscriptionAgent};
///
/// async fn echo(
///     subscription: Subscription,
///     publication: ExclusivePublication,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     const CAPACITY: NonZeroUsize = NonZeroUsize::new(64).unwrap();
///     let (polling, mut incoming) =
///         SubscriptionAgent::new(subscription, CAPACITY, |message, _| message.to_vec());
///     let (offering, mut outgoing) = PublicationAgent::new(publication, CAPACITY);
///     // One thread for both.
///     let _runner = AgentRunner::builder(CompositeAgent::new((polling, offering))).start()?;
///     while let Some(message) = incoming.recv().await {
///         outgoing.send(message).await?;
///     }
///     Ok(())
/// }
/// ```
pub struct SubscriptionAgent<T, F> {
    subscription: Subscription,
    convert: F,
    polled: Vec<T>,
    queue: End<T>,
}

impl<T, F: FnMut(&[u8], &Header<'_>) -> T> SubscriptionAgent<T, F> {
    /// Makes the agent, and the receiver of its messages. The queue between them has room for `capacity` messages.
    ///
    /// Aeron lends a message for the call of `convert` only, which makes the value that the task gets: a copy, or what
    /// it decodes. `convert` runs on the agent's thread.
    pub fn new(
        subscription: Subscription,
        capacity: NonZeroUsize,
        convert: F,
    ) -> (Self, TaskReceiver<T>) {
        let queue = Queue::new(capacity);
        let receiver = TaskReceiver(End(Arc::clone(&queue)));
        (Self { subscription, convert, polled: Vec::new(), queue: End(queue) }, receiver)
    }
}

impl<T, F: FnMut(&[u8], &Header<'_>) -> T> Agent for SubscriptionAgent<T, F> {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        let Self { subscription, convert, polled, queue: End(queue) } = self;
        let (is_closed, room) = queue.change(|state| {
            // Messages that an earlier call converted before `convert` panicked come first.
            let has_news = !polled.is_empty();
            state.messages.extend(polled.drain(..));
            // Only this agent adds messages, so the room does not shrink.
            let room = state.capacity.saturating_sub(state.messages.len());
            (has_news, (state.is_closed, room))
        });
        if is_closed {
            return Err(AgentError::terminate());
        }
        if room == 0 {
            return Ok(0);
        }
        // The task is not kept from the queue while messages are converted. A fragment completes one message at most.
        let handler = |message: &[u8], header: &Header<'_>| polled.push(convert(message, header));
        let result = subscription.poll(handler, room.min(FRAGMENT_LIMIT));
        if !polled.is_empty() {
            queue.change(|state| (true, state.messages.extend(polled.drain(..))));
        }
        Ok(result?)
    }

    fn role_name(&self) -> &str {
        "subscription"
    }
}

/// Receives the messages of a [`SubscriptionAgent`] in a task. With the feature `futures`, it is a `Stream`.
pub struct TaskReceiver<T>(End<T>);

impl<T> TaskReceiver<T> {
    /// Returns the next message, or `None` if the agent has ended and all messages have been received.
    ///
    /// Cancel safe: dropping the future loses no message.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// Returns the next message if there is one, as [`recv`](Self::recv) does. Otherwise the context's task is woken when
    /// there is.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.0.poll(context, |state| match state.messages.pop_front() {
            None if !state.is_closed => None,
            message => Some(message),
        })
    }
}

/// An agent that offers the messages of a task to a publication.
///
/// A message that is rejected for now, under back pressure or without a subscriber, stays in the queue. When the queue is
/// full, the task waits. The agent ends with the error of an offer; the message that caused it is lost, such as one that is
/// too long.
///
/// When the [`TaskSender`] has been dropped, the agent still offers what is in the queue. The messages that are there when
/// the agent is dropped are lost: [flush](TaskSender::flush) before closing its runner.
pub struct PublicationAgent<P, M> {
    publication: P,
    /// Offered and dropped without the queue's lock, so that the task is not kept from the queue.
    taken: VecDeque<M>,
    queue: End<M>,
}

impl<P: Publisher, M: AsRef<[u8]>> PublicationAgent<P, M> {
    /// Makes the agent, and the sender of its messages. The queue between them has room for `capacity` messages.
    pub fn new(publication: P, capacity: NonZeroUsize) -> (Self, TaskSender<M>) {
        let queue = Queue::new(capacity);
        let sender = TaskSender(Arc::clone(&queue));
        (Self { publication, taken: VecDeque::new(), queue: End(queue) }, sender)
    }
}

impl<P: Publisher, M: AsRef<[u8]>> Agent for PublicationAgent<P, M> {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        let Self { publication, taken, queue: End(queue) } = self;
        if taken.is_empty() {
            let mut state = queue.lock();
            mem::swap(&mut state.messages, taken);
            state.taken = taken.len();
        }
        let mut work_count = 0;
        let mut result = Ok(());
        while let (Some(message), Ok(())) = (taken.front(), &result) {
            match publication.offer(message.as_ref()) {
                Err(error) if error.is_retryable() => break,
                Err(error) => result = Err(error),
                Ok(_) => work_count += 1,
            }
            taken.pop_front();
        }
        if work_count > 0 || result.is_err() {
            queue.change(|state| {
                state.taken = taken.len();
                state.has_lost |= result.is_err();
                (true, ())
            });
        }
        result?;
        Ok(work_count)
    }

    fn role_name(&self) -> &str {
        "publication"
    }
}

/// Sends messages to a [`PublicationAgent`] from a task. With the feature `futures`, it is a `Sink`.
///
/// An accepted message is in the queue, and not yet in the log buffer.
pub struct TaskSender<M>(Arc<Queue<M>>);

impl<M> TaskSender<M> {
    /// Sends a message. Waits while the queue is full.
    ///
    /// # Errors
    /// [`AgentEnded`]; the message is lost.
    pub async fn send(&mut self, message: M) -> Result<(), AgentEnded> {
        poll_fn(|context| self.poll_room(context)).await?;
        self.push(message)
    }

    /// Waits until the publication has accepted all messages.
    ///
    /// # Errors
    /// [`AgentEnded`] if a message was lost, with the agent or by the error that ends it.
    pub async fn flush(&mut self) -> Result<(), AgentEnded> {
        poll_fn(|context| self.poll_empty(context)).await
    }

    fn poll_room(&self, context: &Context<'_>) -> Poll<Result<(), AgentEnded>> {
        self.0.poll(context, |state| match state.is_closed {
            true => Some(Err(AgentEnded)),
            false => (state.unsent() < state.capacity).then_some(Ok(())),
        })
    }

    fn poll_empty(&self, context: &Context<'_>) -> Poll<Result<(), AgentEnded>> {
        self.0.poll(context, |state| match state.unsent() {
            _ if state.has_lost => Some(Err(AgentEnded)),
            0 => Some(Ok(())),
            _ => state.is_closed.then_some(Err(AgentEnded)),
        })
    }

    fn push(&self, message: M) -> Result<(), AgentEnded> {
        let mut state = self.0.lock();
        if state.is_closed {
            return Err(AgentEnded);
        }
        state.messages.push_back(message);
        Ok(())
    }
}

/// The agent behind a [`TaskSender`] has ended. Closing its runner returns the reason.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AgentEnded;

impl fmt::Display for AgentEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the agent that offers messages has ended; closing its runner returns the reason",
        )
    }
}

rusteron_core::debug_as_display!(AgentEnded);

impl std::error::Error for AgentEnded {}

#[cfg(feature = "futures")]
impl<T> futures_core::Stream for TaskReceiver<T> {
    type Item = T;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.poll_recv(context)
    }
}

/// Closing flushes.
#[cfg(feature = "futures")]
impl<M> futures_sink::Sink<M> for TaskSender<M> {
    type Error = AgentEnded;

    fn poll_ready(
        self: std::pin::Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), AgentEnded>> {
        self.poll_room(context)
    }

    fn start_send(self: std::pin::Pin<&mut Self>, message: M) -> Result<(), AgentEnded> {
        self.push(message)
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), AgentEnded>> {
        self.poll_empty(context)
    }

    fn poll_close(
        self: std::pin::Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), AgentEnded>> {
        self.poll_empty(context)
    }
}

impl<T, F> fmt::Debug for SubscriptionAgent<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionAgent")
            .field("subscription", &self.subscription)
            .finish_non_exhaustive()
    }
}

impl<P: fmt::Debug, M> fmt::Debug for PublicationAgent<P, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicationAgent")
            .field("publication", &self.publication)
            .finish_non_exhaustive()
    }
}

rusteron_core::impl_debug!([T] TaskReceiver<T>);
rusteron_core::impl_debug!([M] TaskSender<M>);
