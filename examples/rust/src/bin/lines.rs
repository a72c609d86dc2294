//! A Guidon sink: it appends events to a file, one JSON object a line.

use std::{
    error::Error,
    fs::{File, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
};

use guidon_plugin::{
    MAX_MESSAGE,
    config::Fields,
    error,
    guidon::plugin::v1::{self as plugin, error::Class},
    guidon::sink::v1::{self as api, sink_properties as property, write_batch_response::Outcome},
    instances::{Instances, Plugin, not_open, on_thread},
    serve::serve,
};
use tonic::{Request, Response, Status};

struct Lines;

impl Plugin for Lines {
    const NAME: &'static str = "example/lines";
    const SUMMARY: &'static str = "Appends events to a file.";
    const KIND: plugin::Kind = plugin::Kind::Sink;
    const SCHEMA: &'static str = r#"{
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "type": "object",
      "additionalProperties": false,
      "required": ["path"],
      "properties": {"path": {"type": "string", "description": "The file to append to."}}
    }"#;
    /// The path of the file.
    type Config = String;
    type Opened = File;

    fn config(fields: &mut Fields) -> String {
        fields.text("path")
    }
}

/// Opens a file for appending and removes a torn line.
fn open(path: &str) -> std::io::Result<File> {
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    locked(&mut file, cut_torn_line)?;
    Ok(file)
}

/// Holds the lock of the file: during an upgrade two processes have it open.
fn locked<T>(file: &mut File, work: impl FnOnce(&mut File) -> std::io::Result<T>) -> std::io::Result<T> {
    file.lock()?;
    let out = work(file);
    file.unlock()?;
    out
}

/// Removes a line that a crash has cut, as the server sends its batch again. It returns
/// the position behind the last line.
fn cut_torn_line(file: &mut File) -> std::io::Result<u64> {
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
    Ok(end)
}

/// Appends a batch and syncs the file. After an error the file is as it was before.
fn append(file: &mut File, records: &api::RecordBatch) -> std::io::Result<()> {
    let mut text = Vec::with_capacity(records.json.iter().map(|line| line.len() + 1).sum());
    for line in &records.json {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    locked(file, |file| {
        let begin = cut_torn_line(file)?;
        file.write_all(&text).and_then(|()| file.sync_data()).inspect_err(|_| {
            let _ = file.set_len(begin);
        })
    })
}

fn rejected(error: plugin::Error) -> api::WriteBatchResponse {
    api::WriteBatchResponse { outcome: Outcome::Rejected.into(), error: Some(error), ..Default::default() }
}

struct Sink(Instances<Lines>);

#[tonic::async_trait]
impl api::sink_service_server::SinkService for Sink {
    async fn open(&self, request: Request<api::OpenRequest>) -> Result<Response<api::OpenResponse>, Status> {
        let id = request.into_inner().instance_id;
        let opened = self.0.open(&id, |path| open(path).map_err(|e| error(Class::Config, "open", e, "/path"))).await;
        if let Err(error) = opened {
            return Ok(Response::new(api::OpenResponse { error: Some(error), ..Default::default() }));
        }
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
        let instance = match self.0.find_for_work(&request.instance_id) {
            Ok(instance) => instance,
            Err(error) => return Ok(Response::new(rejected(error))),
        };
        let answer = on_thread(move || {
            let mut instance = instance.lock().unwrap();
            let Some(file) = instance.opened.as_mut() else { return rejected(not_open()) };
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
        });
        Ok(Response::new(answer.await))
    }

    /// Every answered record is committed already.
    async fn flush(&self, request: Request<api::FlushRequest>) -> Result<Response<api::FlushResponse>, Status> {
        let request = request.into_inner();
        Ok(Response::new(match self.0.find(&request.instance_id) {
            Ok(_) => api::FlushResponse { flushed: true, committed_through: request.up_to_seq, ..Default::default() },
            Err(error) => api::FlushResponse { error: Some(error), ..Default::default() },
        }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let instances = Instances::default();
    let sink = api::sink_service_server::SinkServiceServer::new(Sink(instances.clone())).max_decoding_message_size(MAX_MESSAGE);
    serve(instances, |router| router.add_service(sink)).await
}
