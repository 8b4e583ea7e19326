//! A client's conductor as an agent.

use rusteron_core::agent::{Agent, AgentError};
#[cfg(doc)]
use rusteron_core::error::ErrorKind;
use rusteron_core::error::Result;

use crate::aeron::Aeron;

/// The conductor of a client without a conductor thread, as an [`Agent`].
///
/// Each duty cycle is one [`Aeron::do_work`]. The agent holds a handle of the client. So the client
/// stays open until the agent is dropped.
///
/// An error ends the client only if the error is fatal; [`Aeron::is_closed`] tells. After that, each
/// duty cycle fails with [`ErrorKind::ClientClosed`].
///
/// ```
/// use rusteron_client::agent::AgentRunner;
/// use rusteron_client::{Aeron, ConductorAgent, Context};
/// # use rusteron_media_driver::MediaDriver;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let driver = MediaDriver::launch_embedded()?;
/// let mut context = Context::new()?;
/// context.set_dir(driver.aeron_dir())?.set_use_conductor_agent_invoker(true)?;
/// let aeron = Aeron::connect(context)?;
/// let conductor = AgentRunner::builder(ConductorAgent::new(&aeron)?).start()?;
/// let publication = aeron.add_publication("aeron:ipc", 1001)?;
/// # drop(publication);
/// conductor.close()?;
/// # Ok(())
/// # }
/// ```
///
/// Corresponds to Java's `Aeron.conductorAgentInvoker`.
#[must_use = "the conductor works in the duty cycles of this agent"]
#[doc(alias = "conductorAgentInvoker")]
pub struct ConductorAgent {
    aeron: Aeron,
}

impl ConductorAgent {
    /// Makes an agent of the client's conductor.
    ///
    /// # Errors
    /// [`ErrorKind::IllegalState`]: the client has a conductor thread.
    pub fn new(aeron: &Aeron) -> Result<Self> {
        aeron.client().invoker()?;
        Ok(Self { aeron: aeron.clone() })
    }
}

impl Agent for ConductorAgent {
    fn do_work(&mut self) -> std::result::Result<usize, AgentError> {
        Ok(self.aeron.do_work()?)
    }

    fn role_name(&self) -> &str {
        "aeron-client-conductor"
    }
}

rusteron_core::impl_debug!(ConductorAgent: aeron);
