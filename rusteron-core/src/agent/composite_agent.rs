//! Several agents as one.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::agent::{Agent, AgentError, role_name};
use crate::panic;

/// Several agents that share a thread, as one agent.
///
/// The members are a tuple of up to eight agents, whose calls the compiler can inline, or a `Vec`
/// of agents of one type, such as `Box<dyn Agent + Send>`. Members start, work, close and are
/// dropped in this order.
///
/// - If the work of a member fails, the next duty cycle begins with the member after it. So a
///   member that always fails does not starve the others.
/// - A member's [request to end](AgentError::terminate) ends the whole composite.
/// - Every member is started and closed, even if another member fails or panics. The first error
///   [holds](AgentError::suppressed) the others. A panic continues after the last member, and the
///   errors beside it are logged.
///
/// ```
/// use rusteron_client::agent::{Agent, CompositeAgent};
/// # use rusteron_client::agent::AgentError;
/// # struct Named(&'static str);
/// # impl Agent for Named {
/// #     fn do_work(&mut self) -> Result<usize, AgentError> {
/// #         Ok(1)
/// #     }
/// #     fn role_name(&self) -> &str {
/// #         self.0
/// #     }
/// # }
/// # let (quotes, orders) = (|| Named("quotes"), || Named("orders"));
///
/// let fixed = CompositeAgent::new((quotes(), orders()));
/// assert_eq!(fixed.role_name(), "[quotes,orders]");
///
/// let chosen_at_run_time: Vec<Box<dyn Agent + Send>> = vec![Box::new(quotes()), Box::new(orders())];
/// let dynamic = CompositeAgent::new(chosen_at_run_time);
/// assert_eq!(dynamic.role_name(), "[quotes,orders]");
/// ```
///
/// Corresponds to Agrona's `CompositeAgent`.
#[must_use = "an agent works only where it is called"]
pub struct CompositeAgent<M> {
    members: M,
    /// The member whose turn is next. Not the first member after a failure.
    next: usize,
    role_name: String,
}

/// The members of a [`CompositeAgent`].
///
/// Sealed: implemented by tuples of one to eight agents, and by `Vec`s of agents.
pub trait Members: sealed::Members {}

impl<M: sealed::Members> Members for M {}

mod sealed {
    use super::*;

    pub trait Members {
        /// Runs the duty cycles of the members from `next` on, and advances `next`.
        fn do_work(&mut self, next: &mut usize) -> Result<usize, AgentError>;

        fn for_each(&mut self, action: &mut dyn FnMut(&mut dyn Agent));
    }
}

impl<M: Members> CompositeAgent<M> {
    /// Makes one agent of the members. Its role name lists theirs: `[first,second]`.
    pub fn new(mut members: M) -> Self {
        let mut names = Vec::new();
        sealed::Members::for_each(&mut members, &mut |agent| {
            names.push(agent.role_name().to_owned());
        });
        let role_name = format!("[{}]", names.join(","));
        Self { members, next: 0, role_name }
    }

    /// Returns the members.
    pub fn members(&self) -> &M {
        &self.members
    }
}

impl<M: Members> Agent for CompositeAgent<M> {
    fn on_start(&mut self) -> Result<(), AgentError> {
        for_all(&mut self.members, |agent| agent.on_start())
    }

    #[inline]
    fn do_work(&mut self) -> Result<usize, AgentError> {
        self.members.do_work(&mut self.next)
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        for_all(&mut self.members, |agent| agent.on_close())
    }

    fn role_name(&self) -> &str {
        &self.role_name
    }
}

crate::impl_debug!([M: Members] CompositeAgent<M>: role_name);

/// Runs a step of all members, whatever happens to one of them.
fn for_all(
    members: &mut impl Members,
    step: fn(&mut dyn Agent) -> Result<(), AgentError>,
) -> Result<(), AgentError> {
    let mut failure: Option<AgentError> = None;
    let mut panicked: Option<Box<dyn Any + Send>> = None;
    members.for_each(&mut |agent| match catch_unwind(AssertUnwindSafe(|| step(agent))) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let error = error.in_role(&role_name(agent));
            failure = Some(match failure.take() {
                Some(first) => first.and(error),
                None => error,
            });
        }
        Err(payload) if panicked.is_none() => panicked = Some(payload),
        Err(payload) => {
            let message = panic::into_text(payload);
            let log = || log::error!("agent {} panicked: {message}", role_name(agent));
            // A panic of the logger must not keep the other members from their step.
            let _ = panic::catch(log);
        }
    });
    if let Some(payload) = panicked {
        if let Some(error) = failure {
            let _ = panic::catch(move || log::error!("{error}"));
        }
        resume_unwind(payload);
    }
    failure.map_or(Ok(()), Err)
}

#[inline]
fn work(agent: &mut impl Agent) -> Result<usize, AgentError> {
    agent.do_work().map_err(|error| error.in_role(agent.role_name()))
}

impl<A: Agent> sealed::Members for Vec<A> {
    #[inline]
    fn do_work(&mut self, next: &mut usize) -> Result<usize, AgentError> {
        let mut work_count = 0;
        while let Some(agent) = self.get_mut(*next) {
            *next += 1;
            work_count += work(agent)?;
        }
        *next = 0;
        Ok(work_count)
    }

    fn for_each(&mut self, action: &mut dyn FnMut(&mut dyn Agent)) {
        self.iter_mut().for_each(|agent| action(agent));
    }
}

macro_rules! members {
    ($($agent:ident $index:tt),+) => {
        impl<$($agent: Agent),+> sealed::Members for ($($agent,)+) {
            #[inline]
            fn do_work(&mut self, next: &mut usize) -> Result<usize, AgentError> {
                let mut work_count = 0;
                $(
                    if *next <= $index {
                        *next = $index + 1;
                        work_count += work(&mut self.$index)?;
                    }
                )+
                *next = 0;
                Ok(work_count)
            }

            fn for_each(&mut self, action: &mut dyn FnMut(&mut dyn Agent)) {
                $(action(&mut self.$index);)+
            }
        }
    };
}

members!(A 0);
members!(A 0, B 1);
members!(A 0, B 1, C 2);
members!(A 0, B 1, C 2, D 3);
members!(A 0, B 1, C 2, D 3, E 4);
members!(A 0, B 1, C 2, D 3, E 4, F 5);
members!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
members!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);
