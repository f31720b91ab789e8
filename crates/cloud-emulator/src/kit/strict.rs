//! Reading requests strictly: what is not known is refused by name.
use super::Request;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value};

/// A JSON object whose fields are taken one by one; what is left over at the end was not asked for.
#[derive(Debug)]
pub struct Fields(Map<String, Value>);

impl Fields {
    /// The body of a request.
    pub fn of_body(request: &Request) -> Result<Self, String> {
        let json =
            |value: &HeaderValue| value.to_str().is_ok_and(|text| text.split(';').next() == Some("application/json"));
        if request.headers().get(CONTENT_TYPE).is_some_and(|value| !json(value)) {
            return Err("Content-Type is not application/json".to_owned());
        }
        serde_json::from_slice(request.body())
            .map(Fields)
            .map_err(|error| format!("the body is no JSON object: {error}"))
    }
    /// Fields from elsewhere.
    pub fn of_map(map: Map<String, Value>) -> Self {
        Fields(map)
    }
    /// A field, if it is there.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }
    /// A required string.
    pub fn text(&mut self, name: &str) -> Result<String, String> {
        match self.take(name) {
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(format!("{name} is not a string")),
            None => Err(format!("{name} is missing")),
        }
    }
    /// An optional string; null counts as left out.
    pub fn optional_text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("{name} is neither a string nor null")),
        }
    }
    /// A required whole number between two bounds.
    pub fn number(&mut self, name: &str, least: u64, most: u64) -> Result<u64, String> {
        let value = self.take(name).ok_or_else(|| format!("{name} is missing"))?;
        let number = value.as_u64().ok_or_else(|| format!("{name} is not a whole number"))?;
        if (least..=most).contains(&number) {
            Ok(number)
        } else {
            Err(format!("{name} is not between {least} and {most}"))
        }
    }
    /// Nothing may be left.
    pub fn finish(self) -> Result<(), String> {
        self.0.keys().next().map_or(Ok(()), |name| Err(format!("unknown field {name}")))
    }
}

/// The query parameters, decoded, in order. A parameter given twice is refused.
pub fn query(request: &Request) -> Result<Vec<(String, String)>, String> {
    let mut parameters: Vec<(String, String)> = Vec::new();
    for pair in request.uri().query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name)?;
        if parameters.iter().any(|(known, _)| *known == name) {
            return Err(format!("query parameter {name} twice"));
        }
        parameters.push((name, decoded(value)?));
    }
    Ok(parameters)
}
/// The query parameters, decoded, in order, for clouds where one may be given several times.
pub fn query_repeated(request: &Request) -> Result<Vec<(String, String)>, String> {
    let pairs = request.uri().query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decoded(name)?, decoded(value)?))
        })
        .collect()
}
/// No query at all.
pub fn no_query(request: &Request) -> Result<(), String> {
    query(request)?.first().map_or(Ok(()), |(name, _)| Err(format!("unknown query parameter {name}")))
}
/// No body at all.
pub fn no_body(request: &Request) -> Result<(), String> {
    if request.body().is_empty() { Ok(()) } else { Err("this call takes no body".to_owned()) }
}

fn decoded(text: &str) -> Result<String, String> {
    if !text.contains(['%', '+']) {
        return Ok(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next(), rest.next()].map(|digit| char::from(digit.unwrap_or(b'?')).to_digit(16));
                match digits {
                    [Some(high), Some(low)] => u8::try_from(high * 16 + low).unwrap_or_default(),
                    _ => return Err(format!("bad escape in {text:?}")),
                }
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| format!("bad escape in {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn escapes_are_decoded_and_broken_ones_refused() {
        assert_eq!(decoded("a%2Fb+c"), Ok("a/b c".to_owned()));
        assert!(decoded("%2").is_err());
        assert!(decoded("%zz").is_err());
        assert!(decoded("%ff").is_err());
    }
}
