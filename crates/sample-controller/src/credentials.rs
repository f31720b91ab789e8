//! The bearer token: where it comes from, and a type that never shows it.
use common::engine::estate::Fault;
use http::HeaderValue;
use std::fmt;
use std::path::PathBuf;

/// A bearer token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);
impl Token {
    /// A token as read; white space around it is not part of it.
    pub fn new(text: &str) -> Self {
        Token(text.trim().to_owned())
    }
    /// The value of the Authorization header, marked so that nothing prints it.
    pub fn header(&self) -> Result<HeaderValue, Fault> {
        let mut value = HeaderValue::from_str(&format!("Bearer {}", self.0))
            .map_err(|_| Fault::Denied("the token has characters that no header can carry".into()))?;
        value.set_sensitive(true);
        Ok(value)
    }
}
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

/// Where the token comes from.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// Handed in; for tests and simulations.
    Fixed(Token),
    /// A file, usually a mounted Secret. Read for every pass, so that a changed Secret is used at once.
    File(PathBuf),
}
impl Credentials {
    /// The token now.
    pub async fn token(&self) -> Result<Token, Fault> {
        match self {
            Credentials::Fixed(token) => Ok(token.clone()),
            Credentials::File(path) => match tokio::fs::read_to_string(path).await {
                Ok(text) if !text.trim().is_empty() => Ok(Token::new(&text)),
                Ok(_) => Err(Fault::Denied(format!("the token file {} is empty", path.display()))),
                Err(e) => Err(Fault::Denied(format!("the token file {} cannot be read: {e}", path.display()))),
            },
        }
    }
}
