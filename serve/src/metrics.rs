//! Counts and times of requests, and ages of models, as Prometheus reads them.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::models::Served;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    model: String,
    question: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    model: String,
    question: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfModel {
    model: String,
}

/// Writes a name as the text format has it within quotes; the library writes it as it is.
fn label(name: &str) -> String {
    name.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n")
}

/// What is counted and timed.
pub struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    seconds: Family<Asked, Histogram>,
    ages: Family<OfModel, Gauge<f64, AtomicU64>>,
    stale: Family<OfModel, Gauge>,
    versions: Family<OfModel, Gauge>,
    failed_reloads: Family<OfModel, Counter>,
}

impl Default for Metrics {
    fn default() -> Self {
        // From 50 microseconds to 3 seconds.
        let histogram = || Histogram::new(exponential_buckets(5e-5, 2.0, 17));
        let mut metrics = Self {
            registry: Registry::with_prefix("megagrid"),
            requests: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            ages: Family::default(),
            stale: Family::default(),
            versions: Family::default(),
            failed_reloads: Family::default(),
        };
        let registry = &mut metrics.registry;
        registry.register(
            "requests",
            "Questions by their status, 499 where the client did not wait; others without a model or a question",
            metrics.requests.clone(),
        );
        let times = metrics.seconds.clone();
        registry.register_with_unit("request_duration", "From question to answer", Unit::Seconds, times);
        registry.register_with_unit("model_age", "Since the model was written", Unit::Seconds, metrics.ages.clone());
        registry.register("model_stale", "Whether the model is older than it may be", metrics.stale.clone());
        registry.register("model_version", "How often the model was loaded", metrics.versions.clone());
        registry.register(
            "failed_reloads",
            "Times that a model could not be loaded again",
            metrics.failed_reloads.clone(),
        );
        metrics
    }
}

impl Metrics {
    /// Counts a question to a model that there is.
    pub fn answered(&self, model: &str, question: &str, status: u16, time: Duration) {
        let (model, question) = (label(model), question.to_owned());
        self.seconds
            .get_or_create(&Asked { model: model.clone(), question: question.clone() })
            .observe(time.as_secs_f64());
        self.requests.get_or_create(&Answered { model, question, status }).inc();
    }

    /// Counts a request that no model answers.
    pub fn refused(&self, model: &str, question: &str, status: u16) {
        let refused = Answered { model: label(model), question: question.to_owned(), status };
        self.requests.get_or_create(&refused).inc();
    }

    /// Counts a model that could not be loaded again.
    pub fn reload_failed(&self, model: &str) {
        self.failed_reloads.get_or_create(&OfModel { model: label(model) }).inc();
    }

    /// Writes all as text.
    #[must_use]
    pub fn text(&self, models: &[Served]) -> String {
        for served in models {
            let (loaded, model) = (served.current(), OfModel { model: label(&served.name) });
            self.ages.get_or_create(&model).set(loaded.age_seconds());
            self.stale.get_or_create(&model).set(served.is_stale(&loaded).into());
            self.versions.get_or_create(&model).set(loaded.version as i64);
            // Who looks at how much it rises needs to see it at 0.
            drop(self.failed_reloads.get_or_create(&model));
        }
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_models_are_quoted() {
        let metrics = Metrics::default();
        metrics.reload_failed("a\"b\\c\nd");
        let text = metrics.text(&[]);
        assert!(text.contains(r#"megagrid_failed_reloads_total{model="a\"b\\c\nd"} 1"#), "{text}");
    }
}
