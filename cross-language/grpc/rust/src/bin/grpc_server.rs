//! The server over gRPC.

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use cross_language_grpc::protocol::service_server::ServiceServer;
use cross_language_grpc::{Service, WINDOW_LENGTH};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Builder;
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

    /// Tokio's runtime
    #[arg(long, value_name = "RUNTIME", default_value = "current-thread")]
    runtime: Runtime,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Runtime {
    /// One thread, which is the faster for single calls
    CurrentThread,
    /// A thread for each core
    MultiThread,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut builder = match options.runtime {
        Runtime::CurrentThread => Builder::new_current_thread(),
        Runtime::MultiThread => Builder::new_multi_thread(),
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(run(options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: Options) -> Result<(), Box<dyn Error>> {
    let server = Server::builder()
        .initial_stream_window_size(WINDOW_LENGTH)
        .initial_connection_window_size(WINDOW_LENGTH)
        .add_service(ServiceServer::new(Service::default()));
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
