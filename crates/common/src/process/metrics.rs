//! Metrics under the names that existing dashboards ask for.
use prometheus::{
    Encoder, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder,
    exponential_buckets,
};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The reconcile buckets of controller-runtime.
const RECONCILE_BUCKETS: [f64; 20] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0];

type Refresh = Box<dyn Fn(&Metrics) + Send + Sync>;

/// All metrics of a process. Label values come from closed sets, never from names or messages of objects.
pub struct Metrics {
    registry: Registry,
    controller: String,
    refresh: Mutex<Vec<Refresh>>,
    /// `controller_runtime_reconcile_total{controller,result}`.
    pub reconcile_total: IntCounterVec,
    /// `controller_runtime_reconcile_errors_total{controller}`.
    pub reconcile_errors: IntCounterVec,
    /// `controller_runtime_terminal_reconcile_errors_total{controller}`.
    pub terminal_errors: IntCounterVec,
    /// `controller_runtime_reconcile_panics_total{controller}`.
    pub panics: IntCounterVec,
    /// `controller_runtime_reconcile_timeouts_total{controller}`.
    pub timeouts: IntCounterVec,
    /// `controller_runtime_reconcile_time_seconds{controller}`.
    pub reconcile_time: HistogramVec,
    /// `controller_runtime_active_workers{controller}`.
    pub active_workers: IntGaugeVec,
    /// `controller_runtime_max_concurrent_reconciles{controller}`.
    pub max_concurrent: IntGaugeVec,
    /// `workqueue_depth{name,controller}`.
    pub depth: IntGaugeVec,
    /// `workqueue_adds_total{name,controller}`.
    pub adds: IntCounterVec,
    /// `workqueue_retries_total{name,controller}`.
    pub retries: IntCounterVec,
    /// `workqueue_queue_duration_seconds{name,controller}`.
    pub queue_duration: HistogramVec,
    /// `workqueue_work_duration_seconds{name,controller}`.
    pub work_duration: HistogramVec,
    /// `workqueue_unfinished_work_seconds{name,controller}`.
    pub unfinished: GaugeVec,
    /// `workqueue_longest_running_processor_seconds{name,controller}`.
    pub longest_running: GaugeVec,
    /// `rest_client_requests_total{code,method,host}`.
    pub rest_requests: IntCounterVec,
    /// `cloud_requests_total{service,operation,code}`.
    pub cloud_requests: IntCounterVec,
    /// `cloud_request_duration_seconds{service,operation}`.
    pub cloud_duration: HistogramVec,
    /// `owned_resources{kind}`.
    pub owned: IntGaugeVec,
    /// `orphans{kind}`.
    pub orphans: IntGaugeVec,
    /// `ownership_conflicts_total{controller}`.
    pub conflicts: IntCounterVec,
    /// `stale_sync_skips_total{controller}`.
    pub stale_skips: IntCounterVec,
    /// `invalid_objects_total{controller}`: passes over objects that do not fit their own type.
    pub invalid: IntCounterVec,
    /// `watch_troubles_total{controller}`: failed lists and watches.
    pub watch_troubles: IntCounterVec,
    /// `watched_objects{controller}`.
    pub watched: IntGaugeVec,
    /// `leader_election_master_status{name}`.
    pub leading: IntGaugeVec,
}

