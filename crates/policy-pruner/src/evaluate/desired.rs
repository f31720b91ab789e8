//! Which objects a template means: its kind, its namespaces, its names.
use super::Ground;
use super::templates::Ready;
use crate::cluster::kinds::Mapping;
use crate::compare::Compliance;
use crate::compare::keys::fits;
use crate::message::{Happening, Outcome};
use crate::names::reason;
use crate::namespaces;
use crate::text::selector::Selector;
use serde_json::Value;
use std::collections::BTreeMap;

/// The objects of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Their kind.
    pub mapping: Mapping,
    /// The objects; without a name where only matching is asked for.
    pub objects: Vec<Value>,
    /// Said instead, where there are none.
    pub instead: Vec<Outcome>,
}
/// The template cannot be evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// What to say.
    pub happening: Happening,
    /// Its kind, if that much is known.
    pub mapping: Option<Mapping>,
    /// Does the refusal leave open which objects are meant? Then nothing may be pruned.
    pub doubtful: bool,
    /// May it go well next time?
    pub retry: bool,
    /// There is no such kind (yet).
    pub kind_missing: bool,
}
impl Refused {
    fn new(why: &str, message: impl Into<String>) -> Self {
        let happening = Happening::said(false, why, message);
        Refused { happening, mapping: None, doubtful: true, retry: false, kind_missing: false }
    }
    fn of(self, mapping: &Mapping) -> Self {
        Refused { mapping: Some(mapping.clone()), ..self }
    }
    fn again(self) -> Self {
        Refused { retry: true, ..self }
    }
}

struct Head<'a> {
    api_version: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}
fn head(definition: &Value) -> Head<'_> {
    Head {
        api_version: definition["apiVersion"].as_str().unwrap_or_default(),
        kind: definition["kind"].as_str().unwrap_or_default(),
        namespace: definition["metadata"]["namespace"].as_str().unwrap_or_default(),
        name: definition["metadata"]["name"].as_str().unwrap_or_default(),
    }
}

/// Determines the objects of one template.
pub async fn desired(ground: Ground<'_>, index: usize, ready: &Ready) -> Result<Desired, Refused> {
    let template = &ready.template;
    let definition = &template.object_definition;
    let Head { api_version, kind, namespace, name } = head(definition);
    let policy = ground.policy.metadata.name.as_deref().unwrap_or_default();
    let (kind, api_version) = (kind.trim(), api_version.trim());
    if kind.is_empty() || api_version.is_empty() || api_version.ends_with('/') {
        let message = format!(
            "The kind and apiVersion fields are required on the object template at index {index} in policy {policy}"
        );
        return Err(Refused::new(reason::DECODE, message));
    }
    if let Some(why) = &ready.unresolved {
        return Err(Refused::new(reason::TEMPLATE, why.clone()));
    }
    let mapping = map_kind(ground, index, api_version, kind).await?;
    let namespaces = choose_namespaces(ground, &mapping, namespace, name, kind).await.map_err(|r| r.of(&mapping))?;
    let selector = template.object_selector.as_ref().filter(|_| name.is_empty());
    let names = match selector {
        None => namespaces.into_iter().map(|ns| (ns, vec![name.to_owned()])).collect(),
        Some(labels) => {
            let wrong = |why: String| Refused::new(reason::OBJECT_SELECTOR, why).of(&mapping);
            let parsed =
                Selector::parse(&labels.match_labels, &labels.match_expressions, ground.dialect).map_err(|why| {
                    wrong(format!(
                        "Error parsing provided objectSelector in the object-template at index [{index}]: {}",
                        ready.shown(why)
                    ))
                })?;
            let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for namespace in namespaces {
                let objects = ground.sight.list(&mapping, &namespace, &parsed).await.map_err(|trouble| {
                    let why = format!(
                        "Error listing resources with provided objectSelector in the object-template at index [{index}]: {}",
                        ready.told(&trouble)
                    );
                    wrong(why).again()
                })?;
                let matching = objects.iter().filter(|live| must_fit(template.compliance(), definition, live));
                let names = matching.filter_map(|live| live["metadata"]["name"].as_str().map(str::to_owned)).collect();
                found.insert(namespace, names);
            }
            found
        }
    };
    let instead = match selector {
        Some(_) if template.compliance() == Compliance::MustNotHave && names.values().all(Vec::is_empty) => {
            names.keys().map(|ns| absent(ns)).collect()
        }
        _ => Vec::new(),
    };
    let objects = build(ground, ready, &mapping, &names).map_err(|r| r.of(&mapping))?;
    if objects.is_empty() && instead.is_empty() {
        let whence = if selector.is_some() { "policy objectSelector" } else { "objectDefinition metadata" };
        let message = format!("No objects of kind {kind} were matched from the {whence}");
        let nothing = Outcome { happenings: vec![Happening::said(true, "", message)], ..Outcome::default() };
        return Ok(Desired { mapping, objects, instead: vec![nothing] });
    }
    Ok(Desired { mapping, objects, instead })
}

