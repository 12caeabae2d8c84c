//! The service over HTTP/1.1.
//!
//! | request | right | answer |
//! |---|---|---|
//! | `POST /v1/rank` (`?explain`) | rank | 201, a decision |
//! | `POST /v1/rank/batch` (`?explain`) | rank | 201, many |
//! | `POST /v1/events/{eventId}/reward` | rank | 204 |
//! | `POST /v1/events/{eventId}/activate` | rank | 204 |
//! | `GET /v1/models`, `/v1/stats`, `/v1/recent`, `/metrics` | read | 200 |
//! | `POST /v1/models/{name}` | admin | 200, the new model |
//! | `GET /`, `/health/live`, `/health/ready`, `/openapi.json` | none | 200 |
//!
//! `/personalizer/v1.0/…` stands for `/v1/…`, with any version 1: clients of the Azure Personalizer API need a new
//! address only.
//!
//! hyper alone: a dozen routes need no router, and every refusal, a wrong path or method too, is one kind of answer.

mod answer;
mod listen;
mod patience;
mod routes;
mod tls;
mod tokens;

pub use listen::{Limits, Listener, serve};
pub use tls::{TlsError, tls};
pub use tokens::{Right, TokenError, Tokens};
