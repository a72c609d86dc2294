//! The plugin: its config, its instances and the sink.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    sync::{Arc, Mutex},
    time::SystemTime,
};

use serde_json::Value;
use tonic::{Request, Response, Status};

use crate::guidon::plugin::v1::{self as plugin, diagnostic::Severity, error::Class, instance_health::Status as Health};
use crate::guidon::sink::v1::{self as api, sink_properties as property, write_batch_response::Outcome};

pub const NAME: &str = "example/lines";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "required": ["path"],
  "properties": {"path": {"type": "string", "description": "The file to append to."}}
}"#;

/// One configured instance.
struct Instance {
    generation: u64,
    path: String,
    file: Option<File>,
    since: SystemTime,
}

/// All instances of this process.
#[derive(Clone, Default)]
pub struct Plugin {
    instances: Arc<Mutex<HashMap<String, Arc<Mutex<Instance>>>>>,
    // Health is answered from memory, also while a write holds the lock of its instance.
    ready: Arc<Mutex<HashMap<String, (bool, u64)>>>,
}

impl Plugin {
    fn find(&self, id: &str) -> Option<Arc<Mutex<Instance>>> {
        self.instances.lock().unwrap().get(id).cloned()
    }

    fn set_ready(&self, id: &str, ready: bool, generation: u64) {
        self.ready.lock().unwrap().insert(id.to_string(), (ready, generation));
    }
}

fn error(class: Class, code: &str, message: impl ToString, pointer: &str) -> Option<plugin::Error> {
    Some(plugin::Error {
        class: class.into(),
        code: code.to_string(),
        message: message.to_string(),
        pointer: pointer.to_string(),
        ..Default::default()
    })
}

fn unknown(id: &str) -> Option<plugin::Error> {
    error(Class::NotConnected, "unknown_instance", format!("instance {id:?} was not configured here"), "")
}

/// Reads a config, strictly. The error is what is wrong with it, and where.
fn parse(config: Option<plugin::Config>) -> Result<String, Vec<plugin::Diagnostic>> {
    let problem = |pointer: &str, summary: &str| plugin::Diagnostic {
        severity: Severity::Error.into(),
        pointer: pointer.to_string(),
        summary: summary.to_string(),
        ..Default::default()
    };
    let config = config.unwrap_or_default();
    let mut tree = match serde_json::from_slice::<Value>(&config.config_json) {
        Ok(Value::Object(tree)) => tree,
        _ => return Err(vec![problem("", "the config is not a JSON object")]),
    };
    // Values that came from a reference are apart, by their place.
    for (pointer, value) in config.secrets {
        let value = Value::String(String::from_utf8_lossy(&value).into_owned());
        tree.insert(pointer.trim_start_matches('/').to_string(), value);
    }
    let mut problems: Vec<_> = tree
        .keys()
        .filter(|key| *key != "path")
        .map(|key| problem(&format!("/{}", key.replace('~', "~0").replace('/', "~1")), "unknown key"))
        .collect();
    match tree.get("path") {
        Some(Value::String(path)) if problems.is_empty() => return Ok(path.clone()),
        Some(Value::String(_)) => {}
        Some(_) => problems.push(problem("/path", "must be a string")),
        None => problems.push(problem("/path", "required")),
    }
    Err(problems)
}

#[tonic::async_trait]
impl plugin::plugin_service_server::PluginService for Plugin {
    async fn info(&self, _: Request<plugin::InfoRequest>) -> Result<Response<plugin::InfoResponse>, Status> {
        Ok(Response::new(plugin::InfoResponse {
            name: NAME.to_string(),
            version: VERSION.to_string(),
            kinds: vec![plugin::Kind::Sink.into()],
            protocol_minor: 1,
            sdk: "tonic".to_string(),
            max_message_bytes: crate::MAX_MESSAGE as u64,
            multi_instance: true,
            summary: "Appends events to a file.".to_string(),
            ..Default::default()
        }))
    }

    async fn config_schema(&self, _: Request<plugin::ConfigSchemaRequest>) -> Result<Response<plugin::ConfigSchemaResponse>, Status> {
        Ok(Response::new(plugin::ConfigSchemaResponse {
            json_schema: SCHEMA.into(),
            defaults_json: "{}".into(),
            ..Default::default()
        }))
    }

