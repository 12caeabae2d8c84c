//! Connections: accepted, limited, drained at the end.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode, body::Incoming};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use super::answer::{Answer, Failure};
use super::patience::Patient;
use super::routes::{App, WORK};
use super::tokens::Tokens;
use crate::service::Service;

/// What callers may ask of the server's memory and time.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Bytes of a body.
    pub max_body: usize,
    /// Bytes of a policy file.
    pub max_policy: usize,
    /// Connections at a time.
    pub max_connections: usize,
    /// Time for a request's head, between two requests of a connection, and for a caller to take some of its answer.
    pub head_time: Duration,
    /// Time for its body.
    pub body_time: Duration,
    /// Time for what is under way when the server stops.
    pub drain_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            max_body: 4 << 20,
            max_policy: 1 << 30,
            max_connections: 10_000,
            head_time: Duration::from_secs(30),
            body_time: Duration::from_secs(10),
            drain_time: Duration::from_secs(10),
        }
    }
}

/// A bound address, perhaps behind TLS.
pub struct Listener {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
}

impl Listener {
    /// Binds an address.
    pub async fn bind(address: SocketAddr, tls: Option<TlsAcceptor>) -> io::Result<Listener> {
        Ok(Listener { listener: TcpListener::bind(address).await?, tls })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Serves connections until `stop` is done; then waits for what is under way and closes the log.
pub async fn serve(
    listener: Listener,
    service: Arc<Service>,
    tokens: Tokens,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(limits.max_connections));
    let (most, drain_time) = (limits.max_connections as u32, limits.drain_time);
    let app = Arc::new(App { service: service.clone(), tokens, limits });
    let (stopping, stopped) = watch::channel(false);
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = listener.listener.accept() => accepted,
            () = &mut stop => break,
        };
        let Ok((stream, _)) = accepted else {
            // Out of file descriptors, or the caller has gone: others may be on their way.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            // Behind TLS it costs more to say so than to hang up.
            if listener.tls.is_none() {
                tokio::spawn(turn_away(stream));
            }
            continue;
        };
        let (app, stopped, tls) = (app.clone(), stopped.clone(), listener.tls.clone());
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let stream = Patient::new(stream, app.limits.head_time);
            match tls {
                None => connection(stream, app, stopped).await,
                Some(tls) => {
                    // A caller that does not speak TLS, or not in time, is dropped: there is no answer that it could
                    // read.
                    if let Ok(Ok(stream)) = tokio::time::timeout(app.limits.head_time, tls.accept(stream)).await {
                        connection(stream, app, stopped).await;
                    }
                }
            }
            drop(place);
        });
    }
    drop(listener);
    let _ = stopping.send(true);
    // All places are free once the last connection is done.
    let _ = tokio::time::timeout(drain_time, places.acquire_many(most)).await;
    let _ = tokio::task::spawn_blocking(move || service.stop()).await;
}

/// Serves one connection, request by request.
async fn connection<S>(stream: S, app: Arc<App>, mut stopped: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let head_time = app.limits.head_time;
    let service = service_fn(move |request: Request<Incoming>| {
        let app = app.clone();
        async move { Ok::<Answer, Infallible>(guarded(app, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(head_time)
        .max_buf_size(64 << 10)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => {}
        () = async { drop(stopped.wait_for(|stopped| *stopped).await) } => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

/// An answer whatever happens: a panic or endless work costs its own request only.
///
/// The work is a task of its own: a caller that goes away does not cut a decision between its log and its count.
async fn guarded(app: Arc<App>, request: Request<Incoming>) -> Answer {
    let body_time = app.limits.body_time;
    let work = tokio::spawn(app.handle(request));
    let (status, message) = match tokio::time::timeout(body_time + WORK, work).await {
        Ok(Ok(answer)) => return answer,
        Ok(Err(_)) => (StatusCode::INTERNAL_SERVER_ERROR, "the server failed at this request: please report it"),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the server is too busy to answer in time: send less"),
    };
    Failure::new(status, message).answer()
}

/// Tells a caller that there are too many.
async fn turn_away(mut stream: TcpStream) {
    let message = "too many connections: close some, or raise --max-connections";
    let body = format!(r#"{{"error":{{"code":"ServiceUnavailable","message":"{message}"}}}}"#);
    let head =
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nconnection: close\r\nretry-after: 1";
    let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let _ = tokio::time::timeout(Duration::from_secs(1), stream.write_all(answer.as_bytes())).await;
}
