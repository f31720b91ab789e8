//! Servers in an emulated OpenStack, scene by scene.
mod stage;

use crate::telling::{check, scene};
use e2e::patience::has_condition;
use e2e::{Result, Seen, until};
use serde_json::{Value, json};
use stage::{PATIENCE, Stage, Thing, show};

/// Things of `web.yaml`: two ports, a trunk, a volume, a server.
const WEB: usize = 5;

/// Tells it from the beginning to the end.
pub(crate) async fn tell() -> Result<()> {
    let mut stage = Stage::set().await?;
    scene("A stranger lives in the project", "somebody else's volume has a name that nobody here asks for");
    stage.cloud.plant(&json!({"kind": "volume", "fields": {"name": "somebody-elses", "size": 1}})).await?;
    create_through_a_kill(&mut stage).await?;
    bastion(&stage).await?;
    leave(&stage).await?;
    let made = stage.things().await?.iter().filter(|thing| thing.ours).count();
    stage.clear().await?;
    println!("\n{made} things made, 0 doubled, {made} deleted again, 1 of a stranger kept.");
    Ok(())
}

async fn create_through_a_kill(stage: &mut Stage) -> Result<()> {
    scene(
        "A server is asked for, and the controller dies",
        "kubectl apply -f hack/demo.d/openstack/web.yaml, answers delayed, then kill -9",
    );
    stage
        .cloud
        .add_faults(&json!({"match": {"verb": "create", "mutating": true}, "action": {"delay": {"ms": 2000}}}))
        .await?;
    stage.apply("web").await?;
    let cloud = &*stage;
    until("a create on its way", PATIENCE, || async {
        let now = cloud.living().await?.len();
        Ok(if now > 0 { Seen::Yes(()) } else { Seen::NotYet("nothing yet".into()) })
    })
    .await?;
    stage.controller.kill().await?;
    stage.say(&format!("killed: {} of {WEB} things exist, none of them was heard of", stage.living().await?.len()));
    stage.cloud.clear_faults().await?;
    stage.controller.restart().await?;
    stage.say("started again; it finds what it made by its marks");
    stage.wait(&stage.servers, "web", "web to be ready", |object| has_condition(object, "Ready", "True")).await?;
    let living = stage.living().await?;
    show(&living);
    check(living.len() == WEB, || format!("{} things instead of {WEB}", living.len()))?;
    stage.say("one server, two ports, a trunk and a volume: each once");
    Ok(())
}

async fn bastion(stage: &Stage) -> Result<()> {
    scene(
        "A cluster has a bastion, and its flavor changes",
        "kubectl apply -f hack/demo.d/openstack/cluster.yaml, then kubectl patch",
    );
    stage.apply("cluster").await?;
    let ready = |object: &kube::api::DynamicObject| {
        has_condition(object, "BastionReady", "True") && object.data["status"]["bastion"]["floatingIP"].is_string()
    };
    let first = stage.wait(&stage.clusters, "shop", "shop to have its bastion", ready).await?;
    let first = first.data["status"]["bastion"].clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    stage.say(&format!("the bastion is {} at {}", text(&first["id"]), text(&first["floatingIP"])));
    stage.patch_cluster(&json!({"spec": {"bastion": {"spec": {"flavor": {"filter": {"name": "m1.tiny"}}}}}})).await?;
    let other =
        |object: &kube::api::DynamicObject| ready(object) && object.data["status"]["bastion"]["id"] != first["id"];
    let second = stage.wait(&stage.clusters, "shop", "shop to have another bastion", other).await?;
    let second = second.data["status"]["bastion"].clone();
    check(second["floatingIP"] == first["floatingIP"], || format!("{second} has another address than {first}"))?;
    stage.say(&format!("replaced by {} at the same {}", text(&second["id"]), text(&second["floatingIP"])));
    Ok(())
}

async fn leave(stage: &Stage) -> Result<()> {
    scene("They go", "kubectl delete openstackserver web; kubectl delete openstackcluster shop");
    stage.delete(&stage.servers, "web").await?;
    stage.delete(&stage.clusters, "shop").await?;
    let all = stage.things().await?;
    let left: Vec<&Thing> = all.iter().filter(|thing| thing.exists()).collect();
    stage.say("kept:");
    show(left.iter().copied());
    check(left.len() == 1 && left[0].name == "somebody-elses", || format!("{left:?} are left"))
}
