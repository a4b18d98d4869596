//! What every request passes: who may ask, how much, from which pages, and how long; and what is counted of it.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Bytes, HttpBody};
use axum::extract::rejection::RawPathParamsRejection;
use axum::extract::{RawPathParams, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION,
    CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, ORIGIN, VARY, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use crate::server::{RELOAD, Server, refused};

/// What stands before a token.
const SCHEME: &[u8] = b"Bearer ";
/// What all may ask: whether the server is there, whether its models are fresh, and the page, which asks for the token.
const OPEN: [&str; 4] = ["/", "/health", "/ready", "/fresh"];
/// What is counted of a question whose client has gone, as nginx has it.
const GONE: u16 = 499;
/// Bytes of a refused body that are read at most.
const MOST_FORGOTTEN: usize = 16 << 20;

/// Lets in who knows the token, or without one who calls the server by a name that it has. Pages of other origins that may ask may read the
/// answer too.
pub async fn guard(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let origin = request.headers().get(ORIGIN).cloned();
    if server.token.is_none()
        && let Some(problem) = server.hosts.problem(request.headers())
    {
        let problem = format!(
            "{problem}, and a server without a token answers to these only; start it with --allow-host NAME, or with --token-file FILE"
        );
        return counted(&server, refused(StatusCode::FORBIDDEN, problem));
    }
    let response = if asks_beforehand(&request) {
        allowed()
    } else if let Some(token) = &server.token
        && !OPEN.contains(&request.uri().path())
        && !knows(token, request.headers())
    {
        let refused = refused(StatusCode::UNAUTHORIZED, "expected the header \"Authorization: Bearer TOKEN\"");
        forget(request, server.time_limit / 2).await;
        counted(&server, ([(WWW_AUTHENTICATE, "Bearer")], refused).into_response())
    } else {
        next.run(request).await
    };
    readable(response, origin)
}

/// Counts a request that came to no question.
pub fn counted(server: &Server, response: Response) -> Response {
    server.metrics.refused("", "", response.status().as_u16());
    response
}

/// Refuses a body before it is sent.
fn unreadable(headers: &HeaderMap, body_limit: usize) -> Option<Response> {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > body_limit as u64) {
        return Some(too_large(body_limit));
    }
    let coding = headers.get(CONTENT_ENCODING).filter(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))?;
    let problem = format!("the body is {}; send it as it is", String::from_utf8_lossy(coding.as_bytes()));
    Some(refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem))
}

/// Reads a body that is refused, as far as it is not too long, and forgets it: many clients send all of it before they look for an answer.
async fn forget(request: Request, patience: Duration) {
    if request.headers().contains_key(EXPECT) {
        // Who asks first sends nothing.
        return;
    }
    let (mut body, mut left) = (request.into_body(), MOST_FORGOTTEN);
    let all = async {
        while let Some(Ok(frame)) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let Some(rest) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return };
            left = rest;
        }
    };
    let _ = tokio::time::timeout(patience, all).await;
}

/// What a body gets that has more than so many bytes.
pub fn too_large(body_limit: usize) -> Response {
    let problem = format!("the body has more than {body_limit} bytes (--body-limit); ask for less at a time");
    refused(StatusCode::PAYLOAD_TOO_LARGE, problem)
}

/// Tells whether a browser asks what a page of another origin may send.
fn asks_beforehand(request: &Request) -> bool {
    let headers = request.headers();
    request.method() == Method::OPTIONS
        && [ORIGIN, ACCESS_CONTROL_REQUEST_METHOD].iter().all(|name| headers.contains_key(name))
}

fn allowed() -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST"),
        (ACCESS_CONTROL_ALLOW_HEADERS, "authorization, content-type"),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Lets a page of another origin read an answer, and when to ask again: whoever is let in may, and a token comes from the page itself.
fn readable(mut response: Response, origin: Option<HeaderValue>) -> Response {
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("retry-after"));
    }
    response
}

fn knows(token: &str, headers: &HeaderMap) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().split_at_checked(SCHEME.len()));
    let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME)).map(|(_, token)| token);
    given.is_some_and(|given| given.ct_eq(token.as_bytes()).into())
}

/// Ends what takes too long, refuses bodies that cannot be taken, and counts questions.
pub async fn in_time(
    State(server): State<Arc<Server>>,
    parts: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    if request.uri().path() == RELOAD {
        // Large models take longer than a question may.
        return next.run(request).await;
    }
    let mut asked = Asked::new(&server, parts.as_ref());
    let unreadable = unreadable(request.headers(), server.body_limit);
    let answering = async {
        match unreadable {
            Some(refused) => {
                forget(request, server.time_limit / 2).await;
                refused
            }
            None => next.run(request).await,
        }
    };
    let response = tokio::time::timeout(server.time_limit, answering).await.unwrap_or_else(|_| {
        let problem = format!("not done in {} s; ask for less at a time", server.time_limit.as_secs_f64());
        refused(StatusCode::REQUEST_TIMEOUT, problem)
    });
    asked.status = response.status().as_u16();
    response
}

/// A question, which is counted when it ends, however it does.
struct Asked<'s> {
    server: &'s Server,
    /// Which model is asked, if it is one that there is.
    model: Option<usize>,
    /// What it is asked, if some model answers that; `None`: it is no question.
    question: Option<String>,
    begin: Instant,
    status: u16,
}

impl<'s> Asked<'s> {
    fn new(server: &'s Server, parts: Result<&RawPathParams, &RawPathParamsRejection>) -> Self {
        let part = |name: &str| parts.ok()?.iter().find_map(|(known, part)| (known == name).then_some(part));
        // What cannot be decoded asks nothing that there is.
        let question = if parts.is_err() { Some("") } else { part("question") };
        let model = match (part("model"), question) {
            (Some(name), _) => server.models.iter().position(|served| served.name == name),
            (None, Some(question)) => server.only_able(question).ok(),
            (None, None) => None,
        };
        let known = |question: &str| server.able(question).next().map_or_else(String::new, |_| question.to_owned());
        Self { server, model, question: question.map(known), begin: Instant::now(), status: GONE }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let Self { server, model, question, begin, status } = self;
        let Some(question) = question else { return };
        match *model {
            Some(at) if server.answers(at, question) => {
                server.metrics.answered(&server.models[at].name, question, *status, begin.elapsed());
            }
            at => server.metrics.refused(at.map_or("", |at| &server.models[at].name), question, *status),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    use super::*;
    use crate::http::router;
    use crate::server::tests::{OneAtATime, server};

    #[test]
    fn a_question_that_nobody_waits_for_is_counted() {
        let server = server(Box::new(OneAtATime::default()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let service = TowerToHyperService::new(router(Arc::clone(&server)));
            let ask = || service.call(Request::post("/rank").body(Body::empty()).unwrap());
            // It is dropped before it answers.
            assert!(tokio::time::timeout(Duration::from_millis(1), ask()).await.is_err());
            assert_eq!(ask().await.unwrap().status(), StatusCode::OK);
        });
        let counted = server.metrics.text(&server.models);
        for status in [GONE, 200] {
            let line = format!("requests_total{{model=\"test\",question=\"rank\",status=\"{status}\"}} 1");
            assert!(counted.contains(&line), "no {line} in {counted}");
        }
    }
}
