//! The server over gRPC.

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use cross_language_grpc::Service;
use cross_language_grpc::protocol::service_server::ServiceServer;
use tokio::net::{TcpListener, UnixListener};
use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// Serves the cross-language service over gRPC until SIGTERM
#[derive(Debug, Parser)]
#[command(name = "grpc_server")]
struct Options {
    /// Where to listen: HOST:PORT or unix:PATH
    #[arg(long, value_name = "ADDRESS")]
    listen: String,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Options::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let server = Server::builder().add_service(ServiceServer::new(Service::default()));
    let mut termination = signal(SignalKind::terminate())?;
    let end = async move {
        termination.recv().await;
    };
    if let Some(path) = options.listen.strip_prefix("unix:") {
        let incoming = UnixListenerStream::new(UnixListener::bind(path)?);
        println!("serving");
        server.serve_with_incoming_shutdown(incoming, end).await?;
    } else {
        let listener = TcpListener::bind(&options.listen).await?;
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        println!("serving");
        server.serve_with_incoming_shutdown(incoming, end).await?;
    }
    Ok(())
}
