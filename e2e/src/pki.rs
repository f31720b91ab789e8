//! The certificates of one control plane: one authority, and what it signs.
use crate::error::{Error, Result};
use crate::folder::Folder;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A certificate and its key, as files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Certificate {
    /// PEM.
    pub certificate: PathBuf,
    /// PEM.
    pub key: PathBuf,
}

/// Who a client certificate speaks for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The user.
    pub user: &'a str,
    /// The group, if any.
    pub group: Option<&'a str>,
}

impl Certificate {
    /// A new authority, `ca.crt` and `ca.key` in the folder.
    pub fn authority(folder: &Folder) -> Result<Self> {
        let params = authority_params()?;
        let key = KeyPair::generate().map_err(Error::other)?;
        let certificate = params.self_signed(&key).map_err(Error::other)?;
        store(folder, "ca", &certificate.pem(), &key)
    }
    /// Signs a certificate for a server on loopback.
    pub fn server(&self, folder: &Folder, name: &str) -> Result<Certificate> {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let mut params = CertificateParams::new(names).map_err(Error::other)?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(folder, name, params)
    }
    /// Signs a certificate for a client.
    pub fn client(&self, folder: &Folder, name: &str, subject: Subject<'_>) -> Result<Certificate> {
        let mut params = CertificateParams::new(Vec::new()).map_err(Error::other)?;
        params.distinguished_name.push(DnType::CommonName, subject.user);
        if let Some(group) = subject.group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(folder, name, params)
    }
    fn sign(&self, folder: &Folder, name: &str, mut params: CertificateParams) -> Result<Certificate> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let pem = std::fs::read_to_string(&self.key).map_err(Error::io("cannot read", &self.key))?;
        let issuer = Issuer::new(authority_params()?, KeyPair::from_pem(&pem).map_err(Error::other)?);
        let key = KeyPair::generate().map_err(Error::other)?;
        let certificate = params.signed_by(&key, &issuer).map_err(Error::other)?;
        store(folder, name, &certificate.pem(), &key)
    }
}

/// The same for every authority, so that its key alone is enough to sign.
fn authority_params() -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new()).map_err(Error::other)?;
    params.distinguished_name.push(DnType::CommonName, "custody-e2e");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// A key pair that signs service account tokens: the private key, and the public one that checks them.
pub(crate) fn token_signer(folder: &Folder) -> Result<(PathBuf, PathBuf)> {
    let key = KeyPair::generate().map_err(Error::other)?;
    Ok((folder.write("tokens.key", key.serialize_pem())?, folder.write("tokens.pub", key.public_key_pem())?))
}

fn store(folder: &Folder, name: &str, certificate: &str, key: &KeyPair) -> Result<Certificate> {
    Ok(Certificate {
        certificate: folder.write(&format!("{name}.crt"), certificate)?,
        key: folder.write(&format!("{name}.key"), key.serialize_pem())?,
    })
}