/// A template that forbids objects by label means only those that match it otherwise, too.
fn must_fit(compliance: Compliance, definition: &Value, live: &Value) -> bool {
    compliance != Compliance::MustNotHave || {
        let mut unnamed = definition.clone();
        if let Some(metadata) = unnamed.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("name");
        }
        fits(&unnamed, live, Compliance::MustNotHave)
    }
}
fn absent(namespace: &str) -> Outcome {
    let happenings = vec![Happening::plain(true, reason::ABSENT)];
    Outcome { namespace: namespace.to_owned(), happenings, ..Outcome::default() }
}

async fn map_kind(ground: Ground<'_>, index: usize, api_version: &str, kind: &str) -> Result<Mapping, Refused> {
    let found = ground.kinds.find(api_version, kind).await.map_err(|trouble| {
        let why = format!("the kinds of API version {api_version} cannot be read: {trouble}");
        Refused::new(reason::MAPPING, why).again()
    })?;
    let Some(mapping) = found else {
        let why = format!(
            "couldn't find mapping resource with kind {kind} in API version {api_version}, please check if you have CRD deployed"
        );
        return Err(Refused { kind_missing: true, ..Refused::new(reason::MAPPING, why).again() });
    };
    if ground.sight.follows() && !mapping.watchable {
        let Mapping { group, version, kind, .. } = &mapping;
        let why = format!(
            "Error with object-template at index [{index}], it may require evaluationInterval to be set: {group}/{version}, Kind={kind} cannot be watched: watch not supported on this resource"
        );
        return Err(Refused::new(reason::UNWATCHABLE, why).of(&mapping));
    }
    Ok(mapping)
}

async fn choose_namespaces(
    ground: Ground<'_>,
    mapping: &Mapping,
    namespace: &str,
    name: &str,
    kind: &str,
) -> Result<Vec<String>, Refused> {
    if !mapping.namespaced {
        return Ok(vec![String::new()]);
    }
    if !namespace.is_empty() {
        return Ok(vec![namespace.to_owned()]);
    }
    let selector = ground.policy.spec.namespace_selector.as_ref();
    let wrong = |why: String| {
        Refused::new(
            reason::NAMESPACE_SELECTOR,
            format!("Error filtering namespaces with provided namespaceSelector: {why}"),
        )
    };
    let chosen = if namespaces::selects(selector) {
        let all = ground.spaces.all().await.map_err(|trouble| wrong(trouble.to_string()).again())?;
        let chosen = namespaces::select(selector, &all, ground.take_terminating, ground.dialect).map_err(wrong)?;
        if let Some(selector) = selector {
            ground.spaces.selected(ground.key, selector, &chosen, ground.dialect);
        }
        chosen
    } else {
        Vec::new()
    };
    if chosen.is_empty() {
        let name = if name.is_empty() { String::new() } else { format!(" {name}") };
        let message = format!(
            "namespaced object{name} of kind {kind} has no namespace specified from the policy namespaceSelector nor the object metadata"
        );
        // The selector was understood and takes in nothing: that is no doubt about which objects are meant.
        return Err(Refused { doubtful: false, ..Refused::new(reason::NO_NAMESPACE, message) });
    }
    Ok(chosen)
}

fn build(
    ground: Ground<'_>,
    ready: &Ready,
    mapping: &Mapping,
    names: &BTreeMap<String, Vec<String>>,
) -> Result<Vec<Value>, Box<Refused>> {
    let definition = &ready.template.object_definition;
    let Head { namespace, name, .. } = head(definition);
    let selecting = namespaces::selects(ground.policy.spec.namespace_selector.as_ref());
    let mut objects = Vec::new();
    for (ns, names) in names {
        for of in names {
            let wanted_name = if name.is_empty() { of } else { name }.trim();
            let wanted_namespace = if namespace.is_empty() { ns } else { namespace }.trim();
            if selecting && wanted_namespace != ns {
                let why = "The object definition's namespace must match the result from the namespace selector after template resolution";
                return Err(Box::new(Refused::new(reason::TEMPLATE, why)));
            }
            if ready.template.object_selector.is_some() && wanted_name != of {
                let why = "The object definition's name must match the result from the object selector after template resolution";
                return Err(Box::new(Refused::new(reason::TEMPLATE, why)));
            }
            let mut object = definition.clone();
            object["apiVersion"] = mapping.api_version().into();
            object["kind"] = mapping.kind.clone().into();
            if !object["metadata"].is_object() {
                object["metadata"] = Value::Object(serde_json::Map::new());
            }
            set(&mut object["metadata"], "name", wanted_name);
            set(&mut object["metadata"], "namespace", if mapping.namespaced { wanted_namespace } else { "" });
            objects.push(object);
        }
    }
    Ok(objects)
}
fn set(metadata: &mut Value, field: &str, text: &str) {
    let Value::Object(map) = metadata else { return };
    if text.is_empty() {
        map.remove(field);
    } else {
        map.insert(field.to_owned(), text.into());
    }
}
