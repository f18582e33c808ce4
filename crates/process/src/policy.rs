//! Which environment variables a child gets.

use crate::HostEnv;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

const NAMES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TZ",
    "TMPDIR",
    "TEMP",
    "TMP",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "DBUS_SESSION_BUS_ADDRESS",
    "PLAYWRIGHT_BROWSERS_PATH",
    "NO_PROXY",
    "no_proxy",
];

const PREFIXES: &[&str] = &["LC_", "XDG_", "FONTCONFIG_"];

const PROXIES: &[&str] =
    &["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

const WINDOWS_NAMES: &[&str] = &[
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATH",
    "PATHEXT",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "USERPROFILE",
    "USERNAME",
    "HOMEDRIVE",
    "HOMEPATH",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
];

/// Hosts that never go through a proxy: our own listeners and DevTools live there.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The whole environment of a child, sorted by name.
///
/// From the host's environment an allow-list passes (system, locale, temp, display, certificates, proxies). `explicit`
/// entries are not filtered and win over it; `None` removes a variable. When any proxy is set, loopback is added to
/// `NO_PROXY` and `no_proxy`, unless `explicit` speaks about either of them: its value then counts for both.
pub fn child_env(host: &HostEnv, explicit: &BTreeMap<String, Option<String>>) -> Vec<(OsString, OsString)> {
    let mut env: BTreeMap<OsString, OsString> = host
        .iter()
        .filter(|(name, _)| is_allowed(name))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    for (name, value) in explicit {
        match value {
            Some(value) => env.insert(name.into(), value.into()),
            None => env.remove(OsStr::new(name)),
        };
    }
    if PROXIES.iter().any(|name| env.get(OsStr::new(name)).is_some_and(|value| !value.is_empty())) {
        bypass_loopback(&mut env, explicit);
    }
    env.into_iter().collect()
}

fn is_allowed(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    NAMES.contains(&name)
        || PROXIES.contains(&name)
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || (cfg!(windows) && WINDOWS_NAMES.contains(&name.to_ascii_uppercase().as_str()))
}

fn bypass_loopback(env: &mut BTreeMap<OsString, OsString>, explicit: &BTreeMap<String, Option<String>>) {
    for (name, other) in [("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")] {
        match (explicit.get(name), explicit.get(other)) {
            (Some(_), _) => {}
            (None, Some(Some(value))) => {
                env.insert(name.into(), value.into());
            }
            (None, Some(None)) => {
                env.remove(OsStr::new(name));
            }
            (None, None) => {
                let own = env.get(OsStr::new(name)).or_else(|| env.get(OsStr::new(other)));
                let value = with_loopback(own.and_then(|value| value.to_str()).unwrap_or_default());
                env.insert(name.into(), value.into());
            }
        }
    }
}

fn with_loopback(list: &str) -> String {
    let mut hosts: Vec<&str> = list.split(',').map(str::trim).filter(|host| !host.is_empty()).collect();
    if hosts != ["*"] {
        for host in LOOPBACK {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
    }
    hosts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(host: &[(&str, &str)], explicit: &[(&str, Option<&str>)], expected: &[(&str, &str)]) {
        let host = HostEnv::from_vars(host.iter().copied());
        let explicit =
            explicit.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect();
        let got = child_env(&host, &explicit);
        let got: Vec<_> = got.iter().map(|(n, v)| (n.to_str().unwrap(), v.to_str().unwrap())).collect();
        assert_eq!(got, expected);
    }

    #[test]
    fn only_the_allow_list_passes() {
        check(
            &[
                ("PATH", "/bin"),
                ("LC_ALL", "C"),
                ("XDG_RUNTIME_DIR", "/run"),
                ("FONTCONFIG_FILE", "f"),
                ("OPENAI_API_KEY", "canary"),
                ("GITHUB_TOKEN", "canary"),
                ("LD_PRELOAD", "canary"),
                ("NODE_OPTIONS", "canary"),
                ("PATHS", "canary"),
            ],
            &[],
            &[("FONTCONFIG_FILE", "f"), ("LC_ALL", "C"), ("PATH", "/bin"), ("XDG_RUNTIME_DIR", "/run")],
        );
    }

    #[test]
    fn explicit_wins_and_none_removes() {
        check(
            &[("PATH", "/bin"), ("TZ", "UTC"), ("GITHUB_TOKEN", "canary")],
            &[("PATH", Some("/opt")), ("TZ", None), ("API_KEY", Some("mine")), ("EMPTY", Some(""))],
            &[("API_KEY", "mine"), ("EMPTY", ""), ("PATH", "/opt")],
        );
    }

    #[test]
    fn a_proxy_adds_loopback_in_both_spellings() {
        let both = "corp,localhost,127.0.0.1,::1";
        check(
            &[("https_proxy", "http://p"), ("NO_PROXY", "corp, localhost")],
            &[],
            &[("NO_PROXY", both), ("https_proxy", "http://p"), ("no_proxy", both)],
        );
        let bare = "localhost,127.0.0.1,::1";
        check(
            &[],
            &[("ALL_PROXY", Some("socks5://p"))],
            &[("ALL_PROXY", "socks5://p"), ("NO_PROXY", bare), ("no_proxy", bare)],
        );
        check(
            &[("HTTP_PROXY", "p"), ("no_proxy", "*")],
            &[],
            &[("HTTP_PROXY", "p"), ("NO_PROXY", "*"), ("no_proxy", "*")],
        );
        check(&[("NO_PROXY", "corp"), ("HTTP_PROXY", "")], &[], &[("HTTP_PROXY", ""), ("NO_PROXY", "corp")]);
    }

    #[test]
    fn explicit_no_proxy_stays_as_it_is() {
        check(
            &[("HTTP_PROXY", "p"), ("no_proxy", "corp")],
            &[("NO_PROXY", Some("mine"))],
            &[("HTTP_PROXY", "p"), ("NO_PROXY", "mine"), ("no_proxy", "mine")],
        );
        check(&[("HTTP_PROXY", "p"), ("no_proxy", "corp")], &[("NO_PROXY", None)], &[("HTTP_PROXY", "p")]);
    }
}
