//! `pagebridge doctor`: everything that a first call needs, tried, each with what mends it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pagebridge_browser::{Browser, CallOptions, Endpoint, Leaving, Navigation, Support, find};
use pagebridge_core::duration;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{DONE, FAILED, NO_BROWSER};
use crate::cli::{BrowserArgs, DoctorArgs};
use crate::{App, printer};

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

impl Check {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, ok: true, found: found.into(), fix: None }
    }

    fn bad(name: &'static str, found: impl Into<String>, fix: Option<String>) -> Self {
        Self { name, ok: false, found: found.into(), fix }
    }
}

/// Runs all checks. Exit status 69 without a working browser.
pub async fn run(args: &DoctorArgs, app: &App) -> u8 {
    let mut checks = vec![Check::good("version", env!("CARGO_PKG_VERSION"))];
    match &args.browser.connect {
        Some(endpoint) => checks.extend(attach(endpoint, &args.browser).await),
        None => {
            checks.extend([executable(&args.browser, app), folder()]);
            checks.extend(launch(&args.browser, app).await);
        }
    }
    app.supervisor.shutdown(Duration::from_secs(4)).await;
    if args.json {
        printer::result(&serde_json::to_string_pretty(&checks).unwrap_or_default());
    } else {
        checks.iter().for_each(print);
    }
    let failed = |names: &[&str]| checks.iter().any(|check| !check.ok && names.contains(&check.name));
    match () {
        () if failed(&["browser", "launch", "connect"]) => NO_BROWSER,
        () if checks.iter().any(|check| !check.ok) => FAILED,
        () => DONE,
    }
}

fn print(check: &Check) {
    let mark = if check.ok { "ok  " } else { "FAIL" };
    printer::result(&format!("{mark} {:10} {}", check.name, check.found));
    if let Some(fix) = &check.fix {
        printer::result(&format!("     {:10} fix: {fix}", ""));
    }
}

fn executable(args: &BrowserArgs, app: &App) -> Check {
    let found: Option<PathBuf> = args.executable_path.clone().or_else(|| find::find(app.supervisor.env()));
    match found {
        Some(path) if path.is_file() => Check::good("browser", path.display().to_string()),
        Some(path) => Check::bad(
            "browser",
            format!("{} does not exist", path.display()),
            Some("correct --executable-path".into()),
        ),
        None => Check::bad(
            "browser",
            "none on PATH or in Playwright's cache",
            Some(
                "install Chromium (Debian and Ubuntu: apt-get install chromium), or give --executable-path"
                    .into(),
            ),
        ),
    }
}

fn folder() -> Check {
    let folder = std::env::temp_dir();
    match tempfile::tempdir_in(&folder) {
        Ok(_) => Check::good("profiles", format!("{} can be written", folder.display())),
        Err(error) => Check::bad(
            "profiles",
            format!("{}: {error}", folder.display()),
            Some("set TMPDIR to a folder that can be written".into()),
        ),
    }
}

async fn launch(args: &BrowserArgs, app: &App) -> Vec<Check> {
    let started = Instant::now();
    let browser = match Browser::launch(&app.supervisor, &args.options(), 0).await {
        Ok(browser) => browser,
        Err(error) => return vec![Check::bad("launch", error.message, error.hint)],
    };
    let took = duration::show(started.elapsed());
    let mut checks = vec![Check::good("launch", format!("{} in {took}", browser.product()))];
    let sandbox = if args.no_sandbox { "off, as asked with --no-sandbox" } else { "on" };
    checks.push(Check::good("sandbox", sandbox));
    checks.push(webmcp(&browser).await);
    browser.close().await;
    checks
}

/// A browser of somebody else, attached to and left again.
async fn attach(endpoint: &Endpoint, args: &BrowserArgs) -> Vec<Check> {
    let started = Instant::now();
    let browser = match Browser::attach(endpoint, &args.options(), 0).await {
        Ok(browser) => browser,
        Err(error) => return vec![Check::bad("connect", error.message, error.hint)],
    };
    let took = duration::show(started.elapsed());
    browser.until_ready(None).await;
    let pages = browser.pages();
    let stuck = pages.iter().filter(|page| page.unresponsive).count();
    let address = browser.endpoint().map(|(_, address)| address);
    let at = address.map(|address| format!(" at {address}")).unwrap_or_default();
    let found = format!("{}{at} in {took}", browser.product());
    let mut checks = vec![Check::good("connect", found)];
    let found = format!("{} open", pages.len());
    checks.push(match stuck {
        0 => Check::good("pages", found),
        stuck => {
            let fix = "close or reload those that are busy or stopped";
            Check::bad("pages", format!("{found}, {stuck} do not answer"), Some(fix.into()))
        }
    });
    checks.push(if address.is_some_and(|address| address.ip().is_loopback()) {
        webmcp(&browser).await
    } else {
        Check::good("webmcp", "not tried: the browser runs on another machine")
    });
    browser.close().await;
    checks
}

/// Whether a page gets `document.modelContext`. A local page is needed: `about:blank` is no secure context.
async fn webmcp(browser: &Browser) -> Check {
    let absent = |found: String| {
        Check::bad(
            "webmcp",
            found,
            Some("use Chromium 156 or newer, with --enable-features=WebMCP if somebody else starts it: page tools need document.modelContext".into()),
        )
    };
    let site = match crate::demo_site::start().await {
        Ok(site) => site,
        Err(error) => return Check::bad("webmcp", format!("no local page could be served: {error}"), None),
    };
    let options = CallOptions { deadline: Duration::from_secs(20), cancel: CancellationToken::new() };
    let looked = async {
        let page = browser.new_page().await?;
        browser.navigate(page, &Navigation::Url(site.url()), Leaving::Accept, &options).await?;
        browser.settle(page).await;
        Ok::<_, pagebridge_core::ToolError>(browser.page_tools(page))
    };
    match looked.await {
        Ok(list) if list.support == Support::Native && !list.tools.is_empty() => {
            Check::good("webmcp", format!("a local page offers {} tools", list.tools.len()))
        }
        Ok(list) => absent(list.reason.unwrap_or_else(|| "the local page offers no tools".into())),
        Err(error) => absent(error.message),
    }
}
