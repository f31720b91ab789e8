//! Credentials as clouds.yaml writes them: read strictly where a wrong guess would send secrets somewhere else, and passing
//! over keys that mean nothing here. Nothing in this file is ever printed.
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// Why credentials cannot be used. Never carries a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// The text is no YAML, or no clouds.yaml.
    #[error("clouds.yaml cannot be read: {0}")]
    Unreadable(String),
    /// There is no such entry.
    #[error("cloud {0:?} is not in clouds.yaml, which has: {1}")]
    NoSuchCloud(String, String),
    /// The entry lacks something.
    #[error("cloud {0:?} of clouds.yaml: {1}")]
    Incomplete(String, String),
    /// The certificates of the authority are none.
    #[error("cacert holds no certificate in PEM")]
    NoCertificate,
}

/// A name or an id of a user, project or domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// By id.
    Id(String),
    /// By name, inside a domain.
    Name(String, Domain),
}
/// A domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// By id.
    Id(String),
    /// By name.
    Name(String),
}

/// How to prove who we are.
#[derive(Clone, PartialEq, Eq)]
pub enum Method {
    /// User and password, scoped to a project.
    Password {
        /// Who.
        user: Named,
        /// The secret.
        password: String,
        /// Where.
        project: Named,
    },
    /// An application credential; its project is part of it.
    ApplicationCredential {
        /// Its id, or its name and whose it is.
        credential: Credential,
        /// The secret.
        secret: String,
    },
    /// A token made elsewhere. It cannot be renewed.
    Token {
        /// The secret.
        token: String,
        /// Where.
        project: Option<Named>,
    },
}
/// Which application credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credential {
    /// By id.
    Id(String),
    /// By name, of a user.
    Name(String, Named),
}
impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Password { .. } => "Password(***)",
            Method::ApplicationCredential { .. } => "ApplicationCredential(***)",
            Method::Token { .. } => "Token(***)",
        })
    }
}

/// One cloud: where it is, who we are there, and what it is to be believed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloudConfig {
    /// Where Keystone answers.
    pub auth_url: String,
    /// Who we are.
    pub method: Method,
    /// Region; none takes the first.
    pub region: Option<String>,
    /// `public`, `internal` or `admin`.
    pub interface: String,
    /// Certificates are checked.
    pub verify: bool,
    /// Certificates of the authority, in PEM.
    pub ca: Option<String>,
    /// Endpoints in place of the catalog's, by service.
    pub overrides: BTreeMap<String, String>,
}
impl CloudConfig {
    /// Tells two configurations apart, secrets included, without showing them.
    pub fn fingerprint(&self) -> String {
        let secret = match &self.method {
            Method::Password { user, password, project } => format!("p{user:?}{project:?}{password}"),
            Method::ApplicationCredential { credential, secret } => format!("a{credential:?}{secret}"),
            Method::Token { token, project } => format!("t{project:?}{token}"),
        };
        let mut hash = Sha256::new();
        let parts = [
            self.auth_url.as_str(),
            &secret,
            self.region.as_deref().unwrap_or("\u{0}"),
            &self.interface,
            if self.verify { "v" } else { "-" },
            self.ca.as_deref().unwrap_or("\u{0}"),
            &format!("{:?}", self.overrides),
        ];
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part.as_bytes());
        }
        hex::encode(hash.finalize())
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    clouds: BTreeMap<String, Entry>,
}
#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: Auth,
    auth_type: Option<String>,
    region_name: Option<String>,
    interface: Option<String>,
    endpoint_type: Option<String>,
    verify: Option<bool>,
    compute_endpoint_override: Option<String>,
    network_endpoint_override: Option<String>,
    image_endpoint_override: Option<String>,
    #[serde(alias = "volume_endpoint_override", alias = "volumev3_endpoint_override")]
    block_storage_endpoint_override: Option<String>,
}
#[derive(Default, Deserialize)]
#[serde(default)]
#[allow(clippy::struct_field_names)] // the file's own words
struct Auth {
    auth_url: Option<String>,
    username: Option<String>,
    user_id: Option<String>,
    password: Option<String>,
    token: Option<String>,
    #[serde(alias = "tenant_id")]
    project_id: Option<String>,
    #[serde(alias = "tenant_name")]
    project_name: Option<String>,
    user_domain_id: Option<String>,
    user_domain_name: Option<String>,
    project_domain_id: Option<String>,
    project_domain_name: Option<String>,
    domain_id: Option<String>,
    domain_name: Option<String>,
    default_domain: Option<String>,
    application_credential_id: Option<String>,
    application_credential_name: Option<String>,
    application_credential_secret: Option<String>,
}

