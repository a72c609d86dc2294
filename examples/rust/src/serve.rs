//! The life of the process: its start by the server, its TLS and its end.

use std::{
    env,
    error::Error,
    io::Write,
    time::{Duration, Instant},
};

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
    transport::{Certificate, Identity, Server, ServerTlsConfig, server::Router},
};

use crate::MAX_MESSAGE;
use crate::goplugin::{
    Empty, StdioData,
    grpc_controller_server::{GrpcController, GrpcControllerServer},
    grpc_stdio_server::{GrpcStdio, GrpcStdioServer},
};
use crate::guidon::plugin::v1::plugin_service_server::PluginServiceServer;
use crate::instances::{Instances, Plugin};

const COOKIE: &str = "3f1b7c52-guidon-plugin";

/// Writes one line of the log: JSON with the keys that the server reads.
pub fn log(level: &str, message: &str, instance: &str) {
    let line = serde_json::json!({"level": level, "msg": message, "instance": instance});
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns when the answer to a call must be sent: a little before the deadline of the
/// server, which gRPC has as a number of at most eight digits and a unit.
pub fn deadline<T>(request: &Request<T>) -> Option<Instant> {
    let text = request.metadata().get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    let left = match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        _ => Duration::from_nanos(number),
    };
    Some(Instant::now() + left - (left / 10).min(Duration::from_millis(250)))
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

/// Serves the instances and the service of the kind, which `kind` adds, until the server
/// ends the process. It returns early with an error only.
pub async fn serve<P: Plugin>(instances: Instances<P>, kind: impl FnOnce(Router) -> Router) -> Result<(), Box<dyn Error>> {
    if env::var("GUIDON_PLUGIN_COOKIE").as_deref() != Ok(COOKIE) {
        eprintln!("{} is a Guidon plugin: it is started by the server, not by hand.", P::NAME);
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
    let router = server
        .add_service(health_service)
        .add_service(GrpcControllerServer::new(Controller(stop)))
        .add_service(GrpcStdioServer::new(Stdio))
        .add_service(PluginServiceServer::new(instances).max_decoding_message_size(MAX_MESSAGE));
    let serving = kind(router).serve_with_incoming(UnixListenerStream::new(listener));

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
