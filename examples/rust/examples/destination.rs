//! Runs a command beside a webhook that counts its messages in the file messages:
//!
//! cargo run --example destination -- guidon plugin test ./plugin --messages "cat messages"

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Result, Write},
    net::{TcpListener, TcpStream},
    process::{Command, exit},
    thread,
};

/// Reads a request and answers it.
fn receive(stream: TcpStream) -> Result<()> {
    let mut input = BufReader::new(&stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        input.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    input.read_exact(&mut vec![0; length])?;
    (&stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

fn main() -> Result<()> {
    fs::write("messages", "0")?;
    let listener = TcpListener::bind("127.0.0.1:8099")?;
    thread::spawn(move || {
        let mut messages = 0;
        for stream in listener.incoming().flatten() {
            messages += 1;
            // The count is written before the answer, so the kit finds it.
            if fs::write("messages", messages.to_string()).is_err() || receive(stream).is_err() {
                eprintln!("a message was lost");
            }
        }
    });
    let mut arguments = env::args().skip(1);
    let status = Command::new(arguments.next().expect("a command")).args(arguments).status()?;
    exit(status.code().unwrap_or(1));
}
