//! The instances of a process, and the service that every plugin has.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tonic::{Request, Response, Status};

use crate::config::Fields;
use crate::guidon::plugin::v1::{
    CheckRequest, CheckResponse, CloseRequest, CloseResponse, Config, ConfigSchemaRequest, ConfigSchemaResponse, ConfigureRequest,
    ConfigureResponse, Diagnostic, DrainRequest, DrainResponse, Error, HealthRequest, HealthResponse, InfoRequest, InfoResponse,
    InstanceHealth, Kind, MetricsRequest, MetricsResponse, SetLogLevelRequest, SetLogLevelResponse, ValidateRequest, ValidateResponse,
    error::Class, instance_health::Status as Health, plugin_service_server::PluginService,
};
use crate::{MAX_MESSAGE, error};

/// What a plugin states, and what an instance of it holds.
pub trait Plugin: Send + Sync + 'static {
    /// The name has at most one slash: "acme/store".
    const NAME: &'static str;
    const SUMMARY: &'static str;
    const KIND: Kind;
    /// A JSON Schema of the config.
    const SCHEMA: &'static str;
    /// The places of secrets in the config, as JSON Pointers.
    const SECRETS: &'static [&'static str] = &[];
    const FEATURES: &'static [&'static str] = &[];
    /// The config of an instance.
    type Config: Send;
    /// The connection of an instance, from Open to Close.
    type Opened: Send;

    /// Reads a config. Problems are noted in the fields.
    fn config(fields: &mut Fields) -> Self::Config;
}

/// One configured instance.
pub struct Instance<P: Plugin> {
    pub config: P::Config,
    /// None until Open.
    pub opened: Option<P::Opened>,
    generation: u64,
}

/// An instance, which one call at a time may use.
pub type Shared<P> = Arc<Mutex<Instance<P>>>;

/// All instances of this process.
pub struct Instances<P: Plugin>(Arc<State<P>>);

struct State<P: Plugin> {
    all: Mutex<HashMap<String, Shared<P>>>,
    // Health is answered from memory, also while a call holds the lock of its instance.
    ready: Mutex<HashMap<String, (bool, u64)>>,
    draining: AtomicBool,
}

impl<P: Plugin> Default for Instances<P> {
    fn default() -> Self {
        Self(Arc::new(State { all: Mutex::default(), ready: Mutex::default(), draining: AtomicBool::new(false) }))
    }
}

impl<P: Plugin> Clone for Instances<P> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The error of work for an instance before Open.
pub fn not_open() -> Error {
    error(Class::NotConnected, "not_open", "the instance is not open", "")
}

impl<P: Plugin> Instances<P> {
    /// Returns a configured instance.
    pub fn find(&self, id: &str) -> Result<Shared<P>, Error> {
        let found = self.0.all.lock().unwrap().get(id).cloned();
        found.ok_or_else(|| error(Class::NotConnected, "unknown_instance", format!("instance {id:?} was not configured here"), ""))
    }

    /// Returns an instance for work, which ends with Drain.
    pub fn find_for_work(&self, id: &str) -> Result<Shared<P>, Error> {
        if self.0.draining.load(Ordering::Relaxed) {
            return Err(error(Class::Transient, "draining", "the process is about to end", ""));
        }
        self.find(id)
    }

    /// Runs Open of the kind on a thread of its own, and reports the instance as ready if
    /// it succeeds.
    pub async fn open(&self, id: &str, open: impl FnOnce(&P::Config) -> Result<P::Opened, Error> + Send + 'static) -> Result<(), Error> {
        let instance = self.find(id)?;
        let (generation, result) = on_thread(move || {
            let mut instance = instance.lock().unwrap();
            let result = open(&instance.config).map(|opened| instance.opened = Some(opened));
            (instance.generation, result)
        })
        .await;
        self.set_ready(id, result.is_ok(), generation);
        result
    }

    fn set_ready(&self, id: &str, ready: bool, generation: u64) {
        self.0.ready.lock().unwrap().insert(id.to_string(), (ready, generation));
    }

    fn read(config: Option<Config>) -> Result<P::Config, Vec<Diagnostic>> {
        let mut fields = Fields::of(config);
        let config = P::config(&mut fields);
        let problems = fields.finish();
        if problems.is_empty() { Ok(config) } else { Err(problems) }
    }
}

/// Runs what blocks on a thread of its own: health must be answered meanwhile.
pub async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("the work panicked")
}

