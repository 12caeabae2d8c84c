//! From a path to the service and back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes};
use hyper::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use hyper::{HeaderMap, Method, Request, StatusCode};
use neuralcb_logs::log::Json;
use neuralcb_logs::log::json::parse_object;
use serde::Serialize;

use super::answer::{Answer, Failure, bytes_of, json, nothing};
use super::listen::Limits;
use super::tokens::{Right, Tokens};
use crate::decide::{RankRequest, event_id};
use crate::metrics::What;
use crate::service::{RankAnswer, Refused, Service};

/// What every connection shares.
pub(super) struct App {
    pub service: Arc<Service>,
    pub tokens: Tokens,
    pub limits: Limits,
}

/// What a path asks for.
enum Route<'a> {
    Rank,
    RankBatch,
    Reward(&'a str),
    Activate(&'a str),
    Models,
    Replace(&'a str),
    Stats,
    Recent,
    Metrics,
    Live,
    Ready,
    OpenApi,
    Page,
}

#[derive(Serialize)]
struct Batch {
    results: Vec<RankAnswer>,
}

impl App {
    /// Serves one request; whatever goes wrong is an answer too.
    pub async fn handle<B>(self: Arc<App>, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let (parts, body) = request.into_parts();
        let route = route(&parts.method, parts.uri.path());
        let what = match &route {
            Ok(Route::Rank | Route::RankBatch) => Some(What::Rank),
            Ok(Route::Reward(_) | Route::Activate(_)) => Some(What::Reward),
            _ => None,
        };
        let mut started = Instant::now();
        let answer = async {
            let route = route?;
            self.allow(&route, &parts.headers)?;
            let body = self.body(&route, &parts.headers, body).await?;
            started = Instant::now();
            self.serve(route, parts.uri.query().unwrap_or_default(), &body).await
        };
        let answer = answer.await.unwrap_or_else(|failure: Failure| failure.answer());
        self.service.metrics.answered(what, answer.status().as_u16(), started.elapsed());
        answer
    }

    fn allow(&self, route: &Route<'_>, headers: &HeaderMap) -> Result<(), Failure> {
        let right = match route {
            Route::Rank | Route::RankBatch | Route::Reward(_) | Route::Activate(_) => Right::Rank,
            Route::Models | Route::Stats | Route::Recent | Route::Metrics => Right::Read,
            Route::Replace(_) => Right::Admin,
            Route::Live | Route::Ready | Route::OpenApi | Route::Page => return Ok(()),
        };
        self.tokens.allow(right, headers).map_err(|known| match known {
            true => Failure::new(
                StatusCode::FORBIDDEN,
                format!("this token lacks the right `{right:?}`: use another").to_lowercase(),
            ),
            false => {
                Failure::new(StatusCode::UNAUTHORIZED, "a known token is missing: send `Authorization: Bearer TOKEN`")
            }
        })
    }

    /// The bytes of the body, no more than are allowed and no longer than it may take.
    async fn body<B>(&self, route: &Route<'_>, headers: &HeaderMap, body: B) -> Result<Bytes, Failure>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let (most, option) = match route {
            Route::Replace(_) => (self.limits.max_policy, "--max-policy"),
            _ => (self.limits.max_body, "--max-body"),
        };
        let too_large = || {
            Failure::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("a body may have {most} bytes: send less, or raise {option}"),
            )
        };
        let stated = headers.get(hyper::header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
        if stated.is_some_and(|length| length > most as u64) {
            return Err(too_large());
        }
        match tokio::time::timeout(self.limits.body_time, Limited::new(body, most).collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
            Ok(Err(error)) => {
                Err(Failure::new(StatusCode::BAD_REQUEST, format!("the body did not come whole: {error}")))
            }
            Err(_) => {
                let within = self.limits.body_time.as_secs_f64();
                Err(Failure::new(
                    StatusCode::REQUEST_TIMEOUT,
                    format!("the body did not come within {within} s: send it faster"),
                ))
            }
        }
    }

    async fn serve(&self, route: Route<'_>, query: &str, body: &[u8]) -> Result<Answer, Failure> {
        let service = &self.service;
        let explain = query.split('&').any(|part| part == "explain" || part == "explain=true");
        Ok(match route {
            Route::Rank => {
                let request = RankRequest::parse(body).map_err(Refused::from)?;
                json(StatusCode::CREATED, &service.rank(request, explain).await?)
            }
            Route::RankBatch => {
                let requests = RankRequest::parse_batch(body, service.config.max_batch).map_err(Refused::from)?;
                json(StatusCode::CREATED, &Batch { results: service.rank_all(requests, explain).await? })
            }
            Route::Reward(event) => {
                let (value, id) = reward(body)?;
                service.reward(event_of(event)?, value, id).await?;
                nothing()
            }
            Route::Activate(event) => {
                service.activate(event_of(event)?).await?;
                nothing()
            }
            Route::Models => json(StatusCode::OK, &service.models.about()),
            Route::Replace(name) => {
                let replaced = tokio::task::block_in_place(|| service.models.replace(name, body))?;
                crate::say("model", &[("name", name.into()), ("policy", replaced.policy.as_str().into())]);
                json(StatusCode::OK, &replaced)
            }
            Route::Stats => bytes_of(StatusCode::OK, "application/json", Bytes::from(service.stats.to_json())),
            Route::Recent => json(StatusCode::OK, &tokio::task::block_in_place(|| service.recent())),
            Route::Metrics => {
                let text = service.metrics.text(service.journal.counters());
                bytes_of(StatusCode::OK, "text/plain; version=0.0.4", Bytes::from(text))
            }
            Route::Live => json(StatusCode::OK, &"live"),
            Route::Ready => match service.journal.failing() {
                None => json(StatusCode::OK, &"ready"),
                Some(reason) => {
                    let message = format!("the decision log cannot be written: {reason}; free space or mend the disk");
                    return Err(Failure::new(StatusCode::SERVICE_UNAVAILABLE, message));
                }
            },
            Route::OpenApi => {
                bytes_of(StatusCode::OK, "application/json", Bytes::from_static(include_bytes!("openapi.json")))
            }
            Route::Page => {
                let page = Bytes::from_static(include_bytes!("page.html"));
                let mut answer = bytes_of(StatusCode::OK, "text/html; charset=utf-8", page);
                answer.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PAGE_MAY));
                answer
            }
        })
    }
}

