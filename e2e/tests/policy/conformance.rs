//! What policies mean: every case of `cases/`, several at a time, on one controller.
use crate::case::{Case, Row, Step, Then, When, named};
use crate::stage::{PATIENCE, Stage};
use crate::{check, seen, tell};
use e2e::{Error, Result, Seen, until};
use futures::{StreamExt, stream};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const ROWS: &str = include_str!("cases/rows.yaml");
const MEANING: &str = include_str!("cases/meaning.yaml");
const SELECTION: &str = include_str!("cases/selection.yaml");
const MENDING: &str = include_str!("cases/mending.yaml");
const TROUBLE: &str = include_str!("cases/trouble.yaml");
/// Objects with differences of fifty thousand bytes each: more than fit.
const LONG: usize = 25;
/// Cases side by side.
const AT_ONCE: usize = 6;

fn read<T: DeserializeOwned>(text: &str) -> Result<Vec<T>> {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options).map_err(Error::other)
}

#[tokio::test]
async fn policies_mean_what_they_say() {
    tell("policies_mean_what_they_say", cases()).await;
}

async fn cases() -> Result<()> {
    // given one controller
    let stage = Stage::set("conformance").await?;
    let mut controller = stage.start().await?;
    // when every case is played
    let mut texts = Vec::new();
    let mut number = 0;
    for file in [MEANING, SELECTION, MENDING, TROUBLE] {
        for case in read::<Value>(file)? {
            number += 1;
            let text = named(&case.to_string(), number, stage.namespace());
            let case: Case = serde_json::from_str(&text).map_err(Error::other)?;
            texts.push((number, case));
        }
    }
    let rows: Vec<Row> = read(ROWS)?;
    let (count_cases, count_rows) = (texts.len(), rows.len());
    let stage_ref = &stage;
    let mut failures: Vec<String> = stream::iter(texts)
        .map(|(number, case)| async move {
            let name = case.name.clone();
            play(stage_ref, number, case).await.err().map(|error| format!("case {number}, {name}: {error}"))
        })
        .buffer_unordered(AT_ONCE)
        .filter_map(|failed| async move { failed })
        .collect()
        .await;
    let failed_rows: Vec<String> = stream::iter(rows.into_iter().enumerate())
        .map(
            |(n, row)| async move { compare(stage_ref, n, &row).await.err().map(|e| format!("row {n}, {row:?}: {e}")) },
        )
        .buffer_unordered(AT_ONCE)
        .filter_map(|failed| async move { failed })
        .collect()
        .await;
    failures.extend(failed_rows);
    // then none fails, and the controller lives
    controller.must_run()?;
    if !failures.is_empty() {
        let all = failures.join("\n\n");
        return Err(Error::other(format!("{} of {} failed:\n{all}", failures.len(), count_cases + count_rows)));
    }
    seen(&format!(
        "{} cases: {count_cases} stories and {count_rows} comparisons, each informed and enforced",
        count_cases + count_rows
    ));
    stage.clear().await
}

#[tokio::test]
async fn a_status_that_does_not_fit_says_so() {
    tell("a_status_that_does_not_fit_says_so", long_status()).await;
}

async fn long_status() -> Result<()> {
    // given objects whose differences are longer than a status may be
    let stage = Stage::set("long").await?;
    let mut controller = stage.start().await?;
    let thing = |n: usize, spec: Value| {
        let metadata = json!({"name": format!("long-{n}"), "namespace": stage.namespace()});
        json!({"apiVersion": "test.custody.dev/v1", "kind": "Thing", "metadata": metadata, "spec": spec})
    };
    let lines: serde_json::Map<String, Value> =
        (0..40).map(|n| (format!("line{n}"), "x".repeat(1200).into())).collect();
    let mut templates = Vec::new();
    for n in 0..LONG {
        stage.create(&thing(n, lines.clone().into())).await?;
        templates.push(json!({"complianceType": "mustonlyhave", "objectDefinition": thing(n, json!({"a": 1}))}));
    }
    // when a policy compares them all
    let spec = json!({"remediationAction": "inform", "object-templates": templates});
    stage.create(&stage.policy("long", &spec)).await?;
    // then its status is there, says what is left out, and what to do
    stage.says("long", "(the status of this policy is too long, left out are differences; split the policy)").await?;
    let found = stage.policies().get("long").await?;
    let related = found.data["status"]["relatedObjects"].as_array().cloned().unwrap_or_default();
    assert_eq!((related.len(), &found.data["status"]["compliant"]), (LONG, &json!("NonCompliant")));
    assert!(related.iter().all(|entry| entry["properties"]["diff"].is_null()));
    controller.must_run()?;
    stage.clear().await
}

