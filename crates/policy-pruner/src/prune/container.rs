//! What takes others along when it is deleted: a namespace what is in it, a definition of a kind every object of the kind. Pure.
use crate::api::ObjectRef;
use serde_json::Value;

/// An object with others in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Container {
    /// A namespace.
    Namespace(String),
    /// A definition of a kind.
    Kind {
        /// Its group.
        group: String,
        /// Its kind.
        kind: String,
    },
}
impl Container {
    /// `None` for most objects.
    pub fn of(object: &ObjectRef, live: &Value) -> Option<Self> {
        match (object.group(), object.kind.as_str()) {
            ("", "Namespace") => Some(Container::Namespace(object.metadata.name.clone())),
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let spec = &live["spec"];
                Some(Container::Kind { group: text(&spec["group"]), kind: text(&spec["names"]["kind"]) })
            }
            _ => None,
        }
    }
    /// Would the object go with it?
    pub fn holds(&self, object: &ObjectRef) -> bool {
        match self {
            Container::Namespace(name) => object.metadata.namespace == *name,
            Container::Kind { group, kind } => object.group() == group && object.kind == *kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_goes_with_a_namespace_and_with_a_definition() {
        let pod = ObjectRef::new("v1", "Pod", "shop", "web");
        let namespace = ObjectRef::new("v1", "Namespace", "", "shop");
        let shop = Container::of(&namespace, &Value::Null).unwrap();
        assert!(
            shop.holds(&pod) && !shop.holds(&ObjectRef::new("v1", "Pod", "other", "web")) && !shop.holds(&namespace)
        );
        let definition = ObjectRef::new("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.test");
        let live = json!({"spec": {"group": "test", "names": {"kind": "Thing"}}});
        let things = Container::of(&definition, &live).unwrap();
        assert!(things.holds(&ObjectRef::new("test/v1beta1", "Thing", "shop", "a")) && !things.holds(&pod));
        assert_eq!(Container::of(&pod, &Value::Null), None);
    }
}
