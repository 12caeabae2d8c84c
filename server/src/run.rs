//! A server from its settings to its end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use neuralcb_logs::log::Missing;
use thiserror::Error;
use tokio::runtime::Builder;
use tokio::time::interval;

use crate::decide::DecideError;
use crate::http::{Limits, Listener, TlsError, TokenError, Tokens, serve, tls};
use crate::journal::{Durability, Folder, Journal, JournalError, Options, RealDisk};
use crate::open_files::connections;
use crate::say;
use crate::service::{Models, Service, ServiceConfig};

/// Everything that a server is told.
#[derive(Debug, Clone)]
pub struct RunConfig {
    /// Names and files of the policies; the first is the champion.
    pub policies: Vec<(String, PathBuf)>,
    /// The folder of the decision log.
    pub data: PathBuf,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The file of the tokens.
    pub token_file: Option<PathBuf>,
    /// PEM files of certificate and key, for TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// When a request is answered.
    pub durability: Durability,
    /// Bytes after which a segment is closed.
    pub segment_bytes: u64,
    /// Time after which a segment is closed.
    pub segment_age: Duration,
    /// What happens to a number that is not there.
    pub missing: Missing,
    /// How decisions are made.
    pub service: ServiceConfig,
    /// What callers may ask.
    pub limits: Limits,
}

/// Why a server does not start.
#[derive(Debug, Error)]
pub enum RunError {
    /// A policy cannot be used.
    #[error(transparent)]
    Policy(#[from] DecideError),
    /// The log cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The tokens cannot be read.
    #[error(transparent)]
    Tokens(#[from] TokenError),
    /// Certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Two policies of one name.
    #[error("policy `{0}` is given twice: name each differently, by --policy NAME=FILE")]
    TwoOfOneName(String),
    /// Open to others, without a token.
    #[error("listening on {0} lets others in: give tokens by --token-file, or listen on 127.0.0.1")]
    Unguarded(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; name another by --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
    },
    /// No threads.
    #[error("cannot start: {0}")]
    Start(std::io::Error),
}

/// How often files of policies are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Serves until the process is told to end; `ready` is told the address.
pub fn run(config: RunConfig, ready: impl FnOnce(SocketAddr)) -> Result<(), RunError> {
    let mut names: Vec<&str> = config.policies.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(RunError::TwoOfOneName(twice[0].to_owned()));
    }
    let tokens = config.token_file.as_deref().map_or_else(|| Ok(Tokens::default()), Tokens::read)?;
    if !config.listen.ip().is_loopback() && !tokens.are_asked_for() {
        return Err(RunError::Unguarded(config.listen));
    }
    let tls = config.tls.as_ref().map(|(cert, key)| tls(cert, key)).transpose()?;
    let models = Models::load(&config.policies, config.missing, config.service.exploration)?;
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(RunError::Start)?;
    runtime.block_on(async {
        let failed = |source| RunError::Listen { address: config.listen, source };
        let listener = Listener::bind(config.listen, tls).await.map_err(failed)?;
        let address = listener.address().map_err(failed)?;
        let (folder, recovered) = Folder::open(&config.data)?;
        if recovered.segments > 0 {
            say("recovered", &[("segments", recovered.segments.into()), ("torn_bytes", recovered.torn.into())]);
        }
        let service = Service::new(config.service, models, |server| {
            let (durability, segment_bytes, segment_age) =
                (config.durability, config.segment_bytes, config.segment_age);
            Journal::start(folder, Box::new(RealDisk), Options { durability, segment_bytes, segment_age, server })
        })?;
        let service = Arc::new(service);
        tokio::spawn(watch(service.clone()));
        let (wanted, mut limits) = (config.limits.max_connections, config.limits);
        limits.max_connections = connections(wanted);
        if limits.max_connections < wanted {
            let cure = "raise the limit of open files, `ulimit -n`";
            say("fewer connections", &[("most", limits.max_connections.into()), ("cure", cure.into())]);
        }
        let stop = stopped().map_err(RunError::Start)?;
        ready(address);
        serve(listener, service, tokens, limits, stop).await;
        say("stopped", &[]);
        Ok(())
    })
}

/// Looks after the models' files.
async fn watch(service: Arc<Service>) {
    let mut ticks = interval(LOOK);
    loop {
        ticks.tick().await;
        let service = service.clone();
        let Ok(done) = tokio::task::spawn_blocking(move || service.models.refresh()).await else { continue };
        for (name, done) in done {
            match done {
                Ok(policy) => say("model", &[("name", name.into()), ("policy", policy.into())]),
                Err(error) => say("model refused", &[("name", name.into()), ("reason", error.to_string().into())]),
            }
        }
    }
}

/// Done when the process is told to end.
fn stopped() -> std::io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
    })
}