impl Metrics {
    /// Registers all of them.
    pub fn new(controller: &str, version: &str) -> prometheus::Result<Self> {
        let registry = Registry::new();
        let r = &registry;
        let work_buckets = exponential_buckets(10e-9, 10.0, 12)?;
        let cloud_buckets = exponential_buckets(0.01, 2.0, 13)?;
        let build = int_gauge(r, "build_info", "Version of this process.", &["version", "controller"])?;
        build.with_label_values(&[version, controller]).set(1);
        r.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        let c: &[&str] = &["controller"];
        let queue: &[&str] = &["name", "controller"];
        let metrics = Metrics {
            reconcile_total: counter(r, "controller_runtime_reconcile_total", "Passes.", &["controller", "result"])?,
            reconcile_errors: counter(r, "controller_runtime_reconcile_errors_total", "Failed passes.", c)?,
            terminal_errors: counter(
                r,
                "controller_runtime_terminal_reconcile_errors_total",
                "Passes that failed in a way that trying again does not mend.",
                c,
            )?,
            panics: counter(r, "controller_runtime_reconcile_panics_total", "Passes that panicked.", c)?,
            timeouts: counter(
                r,
                "controller_runtime_reconcile_timeouts_total",
                "Passes cut off for taking too long.",
                c,
            )?,
            reconcile_time: histogram(
                r,
                "controller_runtime_reconcile_time_seconds",
                "Length of passes.",
                c,
                RECONCILE_BUCKETS.to_vec(),
            )?,
            active_workers: int_gauge(r, "controller_runtime_active_workers", "Workers at work.", c)?,
            max_concurrent: int_gauge(r, "controller_runtime_max_concurrent_reconciles", "Workers at most.", c)?,
            depth: int_gauge(r, "workqueue_depth", "Keys ready and waiting for a worker.", queue)?,
            adds: counter(r, "workqueue_adds_total", "Keys that became ready.", queue)?,
            retries: counter(r, "workqueue_retries_total", "Keys put back after a failure.", queue)?,
            queue_duration: histogram(
                r,
                "workqueue_queue_duration_seconds",
                "How long keys wait for a worker.",
                queue,
                work_buckets.clone(),
            )?,
            work_duration: histogram(
                r,
                "workqueue_work_duration_seconds",
                "How long workers take for a key.",
                queue,
                work_buckets,
            )?,
            unfinished: gauge(r, "workqueue_unfinished_work_seconds", "Sum of the ages of running work.", queue)?,
            longest_running: gauge(
                r,
                "workqueue_longest_running_processor_seconds",
                "Age of the oldest running work.",
                queue,
            )?,
            rest_requests: counter(
                r,
                "rest_client_requests_total",
                "Requests to the API server.",
                &["code", "method", "host"],
            )?,
            cloud_requests: counter(
                r,
                "cloud_requests_total",
                "Requests to the cloud.",
                &["service", "operation", "code"],
            )?,
            cloud_duration: histogram(
                r,
                "cloud_request_duration_seconds",
                "Length of requests to the cloud.",
                &["service", "operation"],
                cloud_buckets,
            )?,
            owned: int_gauge(r, "owned_resources", "Cloud resources recorded as ours.", &["kind"])?,
            orphans: int_gauge(r, "orphans", "Cloud resources with our mark and no living owner.", &["kind"])?,
            conflicts: counter(r, "ownership_conflicts_total", "Passes that met somebody else's mark.", c)?,
            stale_skips: counter(
                r,
                "stale_sync_skips_total",
                "Passes put off because the cache was behind our own writes.",
                c,
            )?,
            invalid: counter(r, "invalid_objects_total", "Passes over objects that do not fit their type.", c)?,
            watch_troubles: counter(r, "watch_troubles_total", "Lists and watches that failed.", c)?,
            watched: int_gauge(r, "watched_objects", "Objects in the cache.", c)?,
            leading: int_gauge(r, "leader_election_master_status", "1 while this process leads.", &["name"])?,
            controller: controller.to_owned(),
            refresh: Mutex::default(),
            registry,
        };
        metrics.begin_at_zero();
        Ok(metrics)
    }
    /// A series that is not there yet looks like a broken exporter to an alert.
    fn begin_at_zero(&self) {
        let c = [self.controller.as_str()];
        for counter in [
            &self.reconcile_errors,
            &self.terminal_errors,
            &self.panics,
            &self.timeouts,
            &self.conflicts,
            &self.stale_skips,
            &self.invalid,
            &self.watch_troubles,
        ] {
            counter.with_label_values(&c);
        }
        for result in ["success", "error", "requeue", "requeue_after"] {
            self.reconcile_total.with_label_values(&[c[0], result]);
        }
        let queue = [c[0], c[0]];
        for counter in [&self.adds, &self.retries] {
            counter.with_label_values(&queue);
        }
        self.active_workers.with_label_values(&c).set(0);
        self.reconcile_time.with_label_values(&c);
        self.queue_duration.with_label_values(&queue);
        self.work_duration.with_label_values(&queue);
    }
    /// The controller's name, for labels.
    pub fn controller(&self) -> &str {
        &self.controller
    }
    /// Runs before every scrape, for gauges that nobody else keeps current.
    pub fn before_scrape(&self, refresh: impl Fn(&Metrics) + Send + Sync + 'static) {
        self.refresh.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(refresh));
    }
    /// Registers a collector of the controller's own.
    pub fn register(&self, collector: Box<dyn prometheus::core::Collector>) -> prometheus::Result<()> {
        self.registry.register(collector)
    }
    /// One request to the cloud. `code` is the HTTP status or a word like `timeout`.
    pub fn cloud_request(&self, service: &str, operation: &str, code: &str, took: Duration) {
        self.cloud_requests.with_label_values(&[service, operation, code]).inc();
        self.cloud_duration.with_label_values(&[service, operation]).observe(took.as_secs_f64());
    }
    /// The text that Prometheus reads.
    pub fn render(&self) -> prometheus::Result<String> {
        for refresh in self.refresh.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            refresh(self);
        }
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

