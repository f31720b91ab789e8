//! One object as it is now, straight from the API server, in whatever version of its group it is served today.
use crate::api::ObjectRef;
use crate::cluster::kinds::{Kinds, Mapping};
use crate::cluster::objects::Objects;
use crate::cluster::wire::Trouble;
use serde_json::Value;

/// Looks. `None`: it is not there, or its kind is not served in any version.
pub async fn look(kinds: &Kinds, objects: &Objects, object: &ObjectRef) -> Result<Option<(Mapping, Value)>, Trouble> {
    let (namespace, name) = (object.metadata.namespace.as_str(), object.metadata.name.as_str());
    let Some(mapping) = kinds.find_served(&object.api_version, &object.kind).await? else { return Ok(None) };
    if let Some(live) = objects.get(&mapping, namespace, name).await? {
        return Ok(Some((mapping, live)));
    }
    // A version that is no longer served answers as if the object were not there.
    let now = kinds.find_anew(&object.api_version, &object.kind).await?;
    let Some(now) = now.filter(|now| *now != mapping) else { return Ok(None) };
    Ok(objects.get(&now, namespace, name).await?.map(|live| (now, live)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::wire::{Call, Wire};
    use crate::testing::clock::SimClock;
    use serde_json::json;
    use std::collections::HashMap;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// Answers by path.
    #[derive(Default)]
    struct Served(Mutex<HashMap<&'static str, Value>>);
    impl Served {
        /// The kind and its one object, in this version only.
        fn only(&self, version: &'static str, group: &'static str, object: &'static str) {
            let kind = json!({"name": "things", "kind": "Thing", "namespaced": true, "verbs": ["watch"]});
            let versions = json!([{"groupVersion": version.trim_start_matches("/apis/")}]);
            *self.0.lock().unwrap() = HashMap::from([
                (version, json!({"resources": [kind]})),
                (group, json!({ "versions": versions })),
                (object, json!({"metadata": {"uid": "1"}})),
            ]);
        }
    }
    #[async_trait::async_trait]
    impl Wire for Served {
        async fn call(&self, call: Call) -> Result<Value, Trouble> {
            let missing = || Trouble { code: 404, message: "404 page not found".into(), ..Trouble::default() };
            self.0.lock().unwrap().get(&*call.path).cloned().ok_or_else(missing)
        }
    }

    #[tokio::test]
    async fn an_object_is_found_in_another_version_of_its_group() {
        let (wire, clock) = (Arc::new(Served::default()), Arc::new(SimClock::default()));
        let (kinds, objects) = (Kinds::new(wire.clone(), clock.clone()), Objects(wire.clone()));
        let object = ObjectRef::new("g/v1beta1", "Thing", "n", "a");
        let version = || async { look(&kinds, &objects, &object).await.unwrap().map(|(mapping, _)| mapping.version) };
        // given an object, looked at in the version that it was made in
        wire.only("/apis/g/v1beta1", "/apis/g", "/apis/g/v1beta1/namespaces/n/things/a");
        assert_eq!(version().await.as_deref(), Some("v1beta1"));
        // when that version is no longer served, remembered or not, then the object is still there
        wire.only("/apis/g/v1", "/apis/g", "/apis/g/v1/namespaces/n/things/a");
        for wait in [Duration::from_mins(1), Duration::from_mins(20)] {
            clock.pass(wait);
            assert_eq!(version().await.as_deref(), Some("v1"));
        }
        // when the kind is gone, then so is the object
        wire.0.lock().unwrap().clear();
        clock.pass(Duration::from_mins(20));
        assert_eq!(version().await, None);
    }
}
