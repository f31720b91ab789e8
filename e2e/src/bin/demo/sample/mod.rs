//! Things in an emulated cloud, scene by scene.
mod cloud;
mod stage;

use crate::telling::{check, scene};
use cloud::{Thing, doubled, show, things};
use e2e::{Error, Result, Seen, until};
use serde_json::json;
use stage::{PRINCIPAL, Stage};
use std::time::Duration;

/// Tells it from the beginning to the end.
pub(crate) async fn tell() -> Result<()> {
    let mut stage = Stage::set().await?;
    let stranger = plant_a_stranger(&stage).await?;
    let shop = create(&mut stage).await?;
    prune(&mut stage, shop).await?;
    let blog = kill_in_mid_creation(&mut stage).await?;
    delete(&mut stage, &stranger).await?;
    let all = things(&stage.cloud).await?;
    let made = all.iter().filter(|thing| thing.made_by == PRINCIPAL).count();
    stage.clear().await?;
    check(made == shop + blog, || format!("{made} things were made for {} wishes", shop + blog))?;
    println!("\n{made} things asked for, {made} created, 0 doubled, {made} deleted again, 1 of a stranger kept.");
    Ok(())
}

async fn plant_a_stranger(stage: &Stage) -> Result<String> {
    scene("A stranger lives in the cloud", "somebody else's network has the very name that our owner will ask for");
    let fields = json!({"name": "shop-front", "cidr": "10.9.0.0/16"});
    stage.cloud.plant(&json!({"kind": "network", "fields": fields, "tags": {"team": "somebody-else"}})).await?;
    let all = things(&stage.cloud).await?;
    show(&all);
    all.first().map(|thing| thing.id.clone()).ok_or_else(|| Error::other("the stranger's network is not there"))
}

async fn create(stage: &mut Stage) -> Result<usize> {
    scene("An owner asks for things", "kubectl apply -f hack/demo.d/sample/shop.yaml");
    stage.cloud.set(&json!({"build": {"machines": {"fixed_ms": 2000}}})).await?;
    let wanted = stage.apply("shop").await?;
    stage.wait_ready("shop").await?;
    let ours = living(stage).await?;
    show(&ours);
    check(ours.len() == wanted, || format!("{} things for {wanted} wishes", ours.len()))?;
    stage.say(&format!("{wanted} asked for, {} created; the stranger's network was not taken for ours", ours.len()));
    Ok(wanted)
}

async fn prune(stage: &mut Stage, wanted: usize) -> Result<()> {
    scene("Something is no longer wanted", "the machine `db` is taken out of the spec");
    let before = living(stage).await?;
    stage.drop_machine("shop", "db").await?;
    stage.wait_ready("shop").await?;
    let after = living(stage).await?;
    let all = things(&stage.cloud).await?;
    let went = |thing: &&Thing| !thing.exists() && before.iter().any(|other| other.id == thing.id);
    let pruned: Vec<&Thing> = all.iter().filter(went).collect();
    show(pruned.iter().copied());
    check(pruned.len() == 1 && after.len() == wanted - 1, || format!("{} things went instead of one", pruned.len()))?;
    stage.say("one pruned, the others untouched");
    Ok(())
}

async fn kill_in_mid_creation(stage: &mut Stage) -> Result<usize> {
    scene(
        "The controller dies in mid-creation",
        "kubectl apply -f hack/demo.d/sample/blog.yaml, answers delayed, then kill -9",
    );
    let before = living(stage).await?.len();
    // The cloud does its work at once and answers late: the controller dies without having heard of what it made.
    stage.cloud.add_faults(&json!({"match": {"verb": "create"}, "action": {"delay": {"ms": 3000}}})).await?;
    let wanted = stage.apply("blog").await?;
    let cloud = &stage.cloud;
    until("a create on its way", Duration::from_mins(2), || async {
        let now = things(cloud).await?.iter().filter(|thing| thing.exists() && thing.made_by == PRINCIPAL).count();
        Ok(if now > before { Seen::Yes(()) } else { Seen::NotYet(format!("{now} things")) })
    })
    .await?;
    stage.controller.kill().await?;
    let half = living(stage).await?;
    stage.say(&format!("killed: {} of {wanted} exist, none of them was heard of", half.len() - before));
    stage.cloud.clear_faults().await?;
    stage.controller.restart().await?;
    stage.say("started again; it waits for the dead leader's lease, then believes only what the cloud shows");
    stage.wait_ready("blog").await?;
    let after = living(stage).await?;
    show(after.iter().skip(before));
    let doubles = doubled(&after);
    check(doubles.is_empty(), || format!("doubled: {}", doubles.join(", ")))?;
    check(after.len() == before + wanted, || format!("{} things for {wanted} wishes", after.len() - before))?;
    stage.say(&format!("{wanted} asked for, {wanted} there, nothing doubled, nothing lost"));
    Ok(wanted)
}

async fn delete(stage: &mut Stage, stranger: &str) -> Result<()> {
    scene("The owners go", "kubectl delete sampleowners shop blog");
    stage.delete("shop").await?;
    stage.delete("blog").await?;
    stage.wait_gone("shop").await?;
    stage.wait_gone("blog").await?;
    let all = things(&stage.cloud).await?;
    let left: Vec<&Thing> = all.iter().filter(|thing| thing.exists()).collect();
    stage.say("deleted:");
    show(all.iter().filter(|thing| !thing.exists()));
    stage.say("kept:");
    show(left.iter().copied());
    let kept = left.iter().map(|thing| thing.id.as_str()).collect::<Vec<_>>();
    check(kept == [stranger], || format!("expected only {stranger} to be left, found {kept:?}"))
}

/// What the controller made and what is still there.
async fn living(stage: &Stage) -> Result<Vec<Thing>> {
    let all = things(&stage.cloud).await?;
    Ok(all.into_iter().filter(|thing| thing.exists() && thing.made_by == PRINCIPAL).collect())
}
