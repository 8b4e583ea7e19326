//! The caller over gRPC.

use std::time::Duration;

use clap::Parser;
use cross_language::modes::{Modes, ProgramError, fail};
use cross_language::protocol::{Request, Response};
use grpc::service_client::ServiceClient;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};

mod grpc {
    //! Client and server of `service.proto`.
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
        Ok(move |request: &mut Request| caller.call(request))
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

    fn call(&mut self, request: &Request) -> Result<Response, ProgramError> {
        let response = self.runtime.block_on(self.client.call(request.clone()))?;
        Ok(response.into_inner())
    }
}
