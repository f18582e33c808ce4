//! The environment of our own process, read once.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::Arc;

/// A snapshot of environment variables. Cheap to clone. Its `Debug` form shows names only: values may be secrets.
#[derive(Clone, Default)]
pub struct HostEnv {
    vars: Arc<BTreeMap<OsString, OsString>>,
}

impl HostEnv {
    /// Reads the environment of this process. Call it once, at start, and pass the value on.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    pub fn capture() -> Self {
        Self::from_vars(std::env::vars_os())
    }

    /// An environment made up of the given pairs; of equal names the last one counts.
    pub fn from_vars<K: Into<OsString>, V: Into<OsString>>(vars: impl IntoIterator<Item = (K, V)>) -> Self {
        let vars = vars.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { vars: Arc::new(vars) }
    }

    /// The value of a variable, if it is set (it may be empty).
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.vars.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// The value of a variable, if it is set and is valid UTF-8.
    pub fn get_str(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str)
    }

    /// All variables, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.vars.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl fmt::Debug for HostEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.vars.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_values() {
        let env = HostEnv::from_vars([("GITHUB_TOKEN", "canary-value"), ("EMPTY", "")]);
        assert_eq!(format!("{env:?}"), r#"{"EMPTY", "GITHUB_TOKEN"}"#);
        assert_eq!(env.get_str("EMPTY"), Some(""));
        assert_eq!(env.get("NONE"), None);
    }

    #[test]
    fn capture_sees_the_environment() {
        assert!(HostEnv::capture().get("PATH").is_some());
    }
}
