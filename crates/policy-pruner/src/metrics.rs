//! Series under the names that dashboards of the peer ask for. They go when their policy does.
use common::runtime::object::Key;
use jiff::Timestamp;
use prometheus::{CounterVec, GaugeVec, IntCounterVec, Opts};
use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Per-policy series.
pub struct PolicyMetrics {
    info: GaugeVec,
    evaluations: IntCounterVec,
    evaluation_seconds: CounterVec,
    compared: IntCounterVec,
    compared_seconds: CounterVec,
    user_errors: IntCounterVec,
    system_errors: IntCounterVec,
    deleting_since: GaugeVec,
    known: Mutex<HashMap<Key, Known>>,
}
#[derive(Default)]
struct Known {
    severity: String,
    parent: String,
    objects: HashSet<(String, String)>,
}
/// Series of objects per policy: a bound on what a scrape costs.
const MOST_OBJECTS: usize = 1000;

impl PolicyMetrics {
    /// Registers all of them.
    pub fn new(metrics: &common::process::metrics::Metrics) -> prometheus::Result<Self> {
        let opts = |name: &str, help: &str| Opts::new(name, help);
        let object = &["config_policy_name", "namespace", "object"];
        let error = &["policy", "template", "type"];
        let own = PolicyMetrics {
            info: GaugeVec::new(
                opts("cluster_policy_governance_info", "Compliance: 0 compliant, 1 not, -1 unknown."),
                &["kind", "policy", "policy_namespace", "severity"],
            )?,
            evaluations: IntCounterVec::new(opts("config_policy_evaluation_total", "Evaluations."), &["name"])?,
            evaluation_seconds: CounterVec::new(
                opts("config_policy_evaluation_seconds_total", "Time spent in evaluations."),
                &["name"],
            )?,
            compared: IntCounterVec::new(opts("compare_objects_evaluation_total", "Comparisons of objects."), object)?,
            compared_seconds: CounterVec::new(
                opts("compare_objects_seconds_total", "Time spent in comparisons of objects."),
                object,
            )?,
            user_errors: IntCounterVec::new(opts("policy_user_errors_total", "What a person should mend."), error)?,
            system_errors: IntCounterVec::new(opts("policy_system_errors_total", "What went wrong around us."), error)?,
            deleting_since: GaugeVec::new(
                opts(
                    "policy_deletion_pending_since_seconds",
                    "When the deletion of a policy began that has been tried and is not through, in seconds since 1970.",
                ),
                &["policy", "policy_namespace"],
            )?,
            known: Mutex::default(),
        };
        metrics.register(Box::new(own.info.clone()))?;
        metrics.register(Box::new(own.evaluations.clone()))?;
        metrics.register(Box::new(own.evaluation_seconds.clone()))?;
        metrics.register(Box::new(own.compared.clone()))?;
        metrics.register(Box::new(own.compared_seconds.clone()))?;
        metrics.register(Box::new(own.user_errors.clone()))?;
        metrics.register(Box::new(own.system_errors.clone()))?;
        metrics.register(Box::new(own.deleting_since.clone()))?;
        Ok(own)
    }
    fn with<T>(&self, policy: &Key, then: impl FnOnce(&mut Known) -> T) -> T {
        then(self.known.lock().unwrap_or_else(PoisonError::into_inner).entry(policy.clone()).or_default())
    }
    /// A policy was evaluated and came to this.
    pub fn evaluated(&self, policy: &Key, severity: &str, state: &str, took: Duration) {
        self.evaluations.with_label_values(&[&*policy.name]).inc();
        self.evaluation_seconds.with_label_values(&[&*policy.name]).inc_by(took.as_secs_f64());
        let severity = severity.to_lowercase();
        let labels = |severity: &str| {
            [
                "ConfigurationPolicy".to_owned(),
                policy.name.to_string(),
                policy.namespace.to_string(),
                severity.to_owned(),
            ]
        };
        let before = self.with(policy, |known| std::mem::replace(&mut known.severity, severity.clone()));
        if before != severity {
            // The series of the former severity, if there was one.
            let _ = self.info.remove_label_values(&labels(&before));
        }
        let value = match state {
            "Compliant" => 0.0,
            "NonCompliant" => 1.0,
            _ => -1.0,
        };
        self.info.with_label_values(&labels(&severity)).set(value);
    }
    /// An object was compared.
    pub fn compared(&self, policy: &Key, namespace: &str, object: &str, took: Duration) {
        let pair = (namespace.to_owned(), object.to_owned());
        let counted = self.with(policy, |known| {
            known.objects.contains(&pair) || (known.objects.len() < MOST_OBJECTS && known.objects.insert(pair))
        });
        if counted {
            let labels = [&*policy.name, namespace, object];
            self.compared.with_label_values(&labels).inc();
            self.compared_seconds.with_label_values(&labels).inc_by(took.as_secs_f64());
        }
    }
    /// A person should mend something: `no-object-CRD`, `invalid-template`.
    pub fn user_error(&self, policy: &Key, parent: &str, kind: &str) {
        self.with(policy, |known| parent.clone_into(&mut known.parent));
        self.user_errors.with_label_values(&[parent, &policy.name, kind]).inc();
    }
    /// Something around us failed: `status-update-failed`.
    pub fn system_error(&self, policy: &Key, parent: &str, kind: &str) {
        self.with(policy, |known| parent.clone_into(&mut known.parent));
        self.system_errors.with_label_values(&[parent, &policy.name, kind]).inc();
    }
    /// A deletion that began then was tried, and something is left.
    pub fn deletion_pending(&self, policy: &Key, since: Timestamp) {
        // Seconds are exact in it for longer than anybody waits.
        #[allow(clippy::cast_precision_loss)]
        self.deleting_since.with_label_values(&[&*policy.name, &*policy.namespace]).set(since.as_second() as f64);
    }
    /// The policy is gone, and so are its series.
    pub fn forget(&self, policy: &Key) {
        // A series that never was cannot be removed; that is fine.
        let _ = self.deleting_since.remove_label_values(&[&*policy.name, &*policy.namespace]);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(policy);
        let Some(Known { severity, parent, objects }) = known else { return };
        let _ = self.info.remove_label_values(&["ConfigurationPolicy", &policy.name, &policy.namespace, &severity]);
        let _ = self.evaluations.remove_label_values(&[&*policy.name]);
        let _ = self.evaluation_seconds.remove_label_values(&[&*policy.name]);
        for (namespace, object) in objects {
            let _ = self.compared.remove_label_values(&[&*policy.name, &namespace, &object]);
            let _ = self.compared_seconds.remove_label_values(&[&*policy.name, &namespace, &object]);
        }
        for kind in ["no-object-CRD", "invalid-template"] {
            let _ = self.user_errors.remove_label_values(&[parent.as_str(), &policy.name, kind]);
        }
        let _ = self.system_errors.remove_label_values(&[parent.as_str(), &policy.name, "status-update-failed"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::process::metrics::Metrics;

    #[test]
    fn series_have_the_peers_names_and_go_with_their_policy() {
        let all = Metrics::new("policy-pruner", "0").unwrap();
        let own = PolicyMetrics::new(&all).unwrap();
        let policy = Key::new("managed", "p");
        own.evaluated(&policy, "Low", "NonCompliant", Duration::from_millis(1));
        own.compared(&policy, "default", "pods.x", Duration::from_millis(1));
        own.user_error(&policy, "parent", "no-object-CRD");
        own.deletion_pending(&policy, Timestamp::from_second(1_790_000_000).unwrap());
        let text = all.render().unwrap();
        for line in [
            "cluster_policy_governance_info{kind=\"ConfigurationPolicy\",policy=\"p\",policy_namespace=\"managed\",severity=\"low\"} 1",
            "config_policy_evaluation_total{name=\"p\"} 1",
            "compare_objects_evaluation_total{config_policy_name=\"p\",namespace=\"default\",object=\"pods.x\"} 1",
            "policy_deletion_pending_since_seconds{policy=\"p\",policy_namespace=\"managed\"} 1790000000",
            "policy_user_errors_total{policy=\"parent\",template=\"p\",type=\"no-object-CRD\"} 1",
        ] {
            assert!(text.contains(line), "{line} is missing in:\n{text}");
        }
        own.forget(&policy);
        let text = all.render().unwrap();
        assert!(!text.contains("\"p\""), "{text}");
    }
}
