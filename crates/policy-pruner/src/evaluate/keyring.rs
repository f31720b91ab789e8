//! The key to a policy's encrypted values: a Secret beside it, and the vector in its annotation.
use crate::api::ConfigurationPolicy;
use crate::cluster::kinds::Mapping;
use crate::cluster::sight::Sight;
use crate::encryption::Keys;
use crate::names;
use common::runtime::object::Key;

/// Reads the key. The error is for the status, and says whether it may go well next time though nothing changes.
pub async fn keys(policy: &ConfigurationPolicy, key: &Key, sight: &dyn Sight) -> Result<Keys, (String, bool)> {
    let secrets = Mapping::known("", "v1", "Secret", "secrets", true);
    let name = names::ENCRYPTION_SECRET;
    let failed = |why: String| format!("failed to get the encryption key from Secret {}/{name}: {why}", key.namespace);
    let secret = match sight.get(&secrets, &key.namespace, name).await {
        Ok(Some(secret)) => secret,
        Ok(None) => return Err((failed(format!("secrets {name:?} not found")), !sight.follows())),
        Err(trouble) => return Err((failed(trouble.to_string()), true)),
    };
    let vector = policy.metadata.annotations.as_ref().and_then(|a| a.get(names::ENCRYPTION_IV));
    Keys::read(&secret, vector.map_or("", String::as_str)).map_err(|text| (text, false))
}
