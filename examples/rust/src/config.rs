//! Reads a config, strictly: it collects what is wrong, and where.

use serde_json::{Map, Value};

use crate::guidon::plugin::v1::{Config, Diagnostic};
use crate::problem;

/// The fields of a config that were not read yet.
pub struct Fields {
    tree: Map<String, Value>,
    problems: Vec<Diagnostic>,
}

impl Fields {
    /// Takes a config apart. Values that came from a reference are apart, by their place.
    pub fn of(config: Option<Config>) -> Self {
        let config = config.unwrap_or_default();
        let mut root = serde_json::from_slice(&config.config_json).unwrap_or(Value::Null);
        for (pointer, secret) in config.secrets {
            let secret = Value::String(String::from_utf8_lossy(&secret).into_owned());
            if let Some(place) = root.pointer_mut(&pointer) {
                *place = secret;
            } else if let Value::Object(tree) = &mut root {
                tree.insert(pointer.trim_start_matches('/').to_string(), secret);
            }
        }
        match root {
            Value::Object(tree) => Self { tree, problems: vec![] },
            _ => Self { tree: Map::new(), problems: vec![problem("", "the config is not a JSON object")] },
        }
    }

    /// Reads a text that must be there.
    pub fn text(&mut self, key: &str) -> String {
        match self.tree.remove(key) {
            Some(Value::String(text)) => return text,
            Some(_) => self.refuse(key, "must be a string"),
            None => self.refuse(key, "required"),
        }
        String::new()
    }

    /// Refuses the value of a field.
    pub fn refuse(&mut self, key: &str, why: &str) {
        self.problems.push(problem(&format!("/{}", key.replace('~', "~0").replace('/', "~1")), why));
    }

    /// Returns what is wrong. A field that was not read is unknown.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        for key in std::mem::take(&mut self.tree).keys() {
            self.refuse(key, "unknown key");
        }
        self.problems
    }
}
