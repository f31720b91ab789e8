//! The definition of the custom resource, as it is applied to a cluster.
use crate::api::SampleOwner;
use kube::CustomResourceExt;

/// As YAML; the same text every time.
pub fn yaml() -> Result<String, serde_saphyr::ser::Error> {
    serde_saphyr::to_string(&SampleOwner::crd())
}
