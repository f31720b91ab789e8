//! The emulated cloud as a process, and its administration.
use crate::binaries;
use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::patience::{Seen, until};
use crate::process::{Leashed, Program, tail};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const ADMIN_TOKEN: &str = "administrator-of-the-emulator";

/// A running emulator. Dropping it kills it.
#[derive(Debug)]
pub struct EmulatorProcess {
    process: Leashed,
    url: String,
    http: reqwest::Client,
}

impl EmulatorProcess {
    /// Starts `cloud-emulator <cloud>` on a free port for these principals, given as (name, token).
    /// `instance` names it in messages and in the names of its files.
    pub async fn start(cluster: &Cluster, cloud: &str, instance: &str, principals: &[(&str, &str)]) -> Result<Self> {
        Self::start_with(cluster, cloud, instance, principals, &[]).await
    }
    /// The same, with more arguments.
    pub async fn start_with(
        cluster: &Cluster,
        cloud: &str,
        instance: &str,
        principals: &[(&str, &str)],
        more: &[String],
    ) -> Result<Self> {
        let log = cluster.folder().fresh_file(instance, "log")?;
        let address_file = log.with_extension("address");
        let mut args = vec![
            cloud.to_owned(),
            "--listen=127.0.0.1:0".to_owned(),
            format!("--admin-token={ADMIN_TOKEN}"),
            format!("--print-address-to={}", address_file.display()),
        ];
        args.extend(principals.iter().map(|(name, token)| format!("--token={name}={token}")));
        args.extend_from_slice(more);
        let program = Program {
            name: instance.to_owned(),
            path: binaries::ours("cloud-emulator")?,
            args: args.into_iter().map(Into::into).collect(),
            log,
            ..Program::default()
        };
        let mut process = Leashed::start(&program)?;
        let address = wait_for_address(&mut process, &address_file).await?;
        Ok(EmulatorProcess { process, url: format!("http://{address}"), http: reqwest::Client::new() })
    }
    /// Where the cloud is.
    pub fn url(&self) -> &str {
        &self.url
    }
    /// The last lines of its output.
    pub fn log_tail(&self, lines: usize) -> String {
        tail(self.process.log(), lines)
    }
    /// The call log, with filters such as `("verb", "create")`.
    pub async fn calls(&self, filters: &[(&str, &str)]) -> Result<Value> {
        self.admin(reqwest::Method::GET, "calls", filters, None).await
    }
    /// How many calls there were that pass the filters.
    pub async fn count_calls(&self, filters: &[(&str, &str)]) -> Result<u64> {
        let answer = self.calls(filters).await?;
        answer["count"].as_u64().ok_or_else(|| Error::other(format!("no count of calls: {answer}")))
    }
    /// Empties the call log.
    pub async fn forget_calls(&self) -> Result<()> {
        self.admin(reqwest::Method::DELETE, "calls", &[], None).await.map(drop)
    }
    /// Every thing there is, as it truly is.
    pub async fn things(&self) -> Result<Value> {
        self.admin(reqwest::Method::GET, "things", &[], None).await
    }
    /// Plants a stranger's thing.
    pub async fn plant(&self, thing: &Value) -> Result<Value> {
        self.admin(reqwest::Method::POST, "things", &[], Some(thing)).await
    }
    /// Deletes a thing behind everybody's back.
    pub async fn delete_by_hand(&self, id: &str) -> Result<()> {
        self.admin(reqwest::Method::DELETE, &format!("things/{id}"), &[], None).await.map(drop)
    }
    /// Changes the tags of a thing behind everybody's back: `{"set": {...}, "remove": [...]}`.
    pub async fn retag_by_hand(&self, id: &str, change: &Value) -> Result<()> {
        self.admin(reqwest::Method::PUT, &format!("things/{id}/tags"), &[], Some(change)).await.map(drop)
    }
    /// Adds a fault: what it matches, and what happens then.
    pub async fn add_faults(&self, faults: &Value) -> Result<()> {
        self.admin(reqwest::Method::POST, "faults", &[], Some(faults)).await.map(drop)
    }
    /// Takes all faults away.
    pub async fn clear_faults(&self) -> Result<()> {
        self.admin(reqwest::Method::DELETE, "faults", &[], None).await.map(drop)
    }
    /// Changes lag, quotas, page sizes, limits, build times; what is not named stays.
    pub async fn set(&self, settings: &Value) -> Result<()> {
        self.admin(reqwest::Method::PATCH, "settings", &[], Some(settings)).await.map(drop)
    }
    /// Takes single permissions from a principal.
    pub async fn deny(&self, denial: &Value) -> Result<()> {
        self.admin(reqwest::Method::POST, "denials", &[], Some(denial)).await.map(drop)
    }
    /// Lets a principal in, with a token.
    pub async fn admit(&self, principal: &str, token: &str) -> Result<()> {
        let body = serde_json::json!({"principal": principal, "token": token});
        self.admin(reqwest::Method::POST, "principals", &[], Some(&body)).await.map(drop)
    }
    /// Shuts a principal out.
    pub async fn revoke(&self, principal: &str) -> Result<()> {
        self.admin(reqwest::Method::DELETE, &format!("principals/{principal}"), &[], None).await.map(drop)
    }
    /// Moves the cloud's clock.
    pub async fn clock(&self, change: &Value) -> Result<Value> {
        self.admin(reqwest::Method::POST, "clock", &[], Some(change)).await
    }
    /// Any call of the administration.
    pub async fn admin(
        &self,
        method: reqwest::Method,
        what: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<Value> {
        // Filters are plain words: nothing in them needs escaping.
        let query: Vec<_> = query.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        let url = format!("{}/admin/{what}{mark}{}", self.url, query.join("&"));
        let mut request = self.http.request(method.clone(), url).bearer_auth(ADMIN_TOKEN);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        if !status.is_success() {
            return Err(Error::other(format!("{method} /admin/{what}: {status} {text}")));
        }
        Ok(serde_json::from_str(&text).unwrap_or(Value::Null))
    }
    /// Ends it.
    pub async fn stop(mut self) -> Result<()> {
        self.process.stop(Duration::from_secs(5)).await.map(drop)
    }
}

async fn wait_for_address(process: &mut Leashed, file: &Path) -> Result<String> {
    let process = std::cell::RefCell::new(process);
    until("the emulator's address", Duration::from_secs(30), || async {
        process.borrow_mut().must_run()?;
        let text = std::fs::read_to_string(file).unwrap_or_default();
        // Half an address may look like a whole one: only one that answers counts.
        let answers = match text.trim().parse::<std::net::SocketAddr>() {
            Ok(address) => tokio::net::TcpStream::connect(address).await.is_ok(),
            Err(_) => false,
        };
        Ok(if answers { Seen::Yes(text.trim().to_owned()) } else { Seen::NotYet(format!("{text:?}")) })
    })
    .await
}
