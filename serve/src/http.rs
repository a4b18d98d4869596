//! Requests: how many are answered at a time, and which model answers.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::{ALLOW, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use megagrid_training::lda::explorer;
use megagrid_training::page;
use serde::Serialize;
use serde_json::{Value, json};

use crate::gate::{counted, guard, in_time, too_large};
use crate::models::Served;
use crate::server::{Able, RELOAD, Server, refused};
use crate::{Answer, Refusal};

type Shared = State<Arc<Server>>;

/// What the server answers, as OpenAPI has it.
const OPENAPI: &str = include_str!("openapi.json");
/// A page that asks, without anything from elsewhere.
const PAGE: &str = include_str!("page.html");
/// What the page may load.
pub(crate) const POLICY: &str =
    "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// What is said of paths that there are not.
const NO_PAGE: &str = "there is no such page; GET /openapi.json lists all";

/// Returns what answers requests.
pub fn router(server: Arc<Server>) -> Router {
    let html = Bytes::from(page::filled(PAGE).replace("/* explorer.js */", explorer::SCRIPT));
    Router::new()
        .route("/", get(|| async { ([(CONTENT_SECURITY_POLICY, POLICY)], Html(html)) }))
        .route("/health", get(|| async { "ok\n" }))
        // Models are loaded before the first connection is taken.
        .route("/ready", get(|| async { "ready\n" }))
        .route("/fresh", get(fresh))
        .route("/metrics", get(metrics))
        .route("/openapi.json", get(|| async { ([(CONTENT_TYPE, "application/json")], OPENAPI) }))
        .route("/models", get(models))
        .route(RELOAD, post(reload))
        // What there is not is not there for any method.
        .route("/{question}", any(ask_any))
        .route("/models/{model}/{question}", any(ask))
        .fallback(async |State(server): Shared| counted(&server, refused(StatusCode::NOT_FOUND, NO_PAGE)))
        // The header Allow is added to it.
        .method_not_allowed_fallback(async |uri: Uri| {
            let expected = if uri.path() == RELOAD { "POST" } else { "GET" };
            refused(StatusCode::METHOD_NOT_ALLOWED, format!("expected {expected} {}", uri.path()))
        })
        .route_layer(from_fn_with_state(Arc::clone(&server), in_time))
        .layer(DefaultBodyLimit::max(server.body_limit))
        .layer(from_fn_with_state(Arc::clone(&server), guard))
        .with_state(server)
}

/// Tells whether all models are as young as they have to be.
async fn fresh(State(server): Shared) -> Response {
    if server.models.iter().any(|served| served.is_stale(&served.current())) {
        let problem = "stale: a model is older than --max-age; GET /models says which, and all go on answering\n";
        return (StatusCode::SERVICE_UNAVAILABLE, problem).into_response();
    }
    "fresh\n".into_response()
}

async fn metrics(State(server): Shared) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], server.metrics.text(&server.models)).into_response()
}

async fn models(State(server): Shared) -> Json<Value> {
    Json(json!({ "models": server.models.iter().map(Served::described).collect::<Vec<_>>() }))
}

/// Reads all models again.
async fn reload(State(server): Shared) -> Response {
    let shared = Arc::clone(&server);
    // It ends even where nobody waits any more, so that no other begins meanwhile.
    match tokio::spawn(async move { shared.read_again().await }).await {
        Ok(Some(problems)) if problems.is_empty() => models(State(server)).await.into_response(),
        Ok(Some(problems)) => refused(StatusCode::INTERNAL_SERVER_ERROR, problems.join("; ")),
        Ok(None) | Err(_) => failed(),
    }
}

/// Asks the only model that answers a question.
async fn ask_any(
    State(server): Shared,
    question: Result<Path<String>, PathRejection>,
    method: Method,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let Ok(Path(question)) = question else { return refused(StatusCode::NOT_FOUND, NO_PAGE) };
    let problem = match server.only_able(&question) {
        Ok(at) if method == Method::POST => return answer(server, at, question, body).await,
        Ok(_) | Err(Able::Several) if method != Method::POST => return not_posted(&format!("/{question}")),
        Ok(_) => return failed(),
        Err(Able::None) if method != Method::POST => NO_PAGE.to_owned(),
        Err(Able::None) => format!("no model answers \"{question}\"; GET /models says what they answer"),
        Err(Able::Several) => {
            format!("several models answer \"{question}\"; ask one: POST /models/NAME/{question}")
        }
    };
    refused(StatusCode::NOT_FOUND, problem)
}

