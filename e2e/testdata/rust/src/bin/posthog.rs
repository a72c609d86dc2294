//! Uses an unmodified posthog-rs as an application does and prints the results.
//!
//!     target/debug/posthog < task.json

use posthog_rs::{Client, ClientOptionsBuilder, EvaluateFlagsOptions, Event};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex};

#[derive(Deserialize)]
struct Task {
    url: String,
    project_key: String,
    personal_key: String,
    ids: Vec<Person>,
    run: String,
    probe: String,
}

#[derive(Deserialize)]
struct Person {
    id: String,
    properties: HashMap<String, Value>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let task: Task = serde_json::from_reader(io::stdin())?;
    let failures = Arc::new(Mutex::new(Vec::<String>::new()));
    let remote = client(&task, false, &failures).await?;
    let local = client(&task, true, &failures).await?;

    let mut seen = json!({"remote": {}, "local": {}});
    for person in &task.ids {
        seen["remote"][&person.id] = evaluate(&remote, &person.id, &person.properties, false).await?;
        seen["local"][&person.id] = evaluate(&local, &person.id, &person.properties, true).await?;
    }

    let stored = format!("{}-stored", task.run);
    let mut identify = Event::new("$identify", &stored);
    identify.insert_prop("$set", json!({"plan": "pro", "age": 42}))?;
    remote.capture(identify);
    for n in 0..25 {
        let mut event = Event::new("ordered".to_string(), format!("{}-user-{}", task.run, n % 5));
        event.insert_prop("n", n)?;
        event.insert_prop("note", "naïve 💻 \"quoted\"")?;
        remote.capture(event);
    }
    remote.alias(&stored, format!("{}-alias", task.run));
    remote.group_identify("organization", "acme", json!({"seats": 12}))?;
    let properties = HashMap::from([("plan".into(), json!("pro")), ("age".into(), json!(42))]);
    seen["flag"] = evaluate(&remote, &stored, &properties, false).await?[&task.probe].take();
    remote.shutdown().await;
    local.shutdown().await;
    seen["failures"] = json!(*failures.lock().unwrap());
    println!("{seen}");
    Ok(())
}

async fn client(task: &Task, local: bool, failures: &Arc<Mutex<Vec<String>>>) -> Result<Client, Box<dyn Error>> {
    let mut options = ClientOptionsBuilder::default();
    options.host(&task.url).api_key(task.project_key.clone());
    if local {
        options.secret_key(&task.personal_key).enable_local_evaluation(true).poll_interval_seconds(60);
    }
    let failures = failures.clone();
    options.on_error(move |e| failures.lock().unwrap().push(format!("{e:?}")));
    Ok(posthog_rs::client(options.build()?).await)
}

/// evaluate returns the value of every flag that the client could decide.
async fn evaluate(client: &Client, id: &str, properties: &HashMap<String, Value>, local: bool) -> Result<Value, Box<dyn Error>> {
    let options = EvaluateFlagsOptions {
        person_properties: Some(properties.clone()),
        only_evaluate_locally: local,
        ..Default::default()
    };
    let flags = client.evaluate_flags(id, options).await?;
    let mut values = Map::new();
    for key in flags.keys() {
        if let Some(value) = flags.get_flag(&key) {
            values.insert(key, serde_json::to_value(value)?);
        }
    }
    Ok(Value::Object(values))
}
