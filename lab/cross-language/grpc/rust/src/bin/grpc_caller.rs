//! The caller over gRPC.

use std::time::Duration;

use clap::Parser;
use cross_language::modes::{Modes, ProgramError, fail};
use cross_language::{Body, CallError, Malformed, Operation};
use protocol::service_client::ServiceClient;
use protocol::{Text, Void};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};

mod protocol {
    //! Messages, client and server of `service.proto`.
    tonic::include_proto!("crosslanguage");
}

/// Of the flow control of HTTP/2, in bytes: equal in all languages.
const WINDOW_LENGTH: u32 = 1 << 20;

/// Calls the cross-language service over gRPC
#[derive(Debug, Parser)]
#[command(name = "grpc_caller")]
struct Options {
    /// The server: HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    server: String,

    #[command(flatten)]
    modes: Modes,
}

/// A connection, which its thread drives: no other thread takes part in a call.
struct Caller {
    runtime: Runtime,
    client: ServiceClient<Channel>,
}

fn main() {
    let Options { server, modes } = Options::parse();
    let connect = || {
        let mut caller = Caller::connect(&server, modes.timeout())?;
        Ok(move |operation, argument: &Body| caller.call(operation, argument))
    };
    if let Err(error) = modes.run(connect) {
        fail(&error);
    }
}

impl Caller {
    fn connect(server: &str, timeout: Duration) -> Result<Self, ProgramError> {
        let is_unix = server.starts_with("unix:");
        let uri = if is_unix { server.to_owned() } else { format!("http://{server}") };
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let endpoint = Endpoint::from_shared(uri)?
            .initial_stream_window_size(WINDOW_LENGTH)
            .initial_connection_window_size(WINDOW_LENGTH)
            .timeout(timeout)
            .connect_timeout(timeout);
        let channel = runtime.block_on(endpoint.connect())?;
        Ok(Self { runtime, client: ServiceClient::new(channel) })
    }

    fn call(&mut self, operation: Operation, argument: &Body) -> Result<Body, CallError> {
        let Self { runtime, client } = self;
        let malformed = |text: String| CallError::Malformed(Malformed::new(text));
        match (operation, argument) {
            (Operation::Ping, Body::Void) => {
                runtime.block_on(client.ping(Void {})).map(|_| Body::Void)
            }
            (Operation::Reverse, Body::Text(text)) => runtime
                .block_on(client.reverse(Text { value: text.clone() }))
                .map(|response| Body::Text(response.into_inner().value)),
            _ => return Err(malformed(format!("no operation of gRPC here: {operation}"))),
        }
        .map_err(|status| malformed(status.to_string()))
    }
}