fn given(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

impl Auth {
    fn domain(&self, id: Option<&String>, name: Option<&String>) -> Option<Domain> {
        given(id)
            .map(Domain::Id)
            .or_else(|| given(name).map(Domain::Name))
            .or_else(|| given(self.domain_id.as_ref()).map(Domain::Id))
            .or_else(|| given(self.domain_name.as_ref()).map(Domain::Name))
            .or_else(|| given(self.default_domain.as_ref()).map(Domain::Id))
    }
    fn user(&self) -> Result<Named, String> {
        if let Some(id) = given(self.user_id.as_ref()) {
            return Ok(Named::Id(id));
        }
        let name = given(self.username.as_ref()).ok_or("auth has neither username nor user_id")?;
        let domain = self.domain(self.user_domain_id.as_ref(), self.user_domain_name.as_ref());
        Ok(Named::Name(name, domain.ok_or("auth has no user_domain_name or user_domain_id")?))
    }
    fn project(&self) -> Result<Option<Named>, String> {
        if let Some(id) = given(self.project_id.as_ref()) {
            return Ok(Some(Named::Id(id)));
        }
        let Some(name) = given(self.project_name.as_ref()) else { return Ok(None) };
        let domain = self.domain(self.project_domain_id.as_ref(), self.project_domain_name.as_ref());
        Ok(Some(Named::Name(name, domain.ok_or("auth has no project_domain_name or project_domain_id")?)))
    }
    fn application_credential(&self) -> Result<Method, String> {
        let secret = given(self.application_credential_secret.as_ref());
        let secret = secret.ok_or("auth has no application_credential_secret")?;
        let credential = if let Some(id) = given(self.application_credential_id.as_ref()) {
            Credential::Id(id)
        } else {
            let name = given(self.application_credential_name.as_ref());
            Credential::Name(name.ok_or("auth has no application_credential_id")?, self.user()?)
        };
        Ok(Method::ApplicationCredential { credential, secret })
    }
    fn method(&self, auth_type: Option<&str>) -> Result<Method, String> {
        let kind = match auth_type.unwrap_or_default() {
            "" if self.application_credential_secret.is_some() => "appcred",
            "" if self.token.is_some() && self.password.is_none() => "token",
            "" | "password" | "v3password" => "password",
            "v3applicationcredential" => "appcred",
            "token" | "v3token" => "token",
            other => return Err(format!("auth_type {other:?} is not supported")),
        };
        match kind {
            "appcred" => self.application_credential(),
            "token" => {
                let token = given(self.token.as_ref()).ok_or("auth has no token")?;
                Ok(Method::Token { token, project: self.project()? })
            }
            _ => {
                let password = given(self.password.as_ref()).ok_or("auth has no password")?;
                let project = self.project()?.ok_or("auth has neither project_id nor project_name")?;
                Ok(Method::Password { user: self.user()?, password, project })
            }
        }
    }
}

fn interface(entry: &Entry) -> String {
    let word = given(entry.interface.as_ref()).or_else(|| given(entry.endpoint_type.as_ref()));
    let word = word.unwrap_or_else(|| "public".to_owned());
    word.trim_end_matches("URL").to_owned()
}

/// Reads one entry. `region` wins over the entry's own; `ca` is PEM.
pub fn read(text: &str, cloud: &str, region: Option<&str>, ca: Option<&str>) -> Result<CloudConfig, Unusable> {
    // The parser's own words may quote the text, which holds secrets: only the place is told.
    let file: File = serde_saphyr::from_str(text).map_err(|error| {
        let place = error.location().map_or_else(String::new, |at| format!("line {}", at.line()));
        Unusable::Unreadable(if place.is_empty() { "no YAML of that shape".to_owned() } else { place })
    })?;
    let Some(entry) = file.clouds.get(cloud) else {
        let there: Vec<_> = file.clouds.keys().take(8).cloned().collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        return Err(Unusable::NoSuchCloud(cloud.to_owned(), there));
    };
    let incomplete = |why: String| Unusable::Incomplete(cloud.to_owned(), why);
    let auth_url = given(entry.auth.auth_url.as_ref()).ok_or_else(|| incomplete("auth has no auth_url".into()))?;
    if !(auth_url.starts_with("http://") || auth_url.starts_with("https://")) {
        return Err(incomplete("auth_url is no http or https address".into()));
    }
    let method = entry.auth.method(entry.auth_type.as_deref()).map_err(incomplete)?;
    if ca.is_some_and(|pem| !pem.contains("-----BEGIN CERTIFICATE-----")) {
        return Err(Unusable::NoCertificate);
    }
    let overrides = [
        ("compute", &entry.compute_endpoint_override),
        ("network", &entry.network_endpoint_override),
        ("image", &entry.image_endpoint_override),
        ("block-storage", &entry.block_storage_endpoint_override),
    ];
    Ok(CloudConfig {
        auth_url: auth_url.trim_end_matches('/').to_owned(),
        method,
        region: region.map(str::to_owned).or_else(|| given(entry.region_name.as_ref())),
        interface: interface(entry),
        verify: entry.verify.unwrap_or(true),
        ca: ca.map(str::to_owned),
        overrides: overrides
            .into_iter()
            .filter_map(|(name, url)| Some((name.to_owned(), given(url.as_ref())?)))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWORD: &str = "
clouds:
  demo:
    auth: {auth_url: 'https://keystone.test/v3/', username: u, password: p4ss, project_name: proj, user_domain_name: Default, project_domain_id: default}
    region_name: one
    endpoint_type: internalURL
    unknown: [1]
  app:
    auth_type: v3applicationcredential
    auth: {auth_url: 'http://k.test', application_credential_id: ac, application_credential_secret: s3cret}
    verify: false
";

    #[test]
    fn a_password_entry_is_read_whole_and_shows_no_secret() {
        let cloud = read(PASSWORD, "demo", None, None).unwrap();
        assert_eq!(cloud.auth_url, "https://keystone.test/v3");
        assert_eq!((cloud.region.as_deref(), cloud.interface.as_str(), cloud.verify), (Some("one"), "internal", true));
        let Method::Password { user, project, .. } = &cloud.method else { panic!("{cloud:?}") };
        assert_eq!(*user, Named::Name("u".into(), Domain::Name("Default".into())));
        assert_eq!(*project, Named::Name("proj".into(), Domain::Id("default".into())));
        assert!(!format!("{cloud:?}").contains("p4ss"));
    }
    #[test]
    fn region_and_authority_are_part_of_the_fingerprint() {
        let pem = "-----BEGIN CERTIFICATE-----";
        let all = [
            read(PASSWORD, "app", None, None).unwrap(),
            read(PASSWORD, "app", Some("two"), None).unwrap(),
            read(PASSWORD, "app", Some("two"), Some(pem)).unwrap(),
            read(&PASSWORD.replace("s3cret", "other"), "app", None, None).unwrap(),
        ];
        let different: std::collections::BTreeSet<_> = all.iter().map(CloudConfig::fingerprint).collect();
        assert_eq!(different.len(), all.len());
        assert!(!all[0].verify);
    }
    #[test]
    fn what_is_wrong_is_said_without_the_secret() {
        let said = |text: &str, cloud: &str| read(text, cloud, None, None).unwrap_err().to_string();
        assert!(said(PASSWORD, "prod").contains("\"prod\" is not in clouds.yaml, which has: app, demo"));
        assert!(said("clouds: [", "x").contains("cannot be read"));
        assert!(!said("clouds: {a: {auth: [s3cret", "a").contains("s3cret"));
        assert!(said("clouds: {a: {auth: {}}}", "a").contains("no auth_url"));
        assert!(said("clouds: {a: {auth: {auth_url: 'http://k'}}}", "a").contains("no password"));
        assert!(said("clouds: {a: {auth_type: oidc, auth: {auth_url: 'http://k'}}}", "a").contains("oidc"));
        assert!(said("clouds: {a: {auth: {auth_url: 'file:///x', password: y}}}", "a").contains("no http"));
        assert_eq!(read(PASSWORD, "app", None, Some("nothing")), Err(Unusable::NoCertificate));
    }
}
