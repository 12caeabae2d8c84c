//! Answers: JSON, and of what is refused the cause and the cure.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use crate::service::Refused;

/// An answer.
pub(super) type Answer = Response<Full<Bytes>>;

/// A request that is not served: its status, a word for programs, and a message with cause and cure.
#[derive(Debug)]
pub(super) struct Failure {
    pub status: StatusCode,
    pub message: String,
    /// The method to use instead.
    pub allow: Option<&'static str>,
}

#[derive(Serialize)]
struct Body<'a> {
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: &'a str,
    message: &'a str,
}

impl Failure {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into(), allow: None }
    }

    pub fn answer(&self) -> Answer {
        let code = match self.status {
            StatusCode::BAD_REQUEST => "BadRequest",
            StatusCode::UNAUTHORIZED => "Unauthorized",
            StatusCode::FORBIDDEN => "Forbidden",
            StatusCode::NOT_FOUND => "NotFound",
            StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowed",
            StatusCode::REQUEST_TIMEOUT => "RequestTimeout",
            StatusCode::PAYLOAD_TOO_LARGE => "PayloadTooLarge",
            StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
            _ => "InternalServerError",
        };
        let mut answer = json(self.status, &Body { error: Error { code, message: &self.message } });
        let headers = answer.headers_mut();
        if let Some(method) = self.allow {
            headers.insert(header::ALLOW, HeaderValue::from_static(method));
        }
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            // The rest of a body that is not read would be taken for the next request.
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        answer
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        let status = match &refused {
            Refused::Request(_) => StatusCode::BAD_REQUEST,
            Refused::Unlogged(_) => StatusCode::SERVICE_UNAVAILABLE,
            Refused::NoModel { .. } => StatusCode::NOT_FOUND,
        };
        Failure::new(status, refused.to_string())
    }
}

/// An answer of JSON.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let bytes = serde_json::to_vec(value).expect("plain data");
    bytes_of(status, "application/json", Bytes::from(bytes))
}

/// An answer of some type.
pub(super) fn bytes_of(status: StatusCode, kind: &'static str, bytes: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(bytes));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// Done, and nothing to say.
pub(super) fn nothing() -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}
