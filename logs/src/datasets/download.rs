//! A file over HTTP, continued where an earlier attempt broke off.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use ureq::http::StatusCode;
use ureq::http::header::{CONTENT_RANGE, RANGE};
use ureq::{Agent, Body};

use super::DataError;
use crate::FileError;

/// Attempts per file. Each continues the one before, so that this many broken connections are survived but one.
const ATTEMPTS: u32 = 4;

/// Who downloads, and how patiently.
pub(super) struct Client {
    agent: Agent,
    /// Rest after the first failure; it doubles with each further one.
    rest: Duration,
}

/// What is to be downloaded.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub url: &'a str,
    /// The file written to, for messages.
    pub part: &'a Path,
    /// Bytes that must come, where they are known beforehand.
    pub bytes: Option<u64>,
    /// Bytes beyond which it cannot be the right file.
    pub limit: u64,
    /// Told how many bytes are there, and how many there will be, if the server says so.
    pub progress: &'a dyn Fn(u64, Option<u64>),
}

/// Why an attempt failed.
enum Failure {
    /// Another attempt may succeed.
    Passing(DataError),
    /// It would fail again.
    Final(DataError),
}

impl Client {
    /// A client that gives up on a server which stays silent for half a minute.
    pub fn new() -> Self {
        Client::with(Duration::from_secs(30), Duration::from_millis(500))
    }

    /// A client with its own patience.
    pub fn with(silence: Duration, rest: Duration) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_resolve(Some(silence))
            .timeout_connect(Some(silence))
            .timeout_recv_response(Some(silence))
            .timeout_per_read(Some(silence))
            .user_agent(concat!("neuralcb/", env!("CARGO_PKG_VERSION")))
            .build();
        Client { agent: config.into(), rest }
    }

    /// Downloads into `part`, whose content, if any, is the beginning of the file.
    pub fn download(&self, order: Order, part: &mut File) -> Result<(), DataError> {
        let mut rest = self.rest;
        let mut attempt = 1;
        loop {
            match self.attempt(order, part) {
                Ok(()) => return Ok(()),
                Err(Failure::Passing(_)) if attempt < ATTEMPTS => sleep(rest),
                Err(Failure::Passing(error) | Failure::Final(error)) => return Err(error),
            }
            rest *= 2;
            attempt += 1;
        }
    }

    fn attempt(&self, order: Order, part: &mut File) -> Result<(), Failure> {
        let have = part.seek(SeekFrom::End(0)).map_err(disk(order.part))?;
        let mut request = self.agent.get(order.url);
        if have > 0 {
            request = request.header(RANGE, format!("bytes={have}-"));
        }
        // A loopback address means this machine, never a proxy's.
        if ["http://127.0.0.1", "http://localhost"].iter().any(|local| order.url.starts_with(local)) {
            request = request.config().proxy(None).build();
        }
        let response = request.call().map_err(|e| network(order.url, e))?;
        let (status, range) = (response.status(), response.headers().get(CONTENT_RANGE));
        let continues = range.is_some_and(|v| v.to_str().is_ok_and(|v| v.starts_with(&format!("bytes {have}-"))));
        match status {
            StatusCode::PARTIAL_CONTENT if continues => {}
            // Not what was asked for, or nothing beyond what is here: what is here is of no use.
            StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE if have > 0 => {
                part.set_len(0).map_err(disk(order.part))?;
                return self.attempt(order, part);
            }
            // A server that knows no ranges sends the whole file.
            StatusCode::OK => part.set_len(0).map_err(disk(order.part))?,
            _ => return Err(refused(order.url, status)),
        }
        receive(order, response.into_body(), part)
    }
}

/// Writes a body to the end of `part`.
fn receive(order: Order, body: Body, part: &mut File) -> Result<(), Failure> {
    let mut have = part.seek(SeekFrom::End(0)).map_err(disk(order.part))?;
    let total = body.content_length().map(|rest| have + rest);
    let (mut body, mut buffer) = (body.into_reader(), vec![0; 1 << 16]);
    loop {
        (order.progress)(have, total);
        let n = body.read(&mut buffer).map_err(|e| network(order.url, e.into()))?;
        if n == 0 {
            break;
        }
        part.write_all(&buffer[..n]).map_err(disk(order.part))?;
        have += n as u64;
        if have > order.limit {
            part.set_len(0).map_err(disk(order.part))?; // not worth continuing
            let (from, limit) = (order.url.to_owned(), order.limit);
            return Err(Failure::Final(DataError::TooLong { from, limit }));
        }
    }
    // A body without a declared length ends with its connection, and so does a broken one.
    match order.bytes {
        Some(want) if total.is_none() && have < want => {
            Err(Failure::Passing(DataError::Cut { url: order.url.to_owned(), want, got: have }))
        }
        _ => Ok(()),
    }
}

fn refused(url: &str, status: StatusCode) -> Failure {
    let error = DataError::Status { url: url.to_owned(), status: status.as_u16() };
    match status.as_u16() {
        408 | 429 | 500 | 502..=504 => Failure::Passing(error),
        _ => Failure::Final(error),
    }
}

/// A server that cannot be found or reached at all is no matter of another attempt in a second.
fn network(url: &str, source: ureq::Error) -> Failure {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
    let passing = match &source {
        ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => false,
        ureq::Error::Timeout(_) | ureq::Error::Protocol(_) => true,
        ureq::Error::Io(e) => matches!(e.kind(), ConnectionReset | ConnectionAborted | UnexpectedEof | TimedOut),
        _ => false,
    };
    let error = DataError::Network { url: url.to_owned(), source: Box::new(source) };
    if passing { Failure::Passing(error) } else { Failure::Final(error) }
}

fn disk(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |source| Failure::Final(FileError::Write { path: path.to_path_buf(), source }.into())
}
