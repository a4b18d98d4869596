//! What requests share: the models, who may ask them, how much and how long, and what is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::sync::{Mutex, Semaphore};

use crate::hosts::Hosts;
use crate::metrics::Metrics;
use crate::models::Served;

/// Where models are read again.
pub const RELOAD: &str = "/reload";

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
    /// How many bytes a body may have.
    pub body_limit: usize,
}

/// What those share who ask for models to be read again: one reading is for all who asked before it began.
#[derive(Default)]
pub struct Reloads {
    /// How many readings have begun.
    begun: AtomicU64,
    /// What went wrong in the last one. Held while models are read.
    problems: Mutex<Vec<String>>,
}

/// How many models answer a question that not one answers.
pub enum Able {
    /// No model.
    None,
    /// More than one.
    Several,
}

impl Server {
    /// Reads all models again, unless somebody else did since this was asked for. Returns what went wrong; `None`: the server failed.
    pub async fn read_again(self: Arc<Self>) -> Option<Vec<String>> {
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

    /// Tells whether a model answers a question.
    pub fn answers(&self, at: usize, question: &str) -> bool {
        self.models[at].current().answers.questions().contains(&question)
    }

    /// Returns the only model that answers a question.
    ///
    /// # Errors
    /// None does, or several.
    pub fn only_able(&self, question: &str) -> Result<usize, Able> {
        let mut able = self.able(question);
        match (able.next(), able.next()) {
            (Some(at), None) => Ok(at),
            (None, _) => Err(Able::None),
            (Some(_), Some(_)) => Err(Able::Several),
        }
    }

    /// Returns the models that answer a question.
    pub fn able(&self, question: &str) -> impl Iterator<Item = usize> {
        (0..self.models.len()).filter(move |&at| self.answers(at, question))
    }
}

/// Refuses a request, and says why.
pub fn refused(status: StatusCode, problem: impl Into<String>) -> Response {
    (status, Json(json!({ "error": problem.into() }))).into_response()
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::Value;

    use super::*;
    use crate::questions::Answers;
    use crate::{Answer, Refusal};

    /// Serves answers on one thread, and takes three questions at a time.
    pub(crate) fn server(answers: Box<dyn Answers>) -> Arc<Server> {
        Arc::new(Server {
            models: vec![Served::of(answers, "none".into())],
            metrics: Metrics::default(),
            permits: Arc::new(Semaphore::new(3)),
            threads: Arc::new(Semaphore::new(1)),
            reloads: Reloads::default(),
            token: None,
            hosts: Hosts::default(),
            time_limit: Duration::from_secs(60),
            body_limit: 1 << 20,
        })
    }

    /// Fails where it is asked while it answers.
    #[derive(Default)]
    pub(crate) struct OneAtATime(std::sync::Mutex<()>);

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
}
