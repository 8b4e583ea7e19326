//! The duty cycle of an agent.

use crate::agent::AgentError;
use crate::panic;

/// A duty cycle: a unit of work that is called again and again, by one thread.
///
/// An agent never waits. If there is nothing to do, it returns 0, and the caller idles. The
/// [module's documentation](crate::agent) has the order of the calls.
///
/// ```
/// use rusteron_client::agent::{Agent, AgentError};
/// use rusteron_client::{Header, Subscription};
///
/// struct Printer {
///     subscription: Subscription,
/// }
///
/// impl Agent for Printer {
///     fn do_work(&mut self) -> Result<usize, AgentError> {
///         let handler = |message: &[u8], _: &Header<'_>| println!("{} bytes", message.len());
///         Ok(self.subscription.poll(handler, 10)?)
///     }
///
///     fn role_name(&self) -> &str {
///         "printer"
///     }
/// }
/// ```
///
/// Corresponds to Agrona's `Agent`.
#[doc(alias = "org.agrona.concurrent.Agent")]
pub trait Agent {
    /// Called once, before the first duty cycle, on the thread that runs the agent.
    ///
    /// # Errors
    /// Any error ends the agent before its first duty cycle; [`on_close`](Self::on_close) follows.
    #[doc(alias = "onStart")]
    fn on_start(&mut self) -> Result<(), AgentError> {
        Ok(())
    }

    /// Does a little work, and returns its amount. 0 stands for none: the caller then idles.
    ///
    /// # Errors
    /// - [`AgentError::terminate`] ends the agent. This is no failure;
    /// - any other error is for the caller's error policy, which may call again. `?` converts
    ///   every [`std::error::Error`].
    #[doc(alias = "doWork")]
    fn do_work(&mut self) -> Result<usize, AgentError>;

    /// Called once, after the last duty cycle. Also called after an error or a panic of the other
    /// functions. The agent is dropped afterwards.
    ///
    /// # Errors
    /// Any error is reported; nothing is called again.
    #[doc(alias = "onClose")]
    fn on_close(&mut self) -> Result<(), AgentError> {
        Ok(())
    }

    /// Returns the name of the agent's role: for errors, and for the name of its thread.
    #[doc(alias = "roleName")]
    fn role_name(&self) -> &str;
}

macro_rules! forward {
    ($($pointer:ty),+) => {$(
        impl<A: Agent + ?Sized> Agent for $pointer {
            fn on_start(&mut self) -> Result<(), AgentError> {
                (**self).on_start()
            }

            #[inline]
            fn do_work(&mut self) -> Result<usize, AgentError> {
                (**self).do_work()
            }

            fn on_close(&mut self) -> Result<(), AgentError> {
                (**self).on_close()
            }

            fn role_name(&self) -> &str {
                (**self).role_name()
            }
        }
    )+};
}

forward!(Box<A>, &mut A);

/// Returns an agent's role name for an error. A panic ends here.
pub(crate) fn role_name(agent: &(impl Agent + ?Sized)) -> String {
    panic::catch(|| agent.role_name().to_owned()).unwrap_or_else(|_| "(no name)".to_owned())
}