#[tonic::async_trait]
impl<P: Plugin> PluginService for Instances<P> {
    async fn info(&self, _: Request<InfoRequest>) -> Result<Response<InfoResponse>, Status> {
        Ok(Response::new(InfoResponse {
            name: P::NAME.to_string(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            kinds: vec![P::KIND.into()],
            protocol_minor: 1,
            features: P::FEATURES.iter().map(ToString::to_string).collect(),
            sdk: "tonic".to_string(),
            max_message_bytes: MAX_MESSAGE as u64,
            multi_instance: true,
            summary: P::SUMMARY.to_string(),
            ..Default::default()
        }))
    }

    async fn config_schema(&self, _: Request<ConfigSchemaRequest>) -> Result<Response<ConfigSchemaResponse>, Status> {
        Ok(Response::new(ConfigSchemaResponse {
            json_schema: P::SCHEMA.into(),
            secret_pointers: P::SECRETS.iter().map(ToString::to_string).collect(),
            defaults_json: "{}".into(),
        }))
    }

    async fn validate(&self, request: Request<ValidateRequest>) -> Result<Response<ValidateResponse>, Status> {
        let diagnostics = Self::read(request.into_inner().config).err().unwrap_or_default();
        Ok(Response::new(ValidateResponse { valid: diagnostics.is_empty(), diagnostics }))
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> Result<Response<ConfigureResponse>, Status> {
        let request = request.into_inner();
        let config = match Self::read(request.config) {
            Ok(config) => config,
            Err(diagnostics) => return Ok(Response::new(ConfigureResponse { diagnostics, ..Default::default() })),
        };
        let new = Instance { config, opened: None, generation: request.generation };
        if let Ok(instance) = self.find(&request.instance_id) {
            let mut instance = instance.lock().unwrap();
            if request.generation < instance.generation {
                let error = Some(error(Class::Internal, "old_generation", "the generation is older than the current one", ""));
                return Ok(Response::new(ConfigureResponse { error, ..Default::default() }));
            }
            if request.generation > instance.generation {
                *instance = new;
                self.set_ready(&request.instance_id, false, request.generation);
            }
        } else {
            self.0.all.lock().unwrap().insert(request.instance_id.clone(), Arc::new(Mutex::new(new)));
            self.set_ready(&request.instance_id, false, request.generation);
        }
        Ok(Response::new(ConfigureResponse { accepted: true, ..Default::default() }))
    }

    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        let error = self.find(&request.into_inner().instance_id).err();
        Ok(Response::new(CheckResponse { ok: error.is_none(), error, latency: None }))
    }

    async fn health(&self, request: Request<HealthRequest>) -> Result<Response<HealthResponse>, Status> {
        let ids = request.into_inner().instance_ids;
        let ready = self.0.ready.lock().unwrap();
        let asked = ready.iter().filter(|(id, _)| ids.is_empty() || ids.contains(id));
        let instances = asked
            .map(|(id, (ready, generation))| InstanceHealth {
                instance_id: id.clone(),
                status: if *ready { Health::Ready } else { Health::Starting }.into(),
                generation: *generation,
                ..Default::default()
            })
            .collect();
        Ok(Response::new(HealthResponse { instances, serving: !self.0.draining.load(Ordering::Relaxed) }))
    }

    /// Work holds the lock of its instance, so taking each lock waits for all of it.
    async fn drain(&self, _: Request<DrainRequest>) -> Result<Response<DrainResponse>, Status> {
        self.0.draining.store(true, Ordering::Relaxed);
        let all: Vec<_> = self.0.all.lock().unwrap().values().cloned().collect();
        on_thread(move || all.iter().for_each(|instance| drop(instance.lock()))).await;
        Ok(Response::new(DrainResponse { drained: true, pending: 0 }))
    }

    async fn close(&self, request: Request<CloseRequest>) -> Result<Response<CloseResponse>, Status> {
        let id = request.into_inner().instance_id;
        let removed = self.0.all.lock().unwrap().remove(&id);
        self.0.ready.lock().unwrap().remove(&id);
        if let Some(instance) = removed {
            on_thread(move || instance.lock().unwrap().opened = None).await;
        }
        Ok(Response::new(CloseResponse { closed: true, error: None }))
    }

    async fn metrics(&self, _: Request<MetricsRequest>) -> Result<Response<MetricsResponse>, Status> {
        Err(Status::unimplemented("no metrics"))
    }

    async fn set_log_level(&self, _: Request<SetLogLevelRequest>) -> Result<Response<SetLogLevelResponse>, Status> {
        Err(Status::unimplemented("no levels"))
    }
}
