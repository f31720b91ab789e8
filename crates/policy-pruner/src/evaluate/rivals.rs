//! Templates of one policy that want the same object, and cannot both have it: then the object is left as it is, and people are
//! told which templates to make agree. Without this, two templates would undo each other for ever.
use crate::api::ObjectRef;
use crate::compare::Compliance;
use crate::compare::keys::compare;
use serde_json::Value;

/// What one template wants of an object.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The template.
    pub index: usize,
    /// How the object should be.
    pub desired: &'a Value,
    /// How strictly.
    pub compliance: Compliance,
    /// How strictly, for labels and annotations.
    pub metadata: Option<Compliance>,
}
impl Claim<'_> {
    fn forbids(&self) -> bool {
        self.compliance == Compliance::MustNotHave
    }
    /// Is there something in the object that the claim cannot accept?
    fn is_broken_by(&self, object: &Value) -> bool {
        compare(self.desired, object, self.compliance, self.metadata).is_ok_and(|outcome| outcome.differs)
    }
}

/// All claims on objects.
#[derive(Debug, Default)]
pub struct Rivals<'a>(Vec<(ObjectRef, Claim<'a>)>);
impl<'a> Rivals<'a> {
    /// Keeps the claims on objects that more than one template wants.
    pub fn among(mut claims: Vec<(ObjectRef, Claim<'a>)>) -> Self {
        let key = |object: &ObjectRef| (object.group().to_owned(), object.kind.clone(), object.metadata.clone());
        let mut count = std::collections::HashMap::new();
        for (object, _) in &claims {
            *count.entry(key(object)).or_insert(0_usize) += 1;
        }
        claims.retain(|(object, _)| count.get(&key(object)).is_some_and(|n| *n > 1));
        Rivals(claims)
    }
    fn others(&self, index: usize, object: &ObjectRef) -> impl Iterator<Item = &Claim<'a>> {
        self.0.iter().filter(move |(other, claim)| claim.index != index && other.same(object)).map(|(_, claim)| claim)
    }
    /// A template that wants the object there where this one does not, or the other way round.
    pub fn opposed(&self, index: usize, object: &ObjectRef) -> Option<usize> {
        let own = self.0.iter().find(|(other, claim)| claim.index == index && other.same(object))?;
        let forbids = own.1.forbids();
        self.others(index, object).find(|claim| claim.forbids() != forbids).map(|claim| claim.index)
    }
    /// A template that the object satisfies now, and would not after this change.
    pub fn broken(&self, index: usize, object: &ObjectRef, now: &Value, changed: &Value) -> Option<usize> {
        let mut others = self.others(index, object).filter(|claim| !claim.forbids());
        others.find(|claim| !claim.is_broken_by(now) && claim.is_broken_by(changed)).map(|claim| claim.index)
    }
}

/// What to tell.
pub fn told(title: &str, index: usize, other: usize) -> String {
    let (first, second) = (index.min(other), index.max(other));
    format!(
        "{title} is left as it is: the object-templates at index [{first}] and [{second}] contradict each other, make them agree"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use Compliance::{MustHave, MustNotHave, MustOnlyHave};
    use serde_json::json;

    fn object() -> ObjectRef {
        ObjectRef::new("v1", "Thing", "n", "x")
    }
    #[allow(clippy::needless_pass_by_value)] // literals read better
    fn thing(spec: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec})
    }
    fn claims<'a>(wanted: &'a [(Value, Compliance)]) -> Rivals<'a> {
        let claim = |(index, (desired, compliance)): (usize, &'a (Value, Compliance))| {
            (object(), Claim { index, desired, compliance: *compliance, metadata: None })
        };
        Rivals::among(wanted.iter().enumerate().map(claim).collect())
    }

    #[test]
    fn templates_that_add_to_each_other_are_no_rivals() {
        let wanted = [(thing(json!({"a": 1})), MustHave), (thing(json!({"b": 2})), MustHave)];
        let rivals = claims(&wanted);
        assert_eq!(rivals.broken(1, &object(), &thing(json!({"a": 1})), &thing(json!({"a": 1, "b": 2}))), None);
        assert_eq!(rivals.opposed(0, &object()), None);
    }
    #[test]
    fn a_change_that_breaks_what_another_template_has_is_told() {
        let wanted = [(thing(json!({"a": 1})), MustHave), (thing(json!({"a": 2})), MustHave)];
        let rivals = claims(&wanted);
        let (one, two) = (thing(json!({"a": 1})), thing(json!({"a": 2})));
        assert_eq!(rivals.broken(1, &object(), &one, &two), Some(0));
        assert_eq!(rivals.broken(0, &object(), &two, &one), Some(1));
        assert_eq!(rivals.broken(0, &object(), &thing(json!({"a": 9})), &one), None, "neither has it: one may begin");
        let strict = [(thing(json!({"a": 1})), MustOnlyHave), (thing(json!({"b": 2})), MustHave)];
        let both = thing(json!({"a": 1, "b": 2}));
        assert_eq!(claims(&strict).broken(1, &object(), &one, &both), Some(0));
    }
    #[test]
    fn wanted_and_unwanted_are_opposed() {
        let wanted = [(thing(json!({})), MustHave), (thing(json!({})), MustNotHave)];
        let rivals = claims(&wanted);
        assert_eq!((rivals.opposed(0, &object()), rivals.opposed(1, &object())), (Some(1), Some(0)));
        assert_eq!(rivals.opposed(0, &ObjectRef::new("v1", "Thing", "n", "y")), None);
        assert_eq!(claims(&wanted[..1]).opposed(0, &object()), None);
    }
}
