//! One drifted object among many: mended in one evaluation, and nothing is listed for it.
use crate::stage::{PATIENCE, Stage};
use crate::{seen, tell};
use e2e::{AuditLog, Error, Result, Seen, env, until};
use futures::{StreamExt, stream};
use serde_json::{Value, json};

/// How many objects; `hack/verify` asks for ten thousand.
const OBJECTS: &str = "CUSTODY_E2E_DRIFT_OBJECTS";
const PER_POLICY: u64 = 50;

#[tokio::test]
async fn one_drifted_object_is_mended_without_a_list() {
    tell("one_drifted_object_is_mended_without_a_list", drift()).await;
}

async fn drift() -> Result<()> {
    // given many objects at rest, with a controller and an account of their own
    let stage = Stage::set("drift").await?;
    let count = env::number(OBJECTS, 300);
    let mut controller = stage.start().await?;
    let thing = |n: u64| {
        let metadata = json!({"name": format!("t{n}"), "namespace": stage.namespace()});
        json!({"apiVersion": "test.custody.dev/v1", "kind": "Thing", "metadata": metadata, "spec": {"a": 1}})
    };
    let policies = count.div_ceil(PER_POLICY);
    let stage_ref = &stage;
    let failed: Vec<Error> = stream::iter(0..policies)
        .map(|p| {
            let templates: Vec<Value> = (p * PER_POLICY..((p + 1) * PER_POLICY).min(count))
                .map(|n| json!({"complianceType": "musthave", "objectDefinition": thing(n)}))
                .collect();
            let spec = json!({"remediationAction": "enforce", "object-templates": templates});
            async move { stage_ref.create(&stage_ref.policy(&format!("p{p}"), &spec)).await }
        })
        .buffer_unordered(24)
        .filter_map(|made| async { made.err() })
        .collect()
        .await;
    if let Some(error) = failed.into_iter().next() {
        return Err(error);
    }
    until("all policies at rest", PATIENCE * 10, || async {
        let all = stage.policies().list(&kube::api::ListParams::default()).await?.items;
        let message = |p: &kube::api::DynamicObject| {
            p.data["status"]["compliancyDetails"][0]["conditions"][0]["message"].to_string()
        };
        let done = all.iter().filter(|p| message(p).contains("found as specified")).count();
        Ok(if done as u64 == policies { Seen::Yes(()) } else { Seen::NotYet(format!("{done} of {policies}")) })
    })
    .await?;
    // when one of them is changed
    let log = AuditLog::of(&stage.cluster)?;
    let before = log.moment().await?;
    let victim = thing(count / 2);
    stage.merge(&victim, &json!({"spec": {"a": 7}})).await?;
    // then it is mended
    until("the drift to be mended", PATIENCE, || async {
        let found = stage.get(&victim).await?.unwrap_or_default();
        Ok(if found["spec"]["a"] == 1 { Seen::Yes(()) } else { Seen::NotYet(found["spec"].to_string()) })
    })
    .await?;
    let after = log.moment().await?;
    controller.must_run()?;
    // and nothing was listed for it. Other tests share the account; where so many objects are asked for, this one runs alone.
    if count < 10_000 {
        seen(&format!("one of {count} objects drifted and was mended"));
    } else {
        let requests = log.requests(&stage.account.user(), before, after)?;
        let times = |verb: &str, of: &str| -> u64 {
            requests.iter().filter(|(r, _)| r.verb == verb && r.resource.starts_with(of)).map(|(_, n)| n).sum()
        };
        let told: Vec<String> = requests.iter().map(|(r, n)| format!("{n} {r}")).collect();
        // one look, one dry run, one write: the first evaluation mended it
        let counts = (times("list", ""), times("get", "things"), times("update", "things"));
        assert_eq!(counts, (0, 1, 2), "{told:?}");
        seen(&format!("one of {count} objects drifted: no list, 1 look, 1 dry run, 1 write"));
    }
    // Nobody mends what goes with its namespace.
    controller.kill().await?;
    stage.clear().await
}
