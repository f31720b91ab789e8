//! Which objects this process serves: `--namespace` and `--watch-filter`.
use crate::engine::owner::OwnerView;
use crate::names;

/// What to serve. The API server filters the watch by it; [`Filter::serves`] says the same of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only objects whose label `cluster.x-k8s.io/watch-filter` has this value.
    pub watch_filter: Option<String>,
}
impl Filter {
    /// An empty text means no filter: that is how an unset variable arrives from a manifest.
    pub fn new(namespace: Option<&str>, watch_filter: Option<&str>) -> Self {
        let given = |text: Option<&str>| text.filter(|t| !t.is_empty()).map(str::to_owned);
        Filter { namespace: given(namespace), watch_filter: given(watch_filter) }
    }
    /// The label selector of the watch.
    pub fn selector(&self) -> Option<String> {
        self.watch_filter.as_ref().map(|value| format!("{}={value}", names::WATCH_FILTER))
    }
    /// Is this object served?
    pub fn serves(&self, view: &OwnerView) -> bool {
        let here = self.namespace.as_ref().is_none_or(|n| *n == view.namespace);
        let ours = self.watch_filter.as_ref().is_none_or(|v| view.labels.get(names::WATCH_FILTER) == Some(v));
        here && ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(namespace: &str, label: Option<&str>) -> OwnerView {
        let labels = label.map(|v| (names::WATCH_FILTER.to_owned(), v.to_owned())).into_iter().collect();
        OwnerView { namespace: namespace.into(), labels, ..OwnerView::default() }
    }

    #[test]
    fn both_filters_must_agree() {
        let filter = Filter::new(Some("a"), Some("blue"));
        assert!(filter.serves(&view("a", Some("blue"))));
        assert!(!filter.serves(&view("b", Some("blue"))));
        assert!(!filter.serves(&view("a", Some("red"))));
        assert!(!filter.serves(&view("a", None)));
        assert_eq!(filter.selector().as_deref(), Some("cluster.x-k8s.io/watch-filter=blue"));
    }
    #[test]
    fn no_filter_serves_everything() {
        let filter = Filter::new(Some(""), None);
        assert!(filter.serves(&view("b", None)) && filter.selector().is_none());
    }
}
