//! Requests: who may ask, how much, how long, how many at a time, and which model answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, RawPathParamsRejection};
use axum::extract::{DefaultBodyLimit, Path, RawPathParams, Request, State};
use axum::http::header::{ALLOW, AUTHORIZATION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use megagrid_training::lda::explorer;
use megagrid_training::page;
use serde::Serialize;
use serde_json::{Value, json};
use subtle::ConstantTimeEq;
use tokio::sync::{Mutex, Semaphore};

use crate::hosts::Hosts;
use crate::metrics::Metrics;
use crate::models::{Loaded, Served};
use crate::{Answer, Refusal};

/// What all requests share.
pub struct Server {
    /// The models.
    pub models: Vec<Served>,
    /// What is counted.
    pub metrics: Metrics,
    /// One for each question that is taken at a time.
    pub permits: Arc<Semaphore>,
    /// One for each thread that answers: questions wait for one within their time.
    pub threads: Arc<Semaphore>,
    /// Those who ask for models to be read again.
    pub reloads: Reloads,
    /// What whoever asks has to know.
    pub token: Option<String>,
    /// What it may be called where there is no token.
    pub hosts: Hosts,
    /// How long a question may take, its body included.
    pub time_limit: Duration,
}

/// What those share who ask for models to be read again: one reading is for all who asked before it began.
#[derive(Default)]
pub struct Reloads {
    /// How many readings have begun.
    begun: AtomicU64,
    /// What went wrong in the last one. Held while models are read.
    problems: Mutex<Vec<String>>,
}

type Shared = State<Arc<Server>>;

/// What the server answers, as OpenAPI has it.
const OPENAPI: &str = include_str!("openapi.json");
/// A page that asks, without anything from elsewhere.
const PAGE: &str = include_str!("page.html");
/// What the page may load.
pub(crate) const POLICY: &str =
    "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
/// What stands before a token.
const SCHEME: &[u8] = b"Bearer ";
/// What all may ask: whether the server is there, whether its models are fresh, and the page, which asks for the token.
const OPEN: [&str; 4] = ["/", "/health", "/ready", "/fresh"];

/// What is said of paths that there are not.
const NO_PAGE: &str = "there is no such page; GET /openapi.json lists all";
/// Where models are read again.
const RELOAD: &str = "/reload";

/// Returns what answers requests, whose bodies have at most `body_limit` bytes.
pub fn router(server: Arc<Server>, body_limit: usize) -> Router {
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
        .fallback(|| async { refused(StatusCode::NOT_FOUND, NO_PAGE) })
        // The header Allow is added to it.
        .method_not_allowed_fallback(async |uri: Uri| {
            let expected = if uri.path() == RELOAD { "POST" } else { "GET" };
            refused(StatusCode::METHOD_NOT_ALLOWED, format!("expected {expected} {}", uri.path()))
        })
        .route_layer(from_fn_with_state(Arc::clone(&server), in_time))
        .layer(DefaultBodyLimit::max(body_limit))
        .layer(from_fn_with_state(Arc::clone(&server), guard))
        .with_state(server)
}

/// Lets in who knows the token, or without one who calls the server by a name that it has.
async fn guard(State(server): Shared, request: Request, next: Next) -> Response {
    if let Some(token) = &server.token
        && !OPEN.contains(&request.uri().path())
        && !knows(token, request.headers())
    {
        let refused = refused(StatusCode::UNAUTHORIZED, "expected the header \"Authorization: Bearer TOKEN\"");
        return ([(WWW_AUTHENTICATE, "Bearer")], refused).into_response();
    }
    if server.token.is_none()
        && let Some(problem) = server.hosts.problem(request.headers())
    {
        return refused(StatusCode::FORBIDDEN, problem);
    }
    next.run(request).await
}

/// Ends what takes too long, and counts it where it is a question to a model.
async fn in_time(
    State(server): Shared,
    parts: Result<RawPathParams, RawPathParamsRejection>,
    request: Request,
    next: Next,
) -> Response {
    if request.uri().path() == RELOAD {
        // Large models take longer than a question may.
        return next.run(request).await;
    }
    match tokio::time::timeout(server.time_limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            if let Some((at, question)) = parts.as_ref().ok().and_then(|parts| server.asked(parts)) {
                let (model, late) = (&server.models[at].name, StatusCode::REQUEST_TIMEOUT.as_u16());
                server.metrics.answered(model, question, late, server.time_limit);
            }
            let problem = format!("not done in {} s; ask for less at a time", server.time_limit.as_secs_f64());
            refused(StatusCode::REQUEST_TIMEOUT, problem)
        }
    }
}

fn knows(token: &str, headers: &HeaderMap) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().split_at_checked(SCHEME.len()));
    let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(SCHEME)).map(|(_, token)| token);
    given.is_some_and(|given| given.ct_eq(token.as_bytes()).into())
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

impl Server {
    /// Reads all models again, unless somebody else did since this was asked for. Returns what went wrong; `None`: the server failed.
    async fn read_again(self: Arc<Self>) -> Option<Vec<String>> {
        let asked = self.reloads.begun.load(Ordering::Acquire);
        let mut problems = self.reloads.problems.lock().await;
        if self.reloads.begun.load(Ordering::Acquire) == asked {
            self.reloads.begun.fetch_add(1, Ordering::Release);
            let server = Arc::clone(&self);
            *problems = tokio::task::spawn_blocking(move || server.read_all()).await.ok()?;
        }
        Some(problems.clone())
    }

