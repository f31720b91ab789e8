//! Objects that a policy asks for, scene by scene.
mod stage;

use crate::telling::{check, scene};
use e2e::Result;
use serde_json::{Value, json};
use stage::Stage;

/// Kind and name of what the policy asks for; the first one is there before it.
const OBJECTS: [(&str, &str); 3] = [("ConfigMap", "settings"), ("ServiceAccount", "web"), ("Service", "web")];

/// Tells it from the beginning to the end.
pub(crate) async fn tell() -> Result<()> {
    let mut stage = Stage::set().await?;
    scene("Somebody's object is there before", "kubectl apply -f hack/demo.d/policy/before.yaml");
    stage.apply("before").await?;
    create(&mut stage).await?;
    mend(&mut stage).await?;
    forget(&mut stage).await?;
    delete(&mut stage).await?;
    stage.clear().await?;
    println!("\n3 objects asked for, 2 created, 2 removed with their policy, 1 that was there before kept.");
    Ok(())
}

async fn create(stage: &mut Stage) -> Result<()> {
    scene("A policy asks for three objects", "kubectl apply -f hack/demo.d/policy/shop.yaml");
    stage.apply("shop").await?;
    let status = stage.wait_compliant().await?;
    let created = show(&status);
    check(created == ["Service web", "ServiceAccount web"], || format!("created by the policy: {created:?}"))?;
    stage.say(
        "two created, one mended that was there; the status says which is which, so does a ledger beside the policy",
    );
    Ok(())
}

async fn mend(stage: &mut Stage) -> Result<()> {
    scene(
        "Somebody changes what the policy wants",
        "kubectl patch configmap settings -p '{\"data\": {\"color\": \"red\"}}'",
    );
    stage.change("ConfigMap", "settings", &json!({"data": {"color": "red"}})).await?;
    stage.wait_for("ConfigMap", "settings", "/data/color", "blue").await?;
    let data = stage.live("ConfigMap", "settings").await?.unwrap_or_default()["data"].clone();
    check(data == json!({"color": "blue", "owner": "somebody"}), || format!("settings: {data}"))?;
    stage.say(&format!("mended, and nothing else in it touched: {data}"));
    Ok(())
}

async fn forget(stage: &mut Stage) -> Result<()> {
    scene("The controller dies and the status is lost", "kill -9, status wiped, as a restore from a backup does");
    stage.controller.kill().await?;
    stage.wipe_status().await?;
    stage.controller.restart().await?;
    let status = stage.wait_compliant().await?;
    let created = show(&status);
    check(created == ["Service web", "ServiceAccount web"], || format!("created by the policy: {created:?}"))?;
    stage.say("started again without a status: the ledger still knows what was created");
    Ok(())
}

async fn delete(stage: &mut Stage) -> Result<()> {
    scene("What would go with the policy?", "policy-pruner plan <namespace>/shop --delete");
    for line in stage.plan_of_deletion().await?.lines() {
        println!("      {line}");
    }
    scene("The policy goes", "kubectl delete configurationpolicy shop");
    stage.delete_policy().await?;
    let mut left = Vec::new();
    for (kind, name) in OBJECTS {
        let there = stage.live(kind, name).await?.is_some();
        println!("      {:<26} {}", format!("{kind} {name}"), if there { "kept" } else { "removed" });
        left.extend(there.then(|| format!("{kind} {name}")));
    }
    check(left == ["ConfigMap settings"], || format!("expected only settings to be left, found {left:?}"))
}

/// A table of the policy's objects; returns those that it created.
fn show(status: &Value) -> Vec<String> {
    println!("      {:<26} {:<14} {:<10} reason", "object", "state", "created");
    let mut created = Vec::new();
    for entry in status["relatedObjects"].as_array().into_iter().flatten() {
        let text = |pointer: &str| entry.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let object = format!("{} {}", text("/object/kind"), text("/object/metadata/name"));
        let ours = entry.pointer("/properties/createdByPolicy") == Some(&Value::Bool(true));
        let who = if ours { "by policy" } else { "before" };
        println!("      {object:<26} {:<14} {who:<10} {}", text("/compliant"), text("/reason"));
        created.extend(ours.then_some(object));
    }
    created
}
