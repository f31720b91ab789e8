//! The folder of one control plane or one test: gone after success, kept for reading after a failure.
use crate::error::{Error, Result};
use std::path::{Path, PathBuf};

/// The leash of a control plane looks for this file before it deletes the folder.
const KEEP: &str = "keep";

/// A temporary folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new, empty folder that only this user can enter: it will hold keys.
    pub fn create(prefix: &str) -> Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        for attempt in 0..1000_u32 {
            let path = std::env::temp_dir().join(format!("custody-{prefix}-{}-{attempt}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Folder(path)),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("cannot create", &path)(error)),
            }
        }
        Err(Error::other(format!("no free name for custody-{prefix}-* in {}", std::env::temp_dir().display())))
    }
    /// A folder that somebody else made.
    pub fn existing(path: impl Into<PathBuf>) -> Self {
        Folder(path.into())
    }
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    /// Writes a file in it, in one step: whoever reads it meanwhile sees the old or the new one, never half of it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.file(name);
        let draft = self.fresh_file(&format!(".{name}"), "draft")?;
        std::fs::write(&draft, content).map_err(Error::io("cannot write", &draft))?;
        std::fs::rename(&draft, &path).map_err(Error::io("cannot write", &path))?;
        Ok(path)
    }
    /// A file in it that did not exist before, `<name>.<extension>` or `<name>-<number>.<extension>`: test processes that
    /// share a control plane share its folder, too.
    pub fn fresh_file(&self, name: &str, extension: &str) -> Result<PathBuf> {
        for number in 1..10_000_u32 {
            let number = if number == 1 { String::new() } else { format!("-{number}") };
            let path = self.file(&format!("{name}{number}.{extension}"));
            match std::fs::File::create_new(&path) {
                Ok(_) => return Ok(path),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Error::io("cannot create", &path)(error)),
            }
        }
        Err(Error::other(format!("no free name for {name}*.{extension} in {}", self.0.display())))
    }
    /// Makes sure that nobody deletes it, and says where it is. Called when something failed.
    pub fn keep(&self) {
        let mark = self.file(KEEP);
        if !mark.exists() && std::fs::write(&mark, "").is_ok() {
            eprintln!("kept for reading: {}", self.0.display());
        }
    }
    /// Whether it was kept.
    pub fn kept(&self) -> bool {
        self.file(KEEP).exists()
    }
    /// Deletes it, unless it was kept.
    pub fn remove(&self) -> Result<()> {
        if self.kept() || !self.0.exists() {
            return Ok(());
        }
        std::fs::remove_dir_all(&self.0).map_err(Error::io("cannot delete", &self.0))
    }
}
