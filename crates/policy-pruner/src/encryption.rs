//! Values that the hub encrypted: `$ocm_encrypted:<base64>` anywhere in a definition. AES-CBC, the key in a Secret beside
//! the policy, the initialisation vector in an annotation. Nothing of it is ever printed.
use aes::cipher::block_padding::Pkcs7;
use aes::cipher::{BlockModeDecrypt, KeyIvInit};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Starts an encrypted value.
pub const PREFIX: &str = "$ocm_encrypted:";

/// Keys and vector.
#[derive(Clone)]
pub struct Keys {
    current: Vec<u8>,
    previous: Option<Vec<u8>>,
    vector: [u8; 16],
}
/// Never the keys.
impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys")
    }
}

/// Does anything in here look encrypted?
pub fn is_encrypted(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(PREFIX),
        Value::Array(items) => items.iter().any(is_encrypted),
        Value::Object(map) => map.iter().any(|(key, value)| key.contains(PREFIX) || is_encrypted(value)),
        _ => false,
    }
}

impl Keys {
    /// From the Secret's `data` and the annotation. The error is for the status.
    pub fn read(secret: &Value, vector: &str) -> Result<Keys, String> {
        let bytes = |key: &str| secret["data"][key].as_str().and_then(|text| STANDARD.decode(text).ok());
        let invalid = "The \"policy-encryption-key\" Secret contains an invalid AES key";
        let current = bytes("key").filter(|k| valid(k)).ok_or(invalid)?;
        let previous = bytes("previousKey").filter(|k| !k.is_empty());
        if previous.as_ref().is_some_and(|k| !valid(k)) {
            return Err(invalid.into());
        }
        let vector = STANDARD.decode(vector).ok().and_then(|v| <[u8; 16]>::try_from(v).ok()).ok_or(
            "The \"policy.open-cluster-management.io/encryption-iv\" annotation value is not a valid initialization vector",
        )?;
        Ok(Keys { current, previous, vector })
    }
    /// Decrypts everything in place.
    pub fn decrypt(&self, value: &mut Value) -> Result<(), String> {
        match value {
            Value::String(text) if text.contains(PREFIX) => {
                *text = self.text(text)?;
                Ok(())
            }
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.decrypt(item)),
            Value::Object(map) => {
                map.values_mut().try_for_each(|item| self.decrypt(item))?;
                let sealed: Vec<String> = map.keys().filter(|key| key.contains(PREFIX)).cloned().collect();
                for key in sealed {
                    let opened = self.text(&key)?;
                    map.remove(&key).map(|item| map.insert(opened, item));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
    fn text(&self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(PREFIX) {
            out.push_str(&rest[..at]);
            let coded = &rest[at + PREFIX.len()..];
            let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=');
            let end = coded.find(|c: char| !is_base64(c)).unwrap_or(coded.len());
            out.push_str(&self.one(&coded[..end])?);
            rest = &coded[end..];
        }
        out.push_str(rest);
        Ok(out)
    }
    fn one(&self, coded: &str) -> Result<String, String> {
        let bytes = STANDARD.decode(coded).map_err(|_| {
            format!("decryption of \"{PREFIX}{coded}\" failed: the encrypted value is not valid base64")
        })?;
        let keys = std::iter::once(&self.current).chain(&self.previous);
        for key in keys {
            if let Some(text) = open(key, &self.vector, &bytes) {
                return Ok(text);
            }
        }
        Err(format!(
            "decryption of \"{PREFIX}{coded}\" failed: the key, the previous key or the initialization vector does not fit"
        ))
    }
}

fn valid(key: &[u8]) -> bool {
    matches!(key.len(), 16 | 24 | 32)
}

fn open(key: &[u8], vector: &[u8; 16], bytes: &[u8]) -> Option<String> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(16) {
        return None;
    }
    let plain = match key.len() {
        16 => cbc::Decryptor::<aes::Aes128>::new_from_slices(key, vector).ok()?.decrypt_padded_vec::<Pkcs7>(bytes),
        24 => cbc::Decryptor::<aes::Aes192>::new_from_slices(key, vector).ok()?.decrypt_padded_vec::<Pkcs7>(bytes),
        _ => cbc::Decryptor::<aes::Aes256>::new_from_slices(key, vector).ok()?.decrypt_padded_vec::<Pkcs7>(bytes),
    };
    String::from_utf8(plain.ok()?).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use aes::cipher::BlockModeEncrypt;
    use serde_json::json;

    pub(crate) fn secret(key: &[u8], previous: Option<&[u8]>) -> Value {
        let mut data = json!({"key": STANDARD.encode(key)});
        if let Some(previous) = previous {
            data["previousKey"] = json!(STANDARD.encode(previous));
        }
        json!({ "data": data })
    }
    pub(crate) fn seal(key: &[u8; 32], text: &str) -> String {
        let sealed = cbc::Encryptor::<aes::Aes256>::new_from_slices(key, &[7; 16]).unwrap();
        format!("{PREFIX}{}", STANDARD.encode(sealed.encrypt_padded_vec::<Pkcs7>(text.as_bytes())))
    }
    pub(crate) fn vector() -> String {
        STANDARD.encode([7_u8; 16])
    }

    #[test]
    fn values_are_opened_with_either_key() {
        let (old, new) = ([1_u8; 32], [2_u8; 32]);
        let keys = Keys::read(&secret(&new, Some(&old)), &vector()).unwrap();
        let mut value = json!({"a": [format!("x {} y", seal(&new, "raleigh"))], "b": seal(&old, "cary"), "c": "plain"});
        value["d"] = json!({seal(&new, "apex"): seal(&new, "garner")});
        assert!(is_encrypted(&value));
        keys.decrypt(&mut value).unwrap();
        assert_eq!(value, json!({"a": ["x raleigh y"], "b": "cary", "c": "plain", "d": {"apex": "garner"}}));
        assert!(!is_encrypted(&value));
    }
    #[test]
    fn bad_keys_vectors_and_values_are_told_without_secrets() {
        assert!(Keys::read(&secret(&[1; 5], None), &vector()).unwrap_err().contains("invalid AES key"));
        assert!(Keys::read(&json!({}), &vector()).unwrap_err().contains("invalid AES key"));
        assert!(Keys::read(&secret(&[1; 16], Some(&[1; 3])), &vector()).is_err());
        assert!(Keys::read(&secret(&[1; 16], None), "x").unwrap_err().contains("not a valid initialization vector"));
        let keys = Keys::read(&secret(&[9; 32], None), &vector()).unwrap();
        for bad in ["$ocm_encrypted:AAAA", "$ocm_encrypted:=", &seal(&[1; 32], "other key")] {
            assert!(keys.decrypt(&mut json!(bad)).is_err(), "{bad}");
        }
        assert_eq!(format!("{keys:?}"), "Keys");
    }
    #[test]
    fn nothing_panics_on_odd_input() {
        let keys = Keys::read(&secret(&[9; 16], None), &vector()).unwrap();
        for odd in ["$ocm_encrypted:", "$ocm_encrypted:$ocm_encrypted:", "ü$ocm_encrypted:ü"] {
            let _ = keys.decrypt(&mut json!(odd));
        }
    }
}
