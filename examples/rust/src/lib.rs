//! What a Guidon plugin needs beside its own work. serve.rs is the life of the process,
//! instances.rs the service that every plugin has, config.rs the reading of a config. The
//! plugin itself is the program beside this library; docs/plugins/contract.md states what
//! all of them keep to.

pub mod config;
pub mod instances;
pub mod serve;

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
    pub mod notify {
        pub mod v1 {
            tonic::include_proto!("guidon.notify.v1");
        }
    }
    pub mod r#match {
        pub mod v1 {
            tonic::include_proto!("guidon.r#match.v1");
        }
    }
}

/// The messages of go-plugin.
mod goplugin {
    tonic::include_proto!("plugin");
}

use guidon::plugin::v1::{Diagnostic, Error, diagnostic::Severity, error::Class};

/// The largest request that the plugin takes.
pub const MAX_MESSAGE: usize = 64 << 20;

/// Makes an error of the contract.
pub fn error(class: Class, code: &str, message: impl ToString, pointer: &str) -> Error {
    Error { class: class.into(), code: code.to_string(), message: message.to_string(), pointer: pointer.to_string(), ..Default::default() }
}

/// Makes a remark that refuses a config or the value of a filter.
pub fn problem(pointer: &str, summary: impl ToString) -> Diagnostic {
    Diagnostic { severity: Severity::Error.into(), pointer: pointer.to_string(), summary: summary.to_string(), ..Default::default() }
}