    async fn validate(&self, request: Request<plugin::ValidateRequest>) -> Result<Response<plugin::ValidateResponse>, Status> {
        let diagnostics = parse(request.into_inner().config).err().unwrap_or_default();
        Ok(Response::new(plugin::ValidateResponse { valid: diagnostics.is_empty(), diagnostics }))
    }

    async fn configure(&self, request: Request<plugin::ConfigureRequest>) -> Result<Response<plugin::ConfigureResponse>, Status> {
        let request = request.into_inner();
        let path = match parse(request.config) {
            Ok(path) => path,
            Err(diagnostics) => return Ok(Response::new(plugin::ConfigureResponse { diagnostics, ..Default::default() })),
        };
        if let Some(instance) = self.find(&request.instance_id) {
            let mut instance = instance.lock().unwrap();
            if request.generation < instance.generation {
                let error = error(Class::Internal, "old_generation", "the generation is older than the current one", "");
                return Ok(Response::new(plugin::ConfigureResponse { error, ..Default::default() }));
            }
            if request.generation > instance.generation {
                *instance = Instance { generation: request.generation, path, file: None, since: SystemTime::now() };
                self.set_ready(&request.instance_id, false, request.generation);
            }
        } else {
            let instance = Instance { generation: request.generation, path, file: None, since: SystemTime::now() };
            self.instances.lock().unwrap().insert(request.instance_id.clone(), Arc::new(Mutex::new(instance)));
            self.set_ready(&request.instance_id, false, request.generation);
        }
        Ok(Response::new(plugin::ConfigureResponse { accepted: true, ..Default::default() }))
    }

    async fn check(&self, request: Request<plugin::CheckRequest>) -> Result<Response<plugin::CheckResponse>, Status> {
        let id = request.into_inner().instance_id;
        let error = match self.find(&id) {
            Some(_) => None,
            None => unknown(&id),
        };
        Ok(Response::new(plugin::CheckResponse { ok: error.is_none(), error, latency: None }))
    }

    async fn health(&self, request: Request<plugin::HealthRequest>) -> Result<Response<plugin::HealthResponse>, Status> {
        let ids = request.into_inner().instance_ids;
        let instances = self
            .ready
            .lock()
            .unwrap()
            .iter()
            .filter(|(id, _)| ids.is_empty() || ids.contains(id))
            .map(|(id, (ready, generation))| plugin::InstanceHealth {
                instance_id: id.clone(),
                status: if *ready { Health::Ready } else { Health::Starting }.into(),
                generation: *generation,
                ..Default::default()
            })
            .collect();
        Ok(Response::new(plugin::HealthResponse { instances, serving: true }))
    }

    /// A write holds the lock of its instance, so taking each lock waits for all of them.
    async fn drain(&self, _: Request<plugin::DrainRequest>) -> Result<Response<plugin::DrainResponse>, Status> {
        let all: Vec<_> = self.instances.lock().unwrap().values().cloned().collect();
        tokio::task::spawn_blocking(move || all.iter().for_each(|instance| drop(instance.lock())))
            .await
            .map_err(|e| Status::internal(e.to_string()))?;
        Ok(Response::new(plugin::DrainResponse { drained: true, pending: 0 }))
    }

    async fn close(&self, request: Request<plugin::CloseRequest>) -> Result<Response<plugin::CloseResponse>, Status> {
        let id = request.into_inner().instance_id;
        let removed = self.instances.lock().unwrap().remove(&id);
        self.ready.lock().unwrap().remove(&id);
        if let Some(instance) = removed {
            let instance = instance.lock().unwrap();
            let age = SystemTime::now().duration_since(instance.since).unwrap_or_default();
            crate::log("debug", &format!("closed after {}s", age.as_secs()), &id);
        }
        Ok(Response::new(plugin::CloseResponse { closed: true, error: None }))
    }

    async fn metrics(&self, _: Request<plugin::MetricsRequest>) -> Result<Response<plugin::MetricsResponse>, Status> {
        Err(Status::unimplemented("no metrics"))
    }

