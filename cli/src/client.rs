//! Traffic for a server: contexts of a bandit with a known truth, decisions over HTTP, rewards that come later.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use neuralcb::bandit::Bandit;
use neuralcb::{Contexts, Encoding, Seed};
use serde_json::{Value, json};

use crate::{args, out};

/// How a server is asked.
#[derive(clap::Args)]
pub struct Traffic {
    /// With --client: rounds of the bandit to leave out, which an earlier run has played
    #[arg(long, default_value_t = 0, requires = "client")]
    skip: usize,
    /// With --client: the time after which a reward comes
    #[arg(long, default_value = "0s", value_parser = args::time, requires = "client")]
    delay: Duration,
    /// With --client: connections at a time
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000), requires = "client")]
    connections: u32,
    /// With --client: requests per second, of all connections together; by default as many as the server answers
    #[arg(long, requires = "client", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// With --client: send no rewards, only ask for decisions
    #[arg(long, requires = "client")]
    no_rewards: bool,
    /// With --client: the token to send
    #[arg(long, requires = "client")]
    token: Option<String>,
}

/// What a connection has seen.
#[derive(Default)]
struct Seen {
    rewards: f64,
    expected: f64,
    best: f64,
    latencies: Vec<Duration>,
}

/// Plays `n` rounds of a bandit with a server and tells what it earned.
pub fn run(url: &str, bandit: &dyn Bandit, n: usize, seed: u64, traffic: &Traffic) -> anyhow::Result<()> {
    ensure!(n > 0, "`--n` must be at least 1, got 0");
    let seed = Seed::new(seed).child("traffic");
    let (contexts, expected) = bandit.draw(traffic.skip + n, &mut seed.stream("contexts"))?;
    let next = AtomicUsize::new(0);
    let started = Instant::now();
    let worker = || -> anyhow::Result<Seen> {
        let mut client = Client::connect(url, traffic.token.clone())?;
        let (mut seen, mut due) = (Seen::default(), VecDeque::new());
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= n {
                break;
            }
            if let Some(rate) = traffic.rate {
                let at = started + Duration::from_secs_f64(i as f64 / f64::from(rate));
                thread::sleep(at.saturating_duration_since(Instant::now()));
            }
            let t = traffic.skip + i;
            let (event, body) = (format!("sim-{:x}-{t}", seed.value()), request(&contexts, t));
            let asked = Instant::now();
            let answer = client.post("/v1/rank", &with_event(body, &event))?;
            seen.latencies.push(asked.elapsed());
            let action = answer["rewardActionId"].as_str().and_then(|id| id.parse::<usize>().ok());
            let place = action.and_then(|action| contexts.place(t, action));
            let place = place.with_context(|| format!("the server chose an action that was not offered: {answer}"))?;
            let means = &expected[contexts.pairs(t)];
            let reward = bandit.draw_reward(means[place], &mut seed.nth(t as u64).stream("reward"));
            seen.rewards += reward;
            seen.expected += means[place];
            seen.best += means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            due.push_back((Instant::now() + traffic.delay, event, reward));
            client.send_due(&mut due, Instant::now(), traffic.no_rewards)?;
        }
        while let Some((at, ..)) = due.front() {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            client.send_due(&mut due, Instant::now(), traffic.no_rewards)?;
        }
        Ok(seen)
    };
    let seen: Vec<Seen> = thread::scope(|scope| {
        let workers: Vec<_> = (0..traffic.connections).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect::<Result<_, _>>()
    })?;
    let took = started.elapsed().as_secs_f64();
    let mut latencies: Vec<Duration> = seen.iter().flat_map(|seen| seen.latencies.iter().copied()).collect();
    latencies.sort_unstable();
    let quantile = |q: f64| latencies[((latencies.len() - 1) as f64 * q) as usize].as_secs_f64();
    let mean = |of: fn(&Seen) -> f64| seen.iter().map(of).sum::<f64>() / n as f64;
    let about = json!({
        "rounds": n,
        "seconds": took,
        "decisions_per_second": n as f64 / took,
        "latency_seconds": {"p50": quantile(0.5), "p99": quantile(0.99), "max": quantile(1.0)},
        "mean_reward": mean(|seen| seen.rewards),
        "value": mean(|seen| seen.expected),
        "best_value": mean(|seen| seen.best),
    });
    out::print(&format!("{about}\n"))?;
    Ok(())
}

/// What a server is asked in a round; features are called as in the logs of `neuralcb simulate`.
fn request(contexts: &Contexts, t: usize) -> String {
    let own = contexts.layout().encoding == Encoding::PerAction;
    let features = |x: &[f32]| {
        let named: Vec<String> = x.iter().enumerate().map(|(j, v)| format!("\"x{j}\":{v}")).collect();
        format!("{{{}}}", named.join(","))
    };
    let action = |place: usize| {
        let pair = contexts.pair(t, place);
        match own {
            true => format!("{{\"id\":\"{}\",\"features\":[{}]}}", pair.action, features(pair.x)),
            false => format!("{{\"id\":\"{}\"}}", pair.action),
        }
    };
    let actions: Vec<String> = (0..contexts.pairs(t).len()).map(action).collect();
    let shared = if own { "[]".to_owned() } else { format!("[{}]", features(contexts.pair(t, 0).x)) };
    format!("{{\"contextFeatures\":{shared},\"actions\":[{}]}}", actions.join(","))
}

fn with_event(mut body: String, event: &str) -> String {
    body.pop();
    body + &format!(",\"eventId\":\"{event}\"}}")
}

/// One connection that is kept.
struct Client {
    stream: BufReader<TcpStream>,
    host: String,
    token: Option<String>,
}

impl Client {
    fn connect(url: &str, token: Option<String>) -> anyhow::Result<Client> {
        let host =
            url.strip_prefix("http://").with_context(|| format!("`--client` must begin with http://, got `{url}`"))?;
        let host = host.trim_end_matches('/').to_owned();
        let stream =
            TcpStream::connect(&host).with_context(|| format!("cannot connect to `{url}`: is the server running?"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Client { stream: BufReader::new(stream), host, token })
    }

    fn send_due(
        &mut self,
        due: &mut VecDeque<(Instant, String, f64)>,
        now: Instant,
        forget: bool,
    ) -> anyhow::Result<()> {
        while let Some((at, event, reward)) = due.front() {
            if *at > now {
                break;
            }
            if !forget {
                self.post(&format!("/v1/events/{event}/reward"), &format!("{{\"value\":{reward}}}"))?;
            }
            due.pop_front();
        }
        Ok(())
    }

    fn post(&mut self, path: &str, body: &str) -> anyhow::Result<Value> {
        let token = self.token.as_ref().map_or(String::new(), |token| format!("authorization: Bearer {token}\r\n"));
        let (host, length) = (&self.host, body.len());
        let head = format!("POST {path} HTTP/1.1\r\nhost: {host}\r\n{token}content-length: {length}\r\n\r\n");
        self.stream.get_mut().write_all((head + body).as_bytes())?;
        let (mut line, mut length) = (String::new(), 0);
        self.stream.read_line(&mut line)?;
        let status: u16 = line.split(' ').nth(1).and_then(|code| code.parse().ok()).context("the server hung up")?;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.trim().parse()?,
                Some(_) => {}
                None => break,
            }
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer)?;
        if !(200..300).contains(&status) {
            bail!("the server answered {status}: {}", String::from_utf8_lossy(&answer));
        }
        Ok(if answer.is_empty() { Value::Null } else { serde_json::from_slice(&answer)? })
    }
}