async fn play(stage: &Stage, number: usize, case: Case) -> Result<()> {
    let policy_name = format!("c{number:03}");
    for object in &case.given {
        stage.create(object).await?;
    }
    let mut policy = stage.policy(&policy_name, &case.policy);
    if let Some(annotations) = &case.annotations {
        policy["metadata"]["annotations"] = annotations.clone();
    }
    stage.create(&policy).await?;
    expect(stage, &policy_name, &case.then).await?;
    for Step { when, then } in &case.next {
        act(stage, &policy, when).await?;
        expect(stage, &policy_name, then).await?;
    }
    // What a case leaves behind must not hold the namespace.
    stage.merge(&policy, &json!({"spec": {"pruneObjectBehavior": "None"}})).await.ok();
    stage.delete(&policy).await
}

async fn act(stage: &Stage, policy: &Value, when: &When) -> Result<()> {
    for object in &when.create {
        stage.create(object).await?;
    }
    for object in &when.change {
        stage.merge(object, object).await?;
    }
    for object in &when.delete {
        stage.delete(object).await?;
    }
    if let Some(spec) = &when.edit {
        stage.merge(policy, &json!({ "spec": spec })).await?;
    }
    if when.delete_policy {
        stage.delete(policy).await?;
    }
    Ok(())
}

async fn expect(stage: &Stage, name: &str, then: &Then) -> Result<()> {
    stage.wait(name, "as expected", |found| check::policy(found, then)).await?;
    for object in &then.there {
        until(&format!("{name}: {object} to be there"), PATIENCE, || async move {
            Ok(match stage.get(object).await? {
                Some(found) if check::includes(&found, object) => Seen::Yes(()),
                found => Seen::NotYet(found.unwrap_or_default().to_string()),
            })
        })
        .await?;
    }
    for object in &then.absent {
        until(&format!("{name}: {object} to be gone"), PATIENCE, || async move {
            Ok(stage.get(object).await?.map_or(Seen::Yes(()), |found| Seen::NotYet(found.to_string())))
        })
        .await?;
    }
    Ok(())
}

/// One row: informed first, then enforced.
async fn compare(stage: &Stage, number: usize, row: &Row) -> Result<()> {
    let name = format!("row-{number:03}");
    let thing = |spec: &Value| {
        let metadata = json!({"name": name, "namespace": stage.namespace()});
        json!({"apiVersion": "test.custody.dev/v1", "kind": "Thing", "metadata": metadata, "spec": spec})
    };
    stage.create(&thing(&row.live)).await?;
    let kind = if row.only { "mustonlyhave" } else { "musthave" };
    let template = json!({"complianceType": kind, "objectDefinition": thing(&row.want)});
    let policy = stage.policy(&name, &json!({"remediationAction": "inform", "object-templates": [template]}));
    stage.create(&policy).await?;
    let phrase = if row.fits { "found as specified" } else { "found but not as specified" };
    let informed = Then {
        state: Some(if row.fits { "Compliant" } else { "NonCompliant" }.into()),
        messages: vec![format!("things [{name}] {phrase} in namespace {}", stage.namespace())],
        ..Then::default()
    };
    expect(stage, &name, &informed).await?;
    stage.merge(&policy, &json!({"spec": {"remediationAction": "enforce"}})).await?;
    let enforced = Then { state: Some("Compliant".into()), ..Then::default() };
    expect(stage, &name, &enforced).await?;
    let after = row.after.as_ref().unwrap_or(&row.live);
    let found = stage.get(&thing(&row.live)).await?.map(|found| found["spec"].clone()).unwrap_or_default();
    if found != *after {
        return Err(Error::other(format!("enforced: {found} is not {after}")));
    }
    stage.delete(&policy).await
}
