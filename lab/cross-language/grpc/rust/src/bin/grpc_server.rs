//! The server over gRPC, on one thread.

use std::time::Duration;

use clap::Parser;
use cross_language::modes::{ProgramError, fail};
use cross_language::protocol;
use grpc::service_server::{Service, ServiceServer};
use tokio::net::{TcpListener, UnixListener};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

mod grpc {
    //! Client and server of `service.proto`.
    tonic::include_proto!("crosslanguage");
}

/// Of the flow control of HTTP/2, in bytes: equal in all languages.
const WINDOW_LENGTH: u32 = 1 << 20;

/// Serves the cross-language service over gRPC
#[derive(Debug, Parser)]
#[command(name = "grpc_server")]
struct Options {
    /// HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    listen: String,
}

struct Operations;

#[tonic::async_trait]
impl Service for Operations {
    /// Executes a call, which is a session of its own.
    async fn call(
        &self,
        request: Request<protocol::Request>,
    ) -> Result<Response<protocol::Response>, Status> {
        let mut service = cross_language::Service::new(Duration::ZERO);
        Ok(Response::new(service.respond(request.into_inner())))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    if let Err(error) = serve(&Options::parse().listen).await {
        fail(&error);
    }
}

async fn serve(address: &str) -> Result<(), ProgramError> {
    let server = Server::builder()
        .initial_stream_window_size(WINDOW_LENGTH)
        .initial_connection_window_size(WINDOW_LENGTH)
        .add_service(ServiceServer::new(Operations));
    if let Some(path) = address.strip_prefix("unix:") {
        let listener = UnixListenerStream::new(UnixListener::bind(path)?);
        println!("serving");
        server.serve_with_incoming(listener).await?;
    } else {
        let listener = TcpListener::bind(address).await?;
        let listener = TcpIncoming::from(listener).with_nodelay(Some(true));
        println!("serving");
        server.serve_with_incoming(listener).await?;
    }
    Ok(())
}
