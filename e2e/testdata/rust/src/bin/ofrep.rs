//! Evaluates scenarios with the unmodified OFREP provider of OpenFeature.
//!
//!     target/debug/ofrep < task.json

use open_feature::provider::{FeatureProvider, ResolutionDetails};
use open_feature::{EvaluationContext, EvaluationResult, StructValue, Value as FlagValue};
use open_feature_ofrep::{OfrepOptions, OfrepProvider};
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Map, Value, json};
use std::error::Error;
use std::io;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let task: Value = serde_json::from_reader(io::stdin())?;
    let key = task["project_key"].as_str().unwrap_or_default();
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, format!("Bearer {key}").parse()?);
    let base_url = task["url"].as_str().unwrap_or_default().to_string();
    let provider = OfrepProvider::new(OfrepOptions { base_url, headers, ..Default::default() }).await?;

    let mut results = Vec::new();
    for scenario in task["scenarios"].as_array().into_iter().flatten() {
        let key = scenario["key"].as_str().unwrap_or_default();
        let context = context(&scenario["context"]);
        results.push(match scenario["type"].as_str().unwrap_or_default() {
            "boolean" => result(provider.resolve_bool_value(key, &context).await, |v| json!(v)),
            "string" => result(provider.resolve_string_value(key, &context).await, |v| json!(v)),
            "integer" => result(provider.resolve_int_value(key, &context).await, |v| json!(v)),
            "float" => result(provider.resolve_float_value(key, &context).await, |v| json!(v)),
            _ => result(provider.resolve_struct_value(key, &context).await, object),
        });
    }
    println!("{}", Value::Array(results));
    Ok(())
}

fn context(attributes: &Value) -> EvaluationContext {
    let mut context = EvaluationContext::default();
    for (name, value) in attributes.as_object().into_iter().flatten() {
        context = match value {
            Value::String(text) if name == "targetingKey" => context.with_targeting_key(text),
            Value::String(text) => context.with_custom_field(name, text.clone()),
            other => context.with_custom_field(name, other.as_f64().unwrap_or_default()),
        };
    }
    context
}

fn result<T>(resolved: EvaluationResult<ResolutionDetails<T>>, value: fn(T) -> Value) -> Value {
    match resolved {
        Ok(details) => json!({"value": value(details.value), "variant": details.variant.unwrap_or_default()}),
        Err(error) => json!({"code": error.code.to_string()}),
    }
}

fn object(fields: StructValue) -> Value {
    let convert = |value: FlagValue| match value {
        FlagValue::Bool(v) => json!(v),
        FlagValue::Int(v) => json!(v),
        FlagValue::Float(v) => json!(v),
        FlagValue::String(v) => json!(v),
        _ => Value::Null,
    };
    Value::Object(fields.fields.into_iter().map(|(name, value)| (name, convert(value))).collect::<Map<_, _>>())
}
