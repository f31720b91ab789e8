//! The scene of every history: a policy over ten objects, what was there before, and what happens between enforcing and deleting.
use super::server::Shared;
use crate::{names, report};
use common::runtime::object::Key;
use serde_json::{Value, json};

/// Objects of the policy that are not there before.
pub const OBJECTS: usize = 10;
const NAMESPACE: &str = "n";
/// Without any field of their own, and so without a field manager.
const BARE: [&str; 3] = ["child-1", "child-3", "child-8"];
/// Named by the policy, there before it: never ours.
pub(super) const ELDER: &str = "elder";
/// Required by the heir, too.
pub(super) const HEIRLOOM: &str = "child-2";
/// The policy of every history, and the one that comes later in some.
pub const POLICIES: [&str; 2] = ["policy", "heir"];

/// What happens between enforcing and deleting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Between {
    /// Nothing.
    Nothing,
    /// The status is wiped.
    StatusWiped,
    /// The policy comes back under another uid, without its status.
    Restored,
    /// A backup brings back policy, ledger and children, all under other uids and without status.
    RestoredWhole,
    /// A stranger deletes one child and creates his own.
    Replaced,
    /// Half of the objects drop out of the policy.
    EditedOut,
    /// A second policy comes that requires one of the children, and outlives the first.
    Inherited,
    /// The same, but a stranger has put his own in the place of that child, and the first policy deletes all it names.
    InheritedForeign,
}
/// Everything that may happen between.
pub const BETWEEN: [Between; 8] = [
    Between::Nothing,
    Between::StatusWiped,
    Between::Restored,
    Between::RestoredWhole,
    Between::Replaced,
    Between::EditedOut,
    Between::Inherited,
    Between::InheritedForeign,
];

impl Between {
    /// A second policy requires one of the children.
    pub fn has_heir(self) -> bool {
        matches!(self, Between::Inherited | Between::InheritedForeign)
    }
    /// May the policy, by its own word, delete what others made, the heirloom aside?
    pub fn deletes_all(self) -> bool {
        self == Between::InheritedForeign
    }
}

/// A policy's key.
pub fn key(policy: &str) -> Key {
    Key::new(NAMESPACE, policy)
}
/// Where a policy is.
pub fn policy_path(policy: &str) -> String {
    report::mapping().path_of(NAMESPACE, policy)
}
pub(super) fn thing_path(name: &str) -> String {
    format!("/apis/test/v1/namespaces/{NAMESPACE}/things/{name}")
}
fn thing(name: &str) -> Value {
    let mut thing = json!({"apiVersion": "test/v1", "kind": "Thing", "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"a": 1}});
    if let Some(fields) = thing.as_object_mut().filter(|_| BARE.contains(&name)) {
        fields.remove("spec");
    }
    thing
}
fn templates(names: &[String]) -> Value {
    let all = names.iter().map(|name| json!({"complianceType": "musthave", "objectDefinition": thing(name)}));
    Value::Array(all.collect())
}
fn children() -> Vec<String> {
    (0..OBJECTS).map(|n| format!("child-{n}")).collect()
}
fn policy(name: &str, objects: &[String]) -> Value {
    json!({"apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"remediationAction": "enforce", "pruneObjectBehavior": "DeleteIfCreated", "object-templates": templates(objects)}})
}
fn first_policy() -> Value {
    let mut names = children();
    names.push(ELDER.into());
    policy(POLICIES[0], &names)
}
pub(super) fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// The beginning of every history: nothing here can fail.
pub fn begin(shared: &mut Shared) {
    let crd = json!({"metadata": {"name": names::CRD}});
    let crd_path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", names::CRD);
    let _ = shared.world.create(&crd_path, crd, "setup");
    let _ = shared.world.create(&thing_path(ELDER), thing(ELDER), "somebody");
    let _ = shared.world.create(&policy_path(POLICIES[0]), first_policy(), "user");
    let begun = shared.world.clone();
    shared.past = vec![begun; 4];
}

/// It happens.
pub fn happen(between: Between, shared: &mut Shared) {
    let path = policy_path(POLICIES[0]);
    match between {
        Between::Nothing => {}
        Between::StatusWiped => shared.world.touch(&path, |policy| policy["status"] = json!({})),
        Between::Restored => {
            shared.world.touch(&path, |policy| policy["metadata"]["finalizers"] = json!([]));
            // A backup brings it back without its status.
            let _ = shared.world.delete(&path, None);
            let _ = shared.world.create(&path, first_policy(), "backup");
        }
        Between::RestoredWhole => restore(shared),
        Between::Replaced => replace(shared, "child-3"),
        Between::EditedOut => {
            let names: Vec<String> = children().into_iter().take(OBJECTS / 2).collect();
            shared.world.edit(&path, |policy| policy["spec"]["object-templates"] = templates(&names));
        }
        Between::Inherited => inherit(shared),
        Between::InheritedForeign => {
            replace(shared, HEIRLOOM);
            shared.world.edit(&path, |policy| policy["spec"]["pruneObjectBehavior"] = "DeleteAll".into());
            inherit(shared);
        }
    }
    // Whatever a watch missed of a policy, it hears of this.
    shared.unheard.retain(|path, _| !is_policy(path));
    shared.remember();
}
/// A stranger deletes a child and creates his own.
fn replace(shared: &mut Shared, child: &str) {
    let path = thing_path(child);
    if shared.world.delete(&path, None).is_ok() {
        shared.world.deleted.pop();
    }
    if let Ok(made) = shared.world.create(&path, thing(child), "a-stranger") {
        shared.foreign.push(uid(&made));
    }
}
fn inherit(shared: &mut Shared) {
    let heir = policy(POLICIES[1], &[HEIRLOOM.to_owned()]);
    let _ = shared.world.create(&policy_path(POLICIES[1]), heir, "user");
}
/// Everything of the namespace comes back as it was, but for uids, versions and status. Managers of fields are kept, as backup tools do.
fn restore(shared: &mut Shared) {
    for path in shared.world.objects.keys().filter(|path| path.contains("/namespaces/")).cloned().collect::<Vec<_>>() {
        let Some(mut object) = shared.world.objects.remove(&path) else { continue };
        let before = uid(&object);
        let fields = object["metadata"]["managedFields"].take();
        if let Some(object) = object.as_object_mut() {
            object.remove("status");
        }
        let Ok(made) = shared.world.create(&path, object, "backup") else { continue };
        shared.world.touch(&path, |object| object["metadata"]["managedFields"] = fields);
        if shared.foreign.contains(&before) {
            shared.foreign.push(uid(&made));
        } else if BARE.iter().any(|name| path == thing_path(name)) {
            // Whether such a copy is ours nobody can prove: it may stay, and it may go.
            shared.unproven.push(uid(&made));
        }
    }
    shared.unheard.clear();
}
/// Is this the path of a policy?
pub fn is_policy(path: &str) -> bool {
    POLICIES.iter().any(|name| path == policy_path(name))
}
