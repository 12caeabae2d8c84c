//! A server in a process of its own, and a client of a few lines.
#![allow(dead_code)] // each test uses some of it

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Runs the program, expects success, and returns what was printed.
pub fn done(folder: &Path, args: &str) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_neuralcb")).current_dir(folder).args(args.split_whitespace()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A running server; it is killed when the test ends.
pub struct Server {
    child: Child,
    scheme: String,
    pub address: String,
}

impl Server {
    /// Starts with those arguments on a free port and waits until it listens.
    pub fn start(folder: &Path, args: &str) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_neuralcb"))
            .current_dir(folder)
            .arg("serve")
            .args(args.split_whitespace())
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        // From here on it is killed whatever happens.
        let mut server = Server { child, scheme: String::new(), address: String::new() };
        let mut all = String::new();
        loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "the server did not start: {all}");
            if let Some((scheme, address)) =
                line.trim().strip_prefix("listening on ").and_then(|url| url.split_once("://"))
            {
                (server.scheme, server.address) = (scheme.to_owned(), address.to_owned());
                // What it says later must not fill the pipe.
                std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
                return server;
            }
            all += &line;
        }
    }

    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    pub fn client(&self) -> Client {
        Client::new(&self.address)
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// kill -9
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM, and the exit code.
    pub fn stop(mut self) -> Option<i32> {
        let sent = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(started.elapsed() < Duration::from_secs(60), "the server does not stop");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a client speaks over.
pub trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// One connection.
pub struct Client {
    stream: BufReader<Box<dyn Stream>>,
    pub headers: String,
}

impl Client {
    pub fn new(address: &str) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Client::over(stream)
    }

    pub fn over(stream: impl Stream + 'static) -> Client {
        Client { stream: BufReader::new(Box::new(stream)), headers: String::new() }
    }

    /// A request and its answer; the error is a connection that broke.
    pub fn try_ask(&mut self, method: &str, path: &str, body: &[u8]) -> std::io::Result<(u16, Vec<u8>)> {
        let (headers, length) = (&self.headers, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nhost: here\r\n{headers}content-length: {length}\r\n\r\n");
        self.send(&[head.as_bytes(), body].concat())?;
        self.answer()
    }

    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    pub fn answer(&mut self) -> std::io::Result<(u16, Vec<u8>)> {
        let (mut line, mut length) = (String::new(), 0);
        if self.stream.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or(std::io::ErrorKind::InvalidData)?;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse().unwrap()
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, body))
    }

    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let (status, body) = self.try_ask(method, path, body.as_bytes()).unwrap();
        (status, serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into()))
    }

    pub fn post(&mut self, path: &str, body: &str) -> (u16, Value) {
        self.ask("POST", path, body)
    }

    /// Posts and returns why it was refused.
    pub fn refused(&mut self, status: u16, path: &str, body: &str) -> String {
        let (found, answer) = self.post(path, body);
        assert_eq!(found, status, "{path}: {answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    }
}

/// The first lines of a file.
pub fn head(path: &Path, lines: usize) -> Vec<String> {
    fs::read_to_string(path).unwrap().lines().take(lines).map(str::to_owned).collect()
}