    fn read_all(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for served in &self.models {
            if let Err(error) = served.reload() {
                self.metrics.reload_failed(&served.name);
                problems.push(format!("{} goes on as it was: {error}", served.name));
            }
        }
        problems
    }

    /// Returns which model a path asks, by its decoded parts, and what.
    fn asked<'p>(&self, parts: &'p RawPathParams) -> Option<(usize, &'p str)> {
        let part = |name: &str| parts.iter().find_map(|(known, part)| (known == name).then_some(part));
        let question = part("question")?;
        let at = match part("model") {
            Some(model) => self.models.iter().position(|served| served.name == model)?,
            None => self.able(question).next()?,
        };
        self.answers(at, question).then_some((at, question))
    }

    /// Tells whether a model answers a question.
    fn answers(&self, at: usize, question: &str) -> bool {
        self.models[at].current().answers.questions().contains(&question)
    }

    /// Returns the models that answer a question.
    fn able(&self, question: &str) -> impl Iterator<Item = usize> {
        (0..self.models.len()).filter(move |&at| self.answers(at, question))
    }
}

/// Asks the only model that answers a question.
async fn ask_any(
    State(server): Shared,
    Path(question): Path<String>,
    method: Method,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let mut able = server.able(&question);
    let found = (able.next(), able.next());
    drop(able);
    let problem = match found {
        (Some(_), None) if method != Method::POST => return not_posted(&format!("/{question}")),
        (Some(at), None) => return answer(server, at, question, body).await,
        (None, _) if method != Method::POST => NO_PAGE.to_owned(),
        (None, _) => format!("no model answers \"{question}\"; GET /models says what they answer"),
        (Some(_), Some(_)) => format!("several models answer \"{question}\"; ask one: POST /models/NAME/{question}"),
    };
    refused(StatusCode::NOT_FOUND, problem)
}

/// Asks a model by its name.
async fn ask(
    State(server): Shared,
    Path((model, question)): Path<(String, String)>,
    method: Method,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let Some(at) = server.models.iter().position(|served| served.name == model) else {
        return refused(StatusCode::NOT_FOUND, format!("there is no model \"{model}\"; GET /models lists them"));
    };
    if let Some(refused) = unanswered(&model, &server.models[at].current(), &question) {
        return refused;
    }
    if method != Method::POST {
        return not_posted(&format!("/models/{model}/{question}"));
    }
    answer(server, at, question, body).await
}

/// Answers, and counts what became of it.
async fn answer(server: Arc<Server>, at: usize, question: String, body: Result<Bytes, BytesRejection>) -> Response {
    let begin = Instant::now();
    let response = match body {
        Ok(body) => computed(Arc::clone(&server), at, question.clone(), body).await,
        Err(rejection) => refused(rejection.status(), rejection.body_text()),
    };
    server.metrics.answered(&server.models[at].name, &question, response.status().as_u16(), begin.elapsed());
    response
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
        // It may have become a model of another kind since the question was let in.
        if let Some(refused) = unanswered(&served.name, &loaded, &question) {
            return refused;
        }
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

/// Returns what a question gets that a model does not answer; nothing where it does.
fn unanswered(name: &str, loaded: &Loaded, question: &str) -> Option<Response> {
    let known = loaded.answers.questions();
    let problem = || format!("\"{name}\" does not answer \"{question}\", but {}", known.join(", "));
    (!known.contains(&question)).then(|| refused(StatusCode::NOT_FOUND, problem()))
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

fn refused(status: StatusCode, problem: impl Into<String>) -> Response {
    (status, Json(json!({ "error": problem.into() }))).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::tests::Anything;
    use crate::questions::Answers;

    /// Serves answers on one thread, and takes three questions at a time.
    fn server(answers: Box<dyn Answers>) -> Arc<Server> {
        Arc::new(Server {
            models: vec![Served::of(answers, "none".into())],
            metrics: Metrics::default(),
            permits: Arc::new(Semaphore::new(3)),
            threads: Arc::new(Semaphore::new(1)),
            reloads: Reloads::default(),
            token: None,
            hosts: Hosts::default(),
            time_limit: Duration::from_secs(60),
        })
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    /// Of the model that was looked at when a question came another one may have taken the place when it is answered.
    #[test]
    fn a_question_is_answered_by_a_model_that_has_it() {
        let (server, runtime) = (server(Box::new(Anything)), runtime());
        let status = |question: &str| {
            runtime.block_on(computed(Arc::clone(&server), 0, question.to_owned(), Bytes::new())).status()
        };
        assert_eq!([status("rank"), status("words")], [StatusCode::OK, StatusCode::NOT_FOUND]);
    }

    /// Fails where it is asked while it answers.
    #[derive(Default)]
    struct OneAtATime(std::sync::Mutex<()>);

    impl Answers for OneAtATime {
        fn questions(&self) -> &'static [&'static str] {
            &["rank"]
        }

        fn answer(&self, _: &str, _: &[u8]) -> Result<Answer<'_>, Refusal> {
            let _asked = self.0.try_lock().map_err(|_| Refusal::Bad("it answers another".to_owned()))?;
            std::thread::sleep(Duration::from_millis(20));
            Ok(Answer::Other(Value::Null))
        }
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