fn route<'a>(method: &Method, path: &'a str) -> Result<Route<'a>, Failure> {
    let personalizer =
        path.strip_prefix("/personalizer/v1.").and_then(|rest| rest.split_once('/')).map(|(_, rest)| rest);
    let path = personalizer.unwrap_or_else(|| path.strip_prefix('/').unwrap_or(path));
    let parts: Vec<&str> = match personalizer {
        Some(_) => ["v1"].into_iter().chain(path.split('/')).collect(),
        None => path.split('/').collect(),
    };
    let (allowed, route) = match parts[..] {
        ["v1", "rank"] => ("POST", Route::Rank),
        ["v1", "rank", "batch"] => ("POST", Route::RankBatch),
        ["v1", "events", event, "reward"] => ("POST", Route::Reward(event)),
        ["v1", "events", event, "activate"] => ("POST", Route::Activate(event)),
        ["v1", "models"] => ("GET", Route::Models),
        ["v1", "models", name] => ("POST", Route::Replace(name)),
        ["v1", "stats"] => ("GET", Route::Stats),
        ["v1", "recent"] => ("GET", Route::Recent),
        ["metrics"] => ("GET", Route::Metrics),
        ["health", "live"] => ("GET", Route::Live),
        ["health", "ready"] => ("GET", Route::Ready),
        ["openapi.json"] => ("GET", Route::OpenApi),
        [""] => ("GET", Route::Page),
        ["v1", "multislot", ..] => {
            return Err(Failure::new(
                StatusCode::NOT_FOUND,
                "multi-slot requests are not served: ask for one action at a time",
            ));
        }
        _ => {
            return Err(Failure::new(
                StatusCode::NOT_FOUND,
                "there is nothing at this path: /openapi.json lists what there is",
            ));
        }
    };
    if method.as_str() != allowed {
        let mut failure = Failure::new(StatusCode::METHOD_NOT_ALLOWED, format!("use {allowed} here"));
        failure.allow = Some(allowed);
        return Err(failure);
    }
    Ok(route)
}

/// The name of an event in a path.
fn event_of(part: &str) -> Result<String, Failure> {
    let refused =
        || Failure::new(StatusCode::BAD_REQUEST, "the event's name in the path is not UTF-8, written with %XX");
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first == b'%' {
            let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
            bytes.push(hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).ok_or_else(refused)?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
        }
    }
    let name = String::from_utf8(bytes).map_err(|_| refused())?;
    Ok(event_id("eventId", Json::Text(name)).map_err(Refused::from)?)
}

/// The body of a reward: `{"value": 1, "rewardId": "…"}`.
fn reward(body: &[u8]) -> Result<(f64, Option<String>), Failure> {
    let refused = |message: String| Failure::new(StatusCode::BAD_REQUEST, message);
    let (mut value, mut id) = (None, None);
    for (name, json) in parse_object(body).map_err(|e| refused(e.to_string()))? {
        match (name.as_str(), json) {
            ("value", Json::Integer(v)) => value = Some(v as f64),
            ("value", Json::Number(v)) if v.is_finite() => value = Some(v),
            ("value", other) => return Err(refused(format!("`value` must be a finite number, got {other}"))),
            ("rewardId", Json::Null) => {}
            ("rewardId", json) => id = Some(event_id("rewardId", json).map_err(Refused::from)?),
            _ => return Err(refused(format!("`{name}` is not known: use value, rewardId"))),
        }
    }
    match value {
        Some(value) => Ok((value, id)),
        None => Err(refused("`value` is missing: it must be a finite number".to_owned())),
    }
}

/// The page asks its own server and nobody else.
const PAGE_MAY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                        img-src data:; frame-ancestors 'none'";

/// How long a request may take once it is read.
pub(super) const WORK: Duration = Duration::from_secs(30);
