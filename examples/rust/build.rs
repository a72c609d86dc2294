//! Compiles the messages of the contract. protox needs no protoc.

use std::{error::Error, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = if Path::new("proto").is_dir() { "proto" } else { "../../sdk/proto" };
    let files = protox::compile(
        [
            "guidon/plugin/v1/plugin.proto",
            "guidon/sink/v1/sink.proto",
            "guidon/notify/v1/notify.proto",
            "guidon/match/v1/match.proto",
            "goplugin/grpc_controller.proto",
            "goplugin/grpc_stdio.proto",
        ],
        [dir],
    )?;
    tonic_prost_build::configure().build_client(false).compile_fds(files)?;
    println!("cargo:rerun-if-changed={dir}");
    Ok(())
}
