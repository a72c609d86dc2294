//! A Guidon notifier: it posts messages to a chat by an incoming webhook.

use std::{
    collections::HashMap,
    error::Error,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use guidon_plugin::{
    MAX_MESSAGE,
    config::Fields,
    error,
    guidon::notify::v1::{self as api, notify_result::Outcome, segment::Kind},
    guidon::plugin::v1::{self as plugin, error::Class},
    instances::{Instances, Plugin, not_open, on_thread},
    serve::serve,
};
use tonic::{Request, Response, Status};

struct Chat;

impl Plugin for Chat {
    const NAME: &'static str = "example/chat";
    const SUMMARY: &'static str = "Posts messages to a webhook.";
    const KIND: plugin::Kind = plugin::Kind::Notifier;
    const SCHEMA: &'static str = r#"{
      "$schema": "https://json-schema.org/draft/2020-12/schema",
      "type": "object",
      "additionalProperties": false,
      "required": ["url"],
      "properties": {"url": {"type": "string", "description": "The address of the webhook."}}
    }"#;
    const SECRETS: &'static [&'static str] = &["/url"];
    const FEATURES: &'static [&'static str] = &["notifier/preview/v1"];
    /// The address of the webhook.
    type Config = String;
    type Opened = Webhook;

    fn config(fields: &mut Fields) -> String {
        let url = fields.text("url");
        if !url.is_empty() && !url.starts_with("http://") && !url.starts_with("https://") {
            fields.refuse("url", "must be an http or https address");
        }
        url
    }
}

/// How long a delivered message is known again.
const DEDUP_WINDOW: Duration = Duration::from_secs(3600);

/// The destination of an instance.
struct Webhook {
    url: String,
    agent: ureq::Agent,
    delivered: HashMap<String, Instant>,
}

impl Webhook {
    fn new(url: &str) -> Self {
        let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(10))).http_status_as_error(false);
        Self { url: url.to_string(), agent: config.build().into(), delivered: HashMap::new() }
    }

    /// Delivers one message, once.
    fn deliver(&mut self, message: &api::Notification) -> api::NotifyResult {
        self.delivered.retain(|_, at| at.elapsed() < DEDUP_WINDOW);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros() as i64;
        if message.expires_us > 0 && now > message.expires_us {
            return failed(error(Class::Permanent, "expired", "the message came too late", ""));
        }
        if !message.destination.is_empty() {
            return failed(error(Class::Unsupported, "destination", "the webhook of the config is the only destination", ""));
        }
        if self.delivered.contains_key(&message.notification_id) {
            return api::NotifyResult { outcome: Outcome::Duplicate.into(), ..Default::default() };
        }
        match self.post(message) {
            Ok(()) => {
                self.delivered.insert(message.notification_id.clone(), Instant::now());
                api::NotifyResult { outcome: Outcome::Delivered.into(), ..Default::default() }
            }
            Err(error) => failed(error),
        }
    }

    fn post(&self, message: &api::Notification) -> Result<(), plugin::Error> {
        // The service gets the id, so that a repetition after a crash posts nothing.
        let request =
            self.agent.post(&self.url).header("Content-Type", "application/json").header("Idempotency-Key", &message.notification_id);
        // The text of an error may have the address, which is a secret.
        let answer = request
            .send(&body(message))
            .map_err(|e| error(Class::Transient, "connect", e.to_string().replace(&self.url, "the webhook"), ""))?;
        let status = answer.status().as_u16();
        let text = format!("the webhook answers {status}");
        match status {
            200..300 => Ok(()),
            429 => {
                let after = answer.headers().get("retry-after").and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok()).unwrap_or(1);
                let retry_after = Some(prost_types::Duration { seconds: i64::from(u16::min(after, 3600)), nanos: 0 });
                Err(plugin::Error { retry_after, ..error(Class::Throttled, "too_many_requests", text, "") })
            }
            401 | 403 | 404 | 410 => Err(error(Class::Config, "refused", text, "/url")),
            400..500 => Err(error(Class::Permanent, "refused", text, "")),
            _ => Err(error(Class::Transient, "unavailable", text, "")),
        }
    }
}

/// A message that was not delivered: what a retry cannot change is dropped.
fn failed(error: plugin::Error) -> api::NotifyResult {
    let dropped = [Class::Permanent, Class::Unsupported].contains(&error.class());
    let outcome = if dropped { Outcome::Dropped } else { Outcome::Retry };
    api::NotifyResult { outcome: outcome.into(), error: Some(error), ..Default::default() }
}

/// Returns the message in the format of the chat. Data of events must not mention people
/// or act as markup.
fn body(message: &api::Notification) -> Vec<u8> {
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut text = String::new();
    for segment in &message.segments {
        let value = escape(&segment.value);
        text += &match segment.kind() {
            _ if !segment.href.is_empty() => format!("<{}|{value}>", escape(&segment.href)),
            Kind::Bold => format!("*{value}*"),
            _ => value,
        };
    }
    if message.suppressed > 0 {
        text += &format!(" (and {} more)", message.suppressed);
    }
    serde_json::json!({"text": text}).to_string().into_bytes()
}

struct Notifier(Instances<Chat>);

#[tonic::async_trait]
impl api::notifier_service_server::NotifierService for Notifier {
    async fn open(&self, request: Request<api::OpenRequest>) -> Result<Response<api::OpenResponse>, Status> {
        let id = request.into_inner().instance_id;
        Ok(Response::new(match self.0.open(&id, |url| Ok(Webhook::new(url))).await {
            Ok(()) => {
                let dedup_window = Some(prost_types::Duration { seconds: DEDUP_WINDOW.as_secs() as i64, nanos: 0 });
                let properties =
                    api::NotifierProperties { max_in_flight: 1, per_second: 1.0, burst: 5, dedup_window, ..Default::default() };
                api::OpenResponse { opened: true, error: None, properties: Some(properties) }
            }
            Err(error) => api::OpenResponse { error: Some(error), ..Default::default() },
        }))
    }

    async fn notify(&self, request: Request<api::NotifyRequest>) -> Result<Response<api::NotifyResponse>, Status> {
        let request = request.into_inner();
        let refused = |error| api::NotifyResponse { results: vec![], error: Some(error) };
        let instance = match self.0.find_for_work(&request.instance_id) {
            Ok(instance) => instance,
            Err(error) => return Ok(Response::new(refused(error))),
        };
        let answer = on_thread(move || {
            let mut instance = instance.lock().unwrap();
            let Some(webhook) = instance.opened.as_mut() else { return refused(not_open()) };
            api::NotifyResponse { results: request.items.iter().map(|item| webhook.deliver(item)).collect(), error: None }
        });
        Ok(Response::new(answer.await))
    }

    async fn preview(&self, request: Request<api::PreviewRequest>) -> Result<Response<api::PreviewResponse>, Status> {
        let request = request.into_inner();
        Ok(Response::new(match self.0.find(&request.instance_id) {
            Ok(_) => api::PreviewResponse {
                rendered: true,
                body: body(&request.item.unwrap_or_default()),
                media_type: "application/json".to_string(),
                ..Default::default()
            },
            Err(error) => api::PreviewResponse { error: Some(error), ..Default::default() },
        }))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let instances = Instances::default();
    let notifier =
        api::notifier_service_server::NotifierServiceServer::new(Notifier(instances.clone())).max_decoding_message_size(MAX_MESSAGE);
    serve(instances, |router| router.add_service(notifier)).await
}