    async fn set_log_level(&self, _: Request<plugin::SetLogLevelRequest>) -> Result<Response<plugin::SetLogLevelResponse>, Status> {
        Err(Status::unimplemented("no levels"))
    }
}

/// Opens a file for appending and removes a line that a crash has cut: the server sends
/// its batch again.
fn open(path: &str) -> std::io::Result<File> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    let size = file.seek(SeekFrom::End(0))?;
    let mut end = size;
    while end > 0 {
        let begin = end.saturating_sub(64 << 10);
        let mut part = vec![0; (end - begin) as usize];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(&mut part)?;
        if let Some(at) = part.iter().rposition(|&byte| byte == b'\n') {
            end = begin + at as u64 + 1;
            break;
        }
        end = begin;
    }
    if end < size {
        file.set_len(end)?;
    }
    Ok(file)
}

/// Appends a batch and syncs the file. After an error the file is as it was before.
fn append(file: &mut File, records: &api::RecordBatch) -> std::io::Result<()> {
    let mut text = Vec::with_capacity(records.json.iter().map(|line| line.len() + 1).sum());
    for line in &records.json {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    let begin = file.seek(SeekFrom::End(0))?;
    file.write_all(&text).and_then(|()| file.sync_data()).inspect_err(|_| {
        let _ = file.set_len(begin);
    })
}

fn rejected(error: Option<plugin::Error>) -> api::WriteBatchResponse {
    api::WriteBatchResponse { outcome: Outcome::Rejected.into(), error, ..Default::default() }
}

#[tonic::async_trait]
impl api::sink_service_server::SinkService for Plugin {
    async fn open(&self, request: Request<api::OpenRequest>) -> Result<Response<api::OpenResponse>, Status> {
        let id = request.into_inner().instance_id;
        let Some(instance) = self.find(&id) else {
            return Ok(Response::new(api::OpenResponse { error: unknown(&id), ..Default::default() }));
        };
        let mut instance = instance.lock().unwrap();
        match open(&instance.path) {
            Ok(file) => instance.file = Some(file),
            Err(e) => {
                let error = error(Class::Config, "open", e, "/path");
                return Ok(Response::new(api::OpenResponse { error, ..Default::default() }));
            }
        }
        self.set_ready(&id, true, instance.generation);
        let properties = Some(api::SinkProperties {
            max_in_flight: 1,
            ordering: property::Ordering::Total.into(),
            dedup: property::Dedup::None.into(),
            commit: property::Commit::Immediate.into(),
            durability: property::Durability::LocalDisk.into(),
            ..Default::default()
        });
        Ok(Response::new(api::OpenResponse { opened: true, error: None, properties }))
    }

    async fn write_batch(&self, request: Request<api::WriteBatchRequest>) -> Result<Response<api::WriteBatchResponse>, Status> {
        let request = request.into_inner();
        let Some(instance) = self.find(&request.instance_id) else {
            return Ok(Response::new(rejected(unknown(&request.instance_id))));
        };
        // Files block, and health must be answered meanwhile.
        tokio::task::spawn_blocking(move || {
            let mut instance = instance.lock().unwrap();
            let Some(file) = instance.file.as_mut() else {
                return rejected(error(Class::NotConnected, "not_open", "the instance is not open", ""));
            };
            let Some(api::write_batch_request::Payload::Records(records)) = request.payload else {
                return rejected(error(Class::Unsupported, "encoding", "unknown encoding of events", ""));
            };
            match append(file, &records) {
                Ok(()) => api::WriteBatchResponse {
                    outcome: Outcome::Committed.into(),
                    committed_through: request.last_seq,
                    ..Default::default()
                },
                Err(e) => rejected(error(Class::Transient, "write", e, "")),
            }
        })
        .await
        .map(Response::new)
        .map_err(|e| Status::internal(e.to_string()))
    }

    /// Every answered record is committed already.
    async fn flush(&self, request: Request<api::FlushRequest>) -> Result<Response<api::FlushResponse>, Status> {
        let request = request.into_inner();
        if self.find(&request.instance_id).is_none() {
            return Ok(Response::new(api::FlushResponse { error: unknown(&request.instance_id), ..Default::default() }));
        }
        Ok(Response::new(api::FlushResponse { flushed: true, committed_through: request.up_to_seq, ..Default::default() }))
    }
}
