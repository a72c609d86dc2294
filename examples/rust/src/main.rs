//! A Guidon sink: it appends events to a file, one JSON object a line.
//!
//! main.rs is the life of the process, which any plugin can keep as it is; sink.rs is
//! the plugin. docs/plugins/contract.md states what both keep to.

mod sink;

use std::{env, error::Error, io::Write, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use tokio::{
    io::AsyncReadExt,
    net::UnixListener,
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{
    Request, Response, Status,
    transport::{Certificate, Identity, Server, ServerTlsConfig},
};

/// The messages of the contract.
pub mod guidon {
    pub mod plugin {
        pub mod v1 {
            tonic::include_proto!("guidon.plugin.v1");
        }
    }
    pub mod sink {
        pub mod v1 {
            tonic::include_proto!("guidon.sink.v1");
        }
    }
}

/// The messages of go-plugin.
mod goplugin {
    tonic::include_proto!("plugin");
}

use goplugin::{
    Empty, StdioData,
    grpc_controller_server::{GrpcController, GrpcControllerServer},
    grpc_stdio_server::{GrpcStdio, GrpcStdioServer},
};
use guidon::{plugin::v1::plugin_service_server::PluginServiceServer, sink::v1::sink_service_server::SinkServiceServer};

const COOKIE: &str = "3f1b7c52-guidon-plugin";
const MAX_MESSAGE: usize = 64 << 20;

/// Writes one line of the log: JSON with the keys that the server reads.
pub fn log(level: &str, message: &str, instance: &str) {
    let line = serde_json::json!({"level": level, "msg": message, "instance": instance});
    let _ = writeln!(std::io::stderr(), "{line}");
}

struct Controller(mpsc::Sender<()>);

#[tonic::async_trait]
impl GrpcController for Controller {
    async fn shutdown(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        let _ = self.0.try_send(());
        Ok(Response::new(Empty {}))
    }
}

struct Stdio;

#[tonic::async_trait]
impl GrpcStdio for Stdio {
    type StreamStdioStream = tokio_stream::Pending<Result<StdioData, Status>>;

    /// Stays silent: everything goes to standard error.
    async fn stream_stdio(&self, _: Request<()>) -> Result<Response<Self::StreamStdioStream>, Status> {
        Ok(Response::new(tokio_stream::pending()))
    }
}

/// Returns when the host asks for the end, sends SIGTERM, or is gone.
async fn end(mut shutdown: mpsc::Receiver<()>) {
    let mut term = signal(SignalKind::terminate()).expect("handle SIGTERM");
    // An interrupt is meant for the host.
    let mut interrupt = signal(SignalKind::interrupt()).expect("handle SIGINT");
    tokio::spawn(async move { while interrupt.recv().await.is_some() {} });
    let host_gone = async {
        if env::var("GUIDON_PLUGIN_WATCH").as_deref() != Ok("stdin") {
            return std::future::pending().await;
        }
        let mut rest = [0; 1024];
        let mut input = tokio::io::stdin();
        while matches!(input.read(&mut rest).await, Ok(n) if n > 0) {}
    };
    tokio::select! {
        _ = shutdown.recv() => {}
        _ = term.recv() => {}
        () = host_gone => {}
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if env::var("GUIDON_PLUGIN_COOKIE").as_deref() != Ok(COOKIE) {
        eprintln!("{} is a Guidon plugin: it is started by the server, not by hand.", sink::NAME);
        std::process::exit(1);
    }
    let dir = env::var("PLUGIN_UNIX_SOCKET_DIR").unwrap_or_else(|_| env::temp_dir().display().to_string());
    let path = format!("{dir}/{}.sock", std::process::id());
    let listener = UnixListener::bind(&path)?;

    let mut server = Server::builder();
    let mut certificate = String::new();
    if let Ok(host) = env::var("PLUGIN_CLIENT_CERT") {
        let own = rcgen::generate_simple_self_signed(["localhost".to_string()])?;
        certificate = STANDARD_NO_PAD.encode(own.cert.der());
        server = server.tls_config(
            ServerTlsConfig::new()
                .identity(Identity::from_pem(own.cert.pem(), own.signing_key.serialize_pem()))
                .client_ca_root(Certificate::from_pem(host)),
        )?;
    }

    let (health, health_service) = tonic_health::server::health_reporter();
    health.set_service_status("plugin", tonic_health::ServingStatus::Serving).await;
    let (stop, stopped) = mpsc::channel(1);
    let plugin = sink::Plugin::default();
    let serving = server
        .add_service(health_service)
        .add_service(GrpcControllerServer::new(Controller(stop)))
        .add_service(GrpcStdioServer::new(Stdio))
        .add_service(PluginServiceServer::new(plugin.clone()).max_decoding_message_size(MAX_MESSAGE))
        .add_service(SinkServiceServer::new(plugin).max_decoding_message_size(MAX_MESSAGE))
        .serve_with_incoming(UnixListenerStream::new(listener));

    println!("1|1|unix|{path}|grpc|{certificate}"); // the only line on standard output
    std::io::stdout().flush()?;
    tokio::select! {
        result = serving => result?,
        () = end(stopped) => tokio::time::sleep(Duration::from_millis(100)).await, // for the answer to Shutdown
    }
    let _ = std::fs::remove_file(&path);
    // A thread that reads standard input would keep the process alive.
    std::process::exit(0);
}
