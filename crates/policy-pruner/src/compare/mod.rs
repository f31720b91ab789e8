//! Does a live object carry what a template asks for? Pure: two values in, a verdict and a merged object out.
pub mod equal;
pub mod keys;
pub mod merge;
pub mod metadata;

/// How a template is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compliance {
    /// At least this.
    MustHave,
    /// Exactly this.
    MustOnlyHave,
    /// Not there.
    MustNotHave,
}
impl Compliance {
    /// Reads one, in any of its spellings.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "musthave" => Some(Compliance::MustHave),
            "mustonlyhave" => Some(Compliance::MustOnlyHave),
            "mustnothave" => Some(Compliance::MustNotHave),
            _ => None,
        }
    }
}
