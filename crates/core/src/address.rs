//! Which addresses a client may open.

use crate::{ErrorKind, ToolError};

/// Checks an address before a browser sees it. `allow_files` is the option `--allow-file-urls`.
///
/// Returns the address in the form to navigate to.
pub fn check(address: &str, allow_files: bool) -> Result<String, ToolError> {
    let trimmed = address.trim();
    let parsed = url::Url::parse(trimmed).map_err(|error| {
        ToolError::not_run(
            ErrorKind::InvalidArguments,
            format!("{trimmed:?} is no full address ({error}). Write it with its scheme, like https://example.com/."),
        )
    })?;
    let scheme = innermost_scheme(trimmed);
    match scheme.as_str() {
        "http" | "https" | "data" | "blob" => Ok(trimmed.to_owned()),
        "about" if parsed.path() == "blank" => Ok(trimmed.to_owned()),
        "file" if allow_files => Ok(trimmed.to_owned()),
        "file" => Err(ToolError::not_run(
            ErrorKind::NotAllowed,
            format!("Local files are not opened: {trimmed}. The option --allow-file-urls permits it."),
        )),
        other => Err(ToolError::not_run(
            ErrorKind::NotAllowed,
            format!("Addresses of the scheme {other:?} are not opened: {trimmed}. Use http or https."),
        )),
    }
}

/// The scheme behind any number of `view-source:` and `blob:`/`filesystem:` wrappers.
fn innermost_scheme(address: &str) -> String {
    let mut rest = address;
    loop {
        let Some((scheme, inner)) = rest.split_once(':') else { return rest.to_ascii_lowercase() };
        // URL parsers skip tabs and line breaks inside a scheme; so do we.
        let scheme: String =
            scheme.chars().filter(|c| !c.is_ascii_whitespace()).collect::<String>().to_ascii_lowercase();
        let wraps = matches!(scheme.as_str(), "view-source" | "filesystem")
            || (scheme == "blob" && !inner.trim_start().to_ascii_lowercase().starts_with("http"));
        if !wraps {
            return scheme;
        }
        rest = inner.trim_start();
    }
}

/// The origin of an address as browsers write it; `null` where it has none of its own.
pub fn origin(address: &str) -> String {
    url::Url::parse(address).map_or_else(|_| "null".to_owned(), |url| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_refused_however_they_are_wrapped() {
        for address in [
            "file:///etc/passwd",
            "FILE:///etc/passwd",
            " file:/etc/passwd",
            "f\nile:///etc/passwd",
            "view-source:file:///etc/passwd",
            "view-source:view-source:file:///etc/passwd",
            "filesystem:file:///x",
            "blob:file:///x",
        ] {
            let error = check(address, false).unwrap_err();
            assert_eq!(error.kind, ErrorKind::NotAllowed, "{address}: {error}");
        }
        assert!(check("file:///tmp/x.html", true).is_ok());
    }

    #[test]
    fn the_web_is_open_and_the_browser_itself_is_not() {
        for address in ["http://127.0.0.1:1/", "https://example.com/a?b#c", "about:blank", "data:text/html,x"]
        {
            assert!(check(address, false).is_ok(), "{address}");
        }
        for address in ["chrome://settings", "devtools://x", "javascript:alert(1)", "view-source:chrome://x"]
        {
            assert_eq!(check(address, false).unwrap_err().kind, ErrorKind::NotAllowed, "{address}");
        }
        for address in ["", "example.com", "/path", "http://"] {
            assert_eq!(check(address, false).unwrap_err().kind, ErrorKind::InvalidArguments, "{address}");
        }
    }
}