/// Asks a model by its name.
async fn ask(
    State(server): Shared,
    path: Result<Path<(String, String)>, PathRejection>,
    method: Method,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let Ok(Path((model, question))) = path else { return refused(StatusCode::NOT_FOUND, NO_PAGE) };
    let Some(at) = server.models.iter().position(|served| served.name == model) else {
        return refused(StatusCode::NOT_FOUND, format!("there is no model \"{model}\"; GET /models lists them"));
    };
    if !server.answers(at, &question) {
        let known = server.models[at].current().answers.questions().join(", ");
        return refused(StatusCode::NOT_FOUND, format!("\"{model}\" does not answer \"{question}\", but {known}"));
    }
    if method != Method::POST {
        return not_posted(&format!("/models/{model}/{question}"));
    }
    answer(server, at, question, body).await
}

/// Answers, and which model gave them.
#[derive(Serialize)]
struct Answered<'m> {
    age_seconds: f64,
    answers: Answer<'m>,
    model: &'m str,
    stale: bool,
    version: u64,
}

/// Answers a question that a model has.
async fn answer(server: Arc<Server>, at: usize, question: String, body: Result<Bytes, BytesRejection>) -> Response {
    match body {
        Ok(body) => computed(server, at, question, body).await,
        Err(rejection) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => too_large(server.body_limit),
        Err(rejection) => refused(rejection.status(), rejection.body_text()),
    }
}

async fn computed(server: Arc<Server>, at: usize, question: String, body: Bytes) -> Response {
    let Ok(permit) = Arc::clone(&server.permits).try_acquire_owned() else {
        let busy = refused(StatusCode::TOO_MANY_REQUESTS, "too many questions at a time; ask again");
        return ([(RETRY_AFTER, "1")], busy).into_response();
    };
    // None is ever closed.
    let Ok(thread) = Arc::clone(&server.threads).acquire_owned().await else { return failed() };
    let answering = tokio::task::spawn_blocking(move || {
        // Held to the end, even where nobody waits any more.
        let _permits = (permit, thread);
        let served = &server.models[at];
        let loaded = served.current();
        match loaded.answers.answer(&question, &body) {
            Ok(answers) => Json(Answered {
                age_seconds: loaded.age_seconds(),
                answers,
                model: &served.name,
                stale: served.is_stale(&loaded),
                version: loaded.version,
            })
            .into_response(),
            Err(Refusal::Bad(problem)) => refused(StatusCode::BAD_REQUEST, problem),
            Err(Refusal::Unknown(problem)) => refused(StatusCode::NOT_FOUND, problem),
        }
    });
    answering.await.unwrap_or_else(|_| failed())
}

/// What a question gets that does not come as questions do.
fn not_posted(path: &str) -> Response {
    let problem = format!("expected POST {path}, with the question in JSON");
    ([(ALLOW, "POST")], refused(StatusCode::METHOD_NOT_ALLOWED, problem)).into_response()
}

/// What a request gets that was the server's fault.
fn failed() -> Response {
    refused(StatusCode::INTERNAL_SERVER_ERROR, "the server failed to answer; its log says why")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::tests::{OneAtATime, server};

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn questions_wait_for_a_thread_and_beyond_those_that_are_taken_are_refused() {
        let server = server(Box::new(OneAtATime::default()));
        let statuses = runtime().block_on(async {
            let ask = |_| tokio::spawn(computed(Arc::clone(&server), 0, "rank".to_owned(), Bytes::new()));
            let asked: Vec<_> = (0..4).map(ask).collect();
            let mut statuses = Vec::new();
            for answer in asked {
                statuses.push(answer.await.unwrap().status().as_u16());
            }
            statuses
        });
        assert_eq!(statuses, [200, 200, 200, 429]);
    }
}
