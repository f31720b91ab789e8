//! The other half of case 80: one Secret, one entry of clouds.yaml, several regions. Each region is an emulator of its own; the first has
//! the Keystone that both believe.
use super::said;
use crate::stage::{PATIENCE, PRINCIPAL, SECRET, Stage, Thing, is_ready, spec};
use crate::tell;
use e2e::patience::{Seen, until};
use e2e::{EmulatorProcess, Error, Result};
use serde_json::{Value, json};

/// What the stage's own region is called. The other one's name sorts before it: the first of a catalog is not the first by name.
const HERE: &str = "here-1";
const AWAY: &str = "away-1";

fn in_region(region: &str) -> Value {
    spec(&json!({"identityRef": {"name": "creds", "cloudName": "c", "region": region}}))
}
/// The stage's cloud with a second region.
struct Regions {
    stage: Stage,
    away: EmulatorProcess,
}
impl Regions {
    async fn set(name: &str) -> Result<Self> {
        let stage = Stage::set(name).await?;
        let settings = json!({"region": AWAY, "regions": {HERE: stage.emulator.url()}, "call_log": 500_000});
        let file = stage.cluster.folder().write(&format!("{name}-away.json"), settings.to_string())?;
        // Another seed: ids of one region are not to be found in the other.
        let more = ["--seed=2".to_owned(), format!("--settings={}", file.display())];
        let name = format!("{name}-away");
        let who = [(PRINCIPAL, SECRET)];
        let away = EmulatorProcess::start_with(&stage.cluster, "openstack", &name, &who, &more).await?;
        stage.behave(&json!({"regions": {AWAY: away.url()}})).await?;
        Ok(Regions { stage, away })
    }
    fn all(&self) -> [&EmulatorProcess; 2] {
        [&self.stage.emulator, &self.away]
    }
    async fn forget_calls(&self) -> Result<()> {
        for region in self.all() {
            region.forget_calls().await?;
        }
        Ok(())
    }
    async fn ready(&self, name: &str, spec: &Value) -> Result<()> {
        self.stage.create(name, spec).await?;
        self.stage.wait_ready(name).await.map(drop)
    }
    async fn gone(&self, name: &str) -> Result<()> {
        self.stage.delete(name).await?;
        until(&format!("{name} gone"), PATIENCE, || async {
            let left = self.stage.servers.get_opt(name).await?;
            Ok(left.map_or(Seen::Yes(()), |it| Seen::NotYet(it.data["status"]["conditions"].to_string())))
        })
        .await
    }
    async fn clear(self) -> Result<()> {
        self.away.stop().await?;
        self.stage.clear().await
    }
}
/// `kind name` of everything that the controller made and that is still there.
async fn ours(region: &EmulatorProcess) -> Result<Vec<String>> {
    let things: Vec<Thing> = serde_json::from_value(region.things().await?).map_err(Error::other)?;
    let ours = things.iter().filter(|it| it.exists() && it.is_ours());
    let mut names: Vec<_> =
        ours.map(|it| format!("{} {}", it.kind, it.fields["name"].as_str().unwrap_or_default())).collect();
    names.sort();
    Ok(names)
}
/// Calls beside those for a token, which go to the one Keystone whatever the region.
async fn calls(region: &EmulatorProcess) -> Result<u64> {
    Ok(region.count_calls(&[]).await? - region.count_calls(&[("kind", "tokens")]).await?)
}

/// While there is a server in one region only, the other hears nothing; then each region holds its own.
async fn each_in_its_own(regions: &Regions) -> Result<()> {
    let [here, away] = regions.all();
    regions.ready("far", &in_region(AWAY)).await?;
    regions.gone("far").await?;
    assert_eq!(calls(here).await?, 0, "{}", here.calls(&[]).await?);
    assert!(calls(away).await? > 0);

    regions.forget_calls().await?;
    regions.ready("near", &in_region(HERE)).await?;
    regions.ready("plain", &spec(&json!({}))).await?;
    assert_eq!(calls(away).await?, 0, "{}", away.calls(&[]).await?);

    regions.ready("far", &in_region(AWAY)).await?;
    regions.stage.wait("near", "to be ready still", is_ready).await?;
    assert_eq!(ours(here).await?, ["port near-0", "port plain-0", "server near", "server plain"]);
    assert_eq!(ours(away).await?, ["port far-0", "server far"]);
    assert_eq!(away.count_calls(&[("kind", "tokens")]).await?, 0, "there is one Keystone");
    regions.stage.delete_all().await?;
    assert_eq!(ours(away).await?, [""; 0]);
    for region in regions.all() {
        let lost = region.count_calls(&[("status", "404"), ("mutating", "true")]).await?;
        assert_eq!(lost, 0, "nothing is written to what stands elsewhere: {}", region.calls(&[]).await?);
    }
    Ok(())
}

#[tokio::test]
async fn case_80__one_cloud_entry_serves_two_regions_and_each_call_goes_to_its_own() {
    tell("case_80__one_cloud_entry_serves_two_regions_and_each_call_goes_to_its_own", async {
        let regions = Regions::set("case80regions").await?;
        let mut controller = regions.stage.start().await?;
        each_in_its_own(&regions).await?;
        controller.must_run()?;
        controller.kill().await?;
        regions.clear().await
    })
    .await;
}
#[tokio::test]
async fn case_80__a_region_that_the_catalog_does_not_know_is_told_and_nothing_is_asked() {
    tell("case_80__a_region_that_the_catalog_does_not_know_is_told_and_nothing_is_asked", async {
        let regions = Regions::set("case80nowhere").await?;
        let mut controller = regions.stage.start().await?;
        regions.stage.create("srv", &in_region("nowhere")).await?;
        let told = "region \"nowhere\" is not in the catalog, which has: away-1, here-1";
        let object = regions.stage.wait_said("srv", "InstanceReady", told).await?;
        assert!(said(&object, "Ready").starts_with("False/"), "{}", object.data["status"]["conditions"]);
        regions.gone("srv").await?;
        for region in regions.all() {
            assert_eq!(calls(region).await?, 0, "{}", region.calls(&[]).await?);
        }
        controller.must_run()?;
        controller.kill().await?;
        regions.clear().await
    })
    .await;
}
