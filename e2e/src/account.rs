//! A service account as a controller's pod would have it: its own token, its shipped roles, nothing else.
use crate::cluster::{Cluster, client_for};
use crate::error::{Error, Result};
use crate::{kubeconfig, manifests};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::{DynamicObject, PostParams};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Longer than any test.
const TOKEN_SECONDS: i64 = 6 * 3600;

/// A service account with a kubeconfig of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    namespace: String,
    name: String,
    kubeconfig: PathBuf,
}

impl Account {
    /// Applies `deploy/<controller>` as it is shipped and takes the one service account in it.
    pub async fn shipped(cluster: &Cluster, controller: &str) -> Result<Self> {
        Self::deployed(cluster, format!("deploy/{controller}").as_ref()).await
    }
    /// Applies any kustomize folder and takes the one service account in it.
    pub async fn deployed(cluster: &Cluster, folder: &Path) -> Result<Self> {
        let objects = manifests::apply_folder(cluster, folder).await?;
        let is_account =
            |object: &&DynamicObject| object.types.as_ref().is_some_and(|types| types.kind == "ServiceAccount");
        let mut accounts = objects.iter().filter(is_account);
        let (Some(account), None) = (accounts.next(), accounts.next()) else {
            return Err(Error::other(format!("{} must have exactly one ServiceAccount", folder.display())));
        };
        let (namespace, name) = (account.metadata.namespace.clone(), account.metadata.name.clone());
        Self::of(cluster, &namespace.unwrap_or_else(|| "default".to_owned()), &name.unwrap_or_default()).await
    }
    /// A token for a service account that exists.
    pub async fn of(cluster: &Cluster, namespace: &str, name: &str) -> Result<Self> {
        let api: Api<ServiceAccount> = Api::namespaced(cluster.client().await?, namespace);
        let spec = TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() };
        let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
        let answer = api.create_token_request(name, &PostParams::default(), &request).await?;
        let token = answer
            .status
            .and_then(|status| status.token)
            .ok_or_else(|| Error::other("a token request without a token"))?;
        let text = kubeconfig::with_token(cluster.kubeconfig(), &token, namespace)?;
        let kubeconfig = cluster.folder().write(&format!("{namespace}-{name}.kubeconfig"), text)?;
        Ok(Account { namespace: namespace.to_owned(), name: name.to_owned(), kubeconfig })
    }
    /// The same account, led through another server, such as a proxy on loopback.
    pub fn through(&self, server: SocketAddr) -> Result<Self> {
        let text = kubeconfig::with_server(&self.kubeconfig, &format!("http://{server}"))?;
        let kubeconfig = self.kubeconfig.with_extension(format!("through-{}", server.port()));
        std::fs::write(&kubeconfig, text).map_err(Error::io("cannot write", &kubeconfig))?;
        Ok(Account { kubeconfig, ..self.clone() })
    }
    /// A client with this account's rights.
    pub async fn client(&self) -> Result<kube::Client> {
        client_for(&self.kubeconfig).await
    }
    /// Its kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
    /// Its namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }
    /// The name by which RBAC and the audit log know it.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}