fn counter(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntCounterVec> {
    let metric = IntCounterVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}
fn int_gauge(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntGaugeVec> {
    let metric = IntGaugeVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}
fn gauge(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> prometheus::Result<GaugeVec> {
    let metric = GaugeVec::new(Opts::new(name, help), labels)?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}
fn histogram(
    registry: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: Vec<f64>,
) -> prometheus::Result<HistogramVec> {
    let metric = HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), labels)?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_dashboards_ask_for_are_there_from_the_start() {
        let metrics = Metrics::new("sample", "1.2.3").unwrap();
        metrics.before_scrape(|m| m.depth.with_label_values(&["sample", "sample"]).set(5));
        metrics.unfinished.with_label_values(&["sample", "sample"]).set(0.0);
        metrics.longest_running.with_label_values(&["sample", "sample"]).set(0.0);
        metrics.rest_requests.with_label_values(&["200", "GET", "h"]).inc();
        metrics.cloud_request("sample", "networks.list", "200", Duration::from_millis(3));
        metrics.max_concurrent.with_label_values(&["sample"]).set(4);
        let text = metrics.render().unwrap();
        for name in [
            "controller_runtime_reconcile_total{controller=\"sample\",result=\"success\"} 0",
            "controller_runtime_reconcile_errors_total{controller=\"sample\"} 0",
            "controller_runtime_terminal_reconcile_errors_total",
            "controller_runtime_reconcile_panics_total",
            "controller_runtime_reconcile_time_seconds_bucket",
            "controller_runtime_active_workers",
            "controller_runtime_max_concurrent_reconciles",
            "workqueue_depth{controller=\"sample\",name=\"sample\"} 5",
            "workqueue_adds_total",
            "workqueue_retries_total",
            "workqueue_queue_duration_seconds_bucket",
            "workqueue_work_duration_seconds_bucket",
            "workqueue_unfinished_work_seconds",
            "workqueue_longest_running_processor_seconds",
            "rest_client_requests_total{code=\"200\",host=\"h\",method=\"GET\"} 1",
            "cloud_requests_total{code=\"200\",operation=\"networks.list\",service=\"sample\"} 1",
            "cloud_request_duration_seconds_count",
            "ownership_conflicts_total",
            "stale_sync_skips_total",
            "build_info{controller=\"sample\",version=\"1.2.3\"} 1",
            "process_resident_memory_bytes",
        ] {
            assert!(text.contains(name), "{name} is missing in:\n{text}");
        }
    }
}
