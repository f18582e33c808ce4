//! Attaches to a browser that somebody else runs. It is never ended from here: what is ours there is a WebSocket,
//! and the pages that we opened.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pagebridge_cdp::{CdpError, CdpSession, Connected, Endpoint};
use serde::Deserialize;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::browser::{Browser, Owner};
use crate::driver::{self, Driver, follow_pages};
use crate::options::BrowserOptions;
use crate::page_tools::Registry;
use crate::start_failure::StartError;
use crate::targets::{PageId, Targets};

/// For a browser that took the connection to say its version and its pages.
const PATIENCE: Duration = Duration::from_secs(3);
/// For the pages that we opened to close.
const TO_CLOSE: Duration = Duration::from_millis(500);
/// For the driver to take in what the browser has told.
const MOMENT: Duration = Duration::from_millis(2);

/// A browser of somebody else.
pub(crate) struct Foreign {
    endpoint: Endpoint,
    address: SocketAddr,
    headless: bool,
    /// The targets that we opened.
    opened: Mutex<Vec<Arc<str>>>,
}

impl Browser {
    /// Attaches to the browser at this address, and to every page that it shows now and later. What happens to
    /// pages is not waited for: see [`Browser::until_ready`]. The first page gets the number after `last_page`.
    pub async fn attach(
        endpoint: &Endpoint,
        options: &BrowserOptions,
        last_page: u32,
    ) -> Result<Self, StartError> {
        let Connected { session, events, address } =
            endpoint.connect().await.map_err(|error| StartError::unreachable(&error))?;
        // Whatever happens from here on, letting go of the start closes the connection.
        let attaching = Attaching(session);
        let targets = Arc::new(Targets::new(attaching.0.clone(), last_page));
        let registry = Arc::new(Registry::new(options.allowed_frames.clone()));
        let driver = Driver { targets: targets.clone(), registry: registry.clone(), holds: false };
        tokio::spawn(driver.drive(events));
        let said = timeout(PATIENCE, attaching.adopt(&targets)).await;
        let version = said
            .map_err(|_| "it said nothing in time".to_owned())
            .and_then(|said| said.map_err(|error| error.to_string()))
            .map_err(|reason| StartError::silent(endpoint, address, &reason))?;
        std::mem::forget(attaching);
        let headless = version.user_agent.contains("Headless");
        let foreign = Foreign { endpoint: endpoint.clone(), address, headless, opened: Mutex::default() };
        Ok(Self::new(Owner::Foreign(foreign), targets, registry, version.product))
    }

    /// Waits, a bounded time, until a page (or every page) is prepared or known not to answer.
    pub async fn until_ready(&self, page: Option<PageId>) {
        let mut revision = self.targets.revision();
        let is_ready = || {
            let state = self.targets.state();
            match page {
                Some(page) => state.pages.get(&page).is_none_or(|page| page.ready),
                None => state.pages.values().all(|page| page.ready),
            }
        };
        let ready = async {
            loop {
                revision.borrow_and_update();
                if is_ready() || revision.changed().await.is_err() {
                    return;
                }
            }
        };
        // Every page is told of within that time, so that this is only for a page that comes meanwhile.
        let _ = timeout(driver::TO_PREPARE + PATIENCE / 10, ready).await;
    }
}

/// A connection that nobody uses yet; dropping it closes it.
struct Attaching(CdpSession);

impl Drop for Attaching {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    product: String,
    #[serde(default)]
    user_agent: String,
}

impl Attaching {
    async fn adopt(&self, targets: &Targets) -> Result<Version, CdpError> {
        let version = self.0.call("Browser.getVersion", json!({}));
        let followed = follow_pages(&self.0, false);
        let version = version.await?.decode()?;
        followed.await?;
        for target in page_targets(&self.0).await? {
            while targets.state().page_of_target(&target).is_none() && !self.0.is_closed() {
                sleep(MOMENT).await;
            }
        }
        Ok(version)
    }
}

/// The targets of the pages that the browser shows.
async fn page_targets(root: &CdpSession) -> Result<Vec<Arc<str>>, CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Targets {
        target_infos: Vec<Target>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Target {
        target_id: Arc<str>,
    }
    let found: Targets =
        root.call("Target.getTargets", json!({"filter": driver::pages_only()})).await?.decode()?;
    Ok(found.target_infos.into_iter().map(|target| target.target_id).collect())
}

impl Foreign {
    /// Where it is, as the user gave it, without secrets.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The address that answered.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it shows no windows.
    pub fn is_headless(&self) -> bool {
        self.headless
    }

    /// A page of ours, to be closed when we go.
    pub fn opened(&self, target: Arc<str>) {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).push(target);
    }

    /// Closes the pages that we opened, and the connection. A browser that would be left without any page keeps
    /// one of ours, because it might end with its last one.
    pub async fn leave(&self, targets: &Targets) {
        let root = targets.browser();
        let opened = std::mem::take(&mut *self.opened.lock().unwrap_or_else(PoisonError::into_inner));
        let _ = timeout(TO_CLOSE, async {
            let there = page_targets(root).await.unwrap_or_default();
            let mut ours: Vec<&Arc<str>> = there.iter().filter(|target| opened.contains(target)).collect();
            if ours.len() == there.len() {
                ours.pop();
            }
            let closing: Vec<_> = ours
                .into_iter()
                .map(|target| root.call("Target.closeTarget", json!({"targetId": target})))
                .collect();
            for closed in closing {
                let _ = closed.await;
            }
        })
        .await;
        root.close();
    }
}
