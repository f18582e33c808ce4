//! Chromium's command line.

use std::ffi::OsString;
use std::path::Path;

use crate::options::BrowserOptions;

/// Switches that are always given: nothing asks, nothing phones home, no window comes up by itself.
const ALWAYS: [&str; 11] = [
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-startup-window",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-quic",
    "--disable-sync",
    "--password-store=basic",
    "--use-mock-keychain",
];

/// Switches whose values add up; Chromium itself obeys only the last one given.
const LISTS: [&str; 4] =
    ["--enable-features", "--disable-features", "--enable-blink-features", "--disable-blink-features"];

/// The arguments for a browser with this profile.
pub fn arguments(options: &BrowserOptions, profile: &Path) -> Vec<OsString> {
    let mut given: Vec<String> = ALWAYS.iter().map(|&flag| flag.to_owned()).collect();
    given.push("--enable-features=WebMCP".into());
    if !options.headed {
        given.extend(["--headless", "--disable-gpu", "--mute-audio"].map(Into::into));
    }
    if options.no_sandbox {
        given.push("--no-sandbox".into());
    }
    given.extend(options.extra_args.iter().cloned());
    let mut arguments: Vec<OsString> = merged(given).into_iter().map(Into::into).collect();
    let mut user_data_dir = OsString::from("--user-data-dir=");
    user_data_dir.push(profile);
    arguments.push(user_data_dir);
    arguments
}

/// The same switches with each list given once.
fn merged(given: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(given.len());
    for flag in given {
        let list = flag.split_once('=').filter(|(name, _)| LISTS.contains(name));
        let earlier = list.and_then(|(name, _)| {
            out.iter_mut().find(|known| known.split_once('=').is_some_and(|(known, _)| known == name))
        });
        match (list, earlier) {
            (Some((_, values)), Some(earlier)) => {
                earlier.push(',');
                earlier.push_str(values);
            }
            _ => out.push(flag),
        }
    }
    out
}

/// An extra argument that would break what pagebridge stands for, with the reason.
pub fn refuse_argument(argument: &str) -> Option<&'static str> {
    match argument.split('=').next().unwrap_or_default() {
        "--remote-debugging-port" | "--remote-debugging-address" => Some(
            "an open debugging port can be reached by every page; pagebridge drives the browser over a pipe",
        ),
        "--remote-debugging-pipe" => Some("it is given already"),
        "--user-data-dir" => Some("use the option --user-data-dir"),
        "--no-sandbox" => Some("use the option --no-sandbox"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(options: &BrowserOptions) -> Vec<String> {
        arguments(options, Path::new("/p")).into_iter().map(|a| a.into_string().unwrap()).collect()
    }

    #[test]
    fn the_sandbox_stays_and_no_port_is_opened_unless_asked() {
        let default = flags(&BrowserOptions::default());
        assert!(
            default.contains(&"--headless".into()) && default.contains(&"--remote-debugging-pipe".into())
        );
        assert!(!default.iter().any(|f| f.contains("sandbox") || f.contains("debugging-port")));
        let open = flags(&BrowserOptions { no_sandbox: true, headed: true, ..BrowserOptions::default() });
        assert!(open.contains(&"--no-sandbox".into()) && !open.contains(&"--headless".into()));
    }

    #[test]
    fn feature_lists_are_merged_into_one() {
        let extra_args = vec!["--enable-features=A,B".into(), "--x=1".into(), "--x=2".into()];
        let given = flags(&BrowserOptions { extra_args, ..BrowserOptions::default() });
        let features: Vec<_> = given.iter().filter(|f| f.starts_with("--enable-features")).collect();
        assert_eq!(features, ["--enable-features=WebMCP,A,B"]);
        assert!(given.contains(&"--x=1".into()) && given.contains(&"--x=2".into()));
    }

    #[test]
    fn ports_are_refused_with_a_reason() {
        assert!(refuse_argument("--remote-debugging-port=0").is_some());
        assert!(refuse_argument("--window-size=1,2").is_none());
    }
}
