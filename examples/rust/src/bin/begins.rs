//! A Guidon matcher with the operator begins/with: does a text begin with another one?

use std::{collections::HashMap, error::Error};

use guidon_plugin::{
    MAX_MESSAGE,
    config::Fields,
    guidon::r#match::v1::{self as api, Verdict, operator},
    guidon::plugin::v1::{self as plugin, Diagnostic},
    instances::{Instances, Plugin, not_open, on_thread},
    problem,
    serve::{deadline, serve},
};
use tonic::{Request, Response, Status};

const OPERATOR: &str = "begins/with";

/// How many values of filters an instance keeps.
const PROGRAMS: usize = 10_000;

struct Begins;

impl Plugin for Begins {
    const NAME: &'static str = "example/begins";
    const SUMMARY: &'static str = "Matches texts by their beginning.";
    const KIND: plugin::Kind = plugin::Kind::Matcher;
    const SCHEMA: &'static str =
        r#"{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false}"#;
    type Config = ();
    /// The values of filters by the id of their program.
    type Opened = HashMap<Vec<u8>, String>;

    fn config(_: &mut Fields) {}
}

/// Reads the value of a filter.
fn compile(program: &api::Program) -> Result<String, Vec<Diagnostic>> {
    if program.operator_id != OPERATOR {
        return Err(vec![problem("", format!("there is no operator {:?}", program.operator_id))]);
    }
    match serde_json::from_slice::<String>(&program.value_json) {
        Ok(prefix) if !prefix.is_empty() => Ok(prefix),
        Ok(_) => Err(vec![problem("", "must not be empty")]),
        Err(_) => Err(vec![problem("", "must be a string")]),
    }
}

/// The value of a program: known, refused, or to be asked for.
enum Known {
    Prefix(String),
    Refused,
    Needed,
}

fn known(programs: &mut HashMap<Vec<u8>, String>, program: &api::Program) -> Known {
    if let Some(prefix) = programs.get(&program.program_id) {
        return Known::Prefix(prefix.clone());
    }
    if program.value_json.is_empty() {
        return Known::Needed;
    }
    let Ok(prefix) = compile(program) else { return Known::Refused };
    if programs.len() >= PROGRAMS {
        programs.clear(); // the server sends a value again where it is needed
    }
    programs.insert(program.program_id.clone(), prefix.clone());
    Known::Prefix(prefix)
}

fn verdict(known: &Known, property: &Option<String>) -> Verdict {
    match (known, property) {
        (Known::Needed, _) => Verdict::Unspecified,
        (Known::Refused, _) => Verdict::Failed,
        (Known::Prefix(prefix), Some(text)) if text.starts_with(prefix) => Verdict::Match,
        (Known::Prefix(_), _) => Verdict::NoMatch,
    }
}

fn operator() -> api::Operator {
    let example = |value: &str, property: &str, result: Verdict| api::Example {
        value_json: value.into(),
        property_json: property.into(),
        result: result.into(),
        now_us: 0,
    };
    api::Operator {
        id: OPERATOR.to_string(),
        version: "1".to_string(),
        label: "begins with".to_string(),
        doc: "The property is a text that begins with the value.".to_string(),
        value_schema: r#"{"type": "string", "minLength": 1}"#.into(),
        property_types: vec!["string".to_string()],
        missing: operator::Missing::NoMatch.into(),
        purity: operator::Purity::Pure.into(),
        examples: vec![
            example(r#""ab""#, r#""abc""#, Verdict::Match),
            example(r#""b""#, r#""abc""#, Verdict::NoMatch),
            example(r#""1""#, "12", Verdict::NoMatch),
        ],
        ..Default::default()
    }
}

struct Matcher(Instances<Begins>);

#[tonic::async_trait]
impl api::matcher_service_server::MatcherService for Matcher {
    async fn open(&self, request: Request<api::OpenRequest>) -> Result<Response<api::OpenResponse>, Status> {
        let id = request.into_inner().instance_id;
        Ok(Response::new(match self.0.open(&id, |()| Ok(HashMap::new())).await {
            Ok(()) => {
                let properties = api::MatcherProperties { max_in_flight: 1, ..Default::default() };
                api::OpenResponse { opened: true, error: None, properties: Some(properties) }
            }
            Err(error) => api::OpenResponse { error: Some(error), ..Default::default() },
        }))
    }

    async fn describe(&self, request: Request<api::DescribeRequest>) -> Result<Response<api::DescribeResponse>, Status> {
        Ok(Response::new(match self.0.find(&request.into_inner().instance_id) {
            Ok(_) => api::DescribeResponse { described: true, operators: vec![operator()], ..Default::default() },
            Err(error) => api::DescribeResponse { error: Some(error), ..Default::default() },
        }))
    }

    async fn compile(&self, request: Request<api::CompileRequest>) -> Result<Response<api::CompileResponse>, Status> {
        let request = request.into_inner();
        if let Err(error) = self.0.find(&request.instance_id) {
            return Ok(Response::new(api::CompileResponse { results: vec![], error: Some(error) }));
        }
        let results = request.programs.iter().map(|program| match compile(program) {
            Ok(_) => api::CompileResult { compiled: true, ..Default::default() },
            Err(diagnostics) => api::CompileResult { diagnostics, ..Default::default() },
        });
        Ok(Response::new(api::CompileResponse { results: results.collect(), error: None }))
    }

    /// Evaluates pairs until the deadline. The rest stays unknown.
    async fn match_batch(&self, request: Request<api::MatchBatchRequest>) -> Result<Response<api::MatchBatchResponse>, Status> {
        let deadline = deadline(&request);
        let request = request.into_inner();
        let refused = |error| api::MatchBatchResponse { error: Some(error), ..Default::default() };
        let instance = match self.0.find_for_work(&request.instance_id) {
            Ok(instance) => instance,
            Err(error) => return Ok(Response::new(refused(error))),
        };
        let inside = |indexes: &[u32], length: usize| indexes.iter().all(|&i| (i as usize) < length);
        if request.pair_program.len() != request.pair_value.len()
            || !inside(&request.pair_program, request.programs.len())
            || !inside(&request.pair_value, request.values.len())
        {
            return Err(Status::invalid_argument("the columns of the pairs do not fit"));
        }
        let answer = on_thread(move || {
            let mut instance = instance.lock().unwrap();
            let Some(programs) = instance.opened.as_mut() else { return refused(not_open()) };
            let known: Vec<_> = request.programs.iter().map(|program| known(programs, program)).collect();
            let texts: Vec<Option<String>> = request.values.iter().map(|value| serde_json::from_slice(value).ok()).collect();
            let mut verdicts = vec![Verdict::Unspecified as u8; request.pair_program.len()];
            for (i, pair) in verdicts.iter_mut().enumerate() {
                if i % 256 == 0 && deadline.is_some_and(|end| std::time::Instant::now() >= end) {
                    break;
                }
                *pair = verdict(&known[request.pair_program[i] as usize], &texts[request.pair_value[i] as usize]) as u8;
            }
            let needed = known.iter().enumerate().filter(|(_, k)| matches!(k, Known::Needed)).map(|(i, _)| i as u32);
            api::MatchBatchResponse { verdicts, need_programs: needed.collect(), ..Default::default() }
        });
        Ok(Response::new(answer.await))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let instances = Instances::default();
    let matcher = api::matcher_service_server::MatcherServiceServer::new(Matcher(instances.clone())).max_decoding_message_size(MAX_MESSAGE);
    serve(instances, |router| router.add_service(matcher)).await
}
