//! Numbers of the contract, and the options of servers and callers.

use std::path::PathBuf;

use clap::Args;
use rusteron_client::{Aeron, Context, IdleStrategyKind};

/// The channel of requests, unless an option names another one.
///
/// The term length bounds a message: an eighth of 4 MiB. The MTU makes fewer fragments of a long message.
pub const REQUEST_CHANNEL: &str = "aeron:ipc?term-length=4m|mtu=8k";
/// The stream of requests.
pub const REQUEST_STREAM: i32 = 3001;
/// The channel of responses, unless an option names another one.
pub const RESPONSE_CHANNEL: &str = "aeron:ipc?control-mode=response|term-length=4m|mtu=8k";
/// The stream of responses.
pub const RESPONSE_STREAM: i32 = 3002;

/// Most elements that `running_sums` accepts, and the greatest argument of `callback`.
pub(crate) const SMALL_ARRAY_LIMIT: usize = 64;
/// The greatest argument of `squares`.
pub(crate) const SQUARES_LIMIT: i64 = 20_000;
/// Most objects of a session.
pub const OBJECT_LIMIT: usize = 1_024;
/// Most calls of a session that await an answer to a callback.
pub const OPEN_CALL_LIMIT: usize = 64;

/// Settings of servers and callers over Aeron.
#[derive(Debug, Clone, Args)]
pub struct ConnectOptions {
    /// Directory of a running media driver
    #[arg(long, value_name = "DIR", env = "AERON_DIR")]
    pub aeron_dir: Option<PathBuf>,

    /// Channel of requests
    #[arg(long, value_name = "URI", default_value = REQUEST_CHANNEL)]
    pub request_channel: String,

    /// Channel of responses, with `control-mode=response`
    #[arg(long, value_name = "URI", default_value = RESPONSE_CHANNEL)]
    pub response_channel: String,

    /// Action without work: spin, yield or backoff
    #[arg(long, value_name = "IDLE", default_value = "backoff")]
    pub idle: IdleStrategyKind,
}

impl ConnectOptions {
    /// Returns the default settings for a media driver.
    pub fn new(aeron_dir: impl Into<PathBuf>) -> Self {
        Self {
            aeron_dir: Some(aeron_dir.into()),
            request_channel: REQUEST_CHANNEL.to_owned(),
            response_channel: RESPONSE_CHANNEL.to_owned(),
            idle: IdleStrategyKind::Backoff,
        }
    }

    pub(crate) fn aeron(&self) -> rusteron_client::Result<Aeron> {
        let mut context = Context::new()?;
        if let Some(dir) = &self.aeron_dir {
            context.set_dir(dir)?;
        }
        Aeron::connect(context)
    }
}
