//! WebMCP that a page brings itself: a polyfill of `document.modelContext`, or only the old
//! `navigator.modelContext`. It lives in the page's own world, where everything may be patched, so what comes
//! back is page data and nothing more; a page can only deceive about itself.

use std::time::Duration;

use pagebridge_cdp::{CdpError, CdpSession};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::discover::SeenTool;

const SCRIPT: &str = include_str!("page_api.js");
/// A page that does not answer in this time is not listed.
const PATIENCE: Duration = Duration::from_secs(1);

/// The page's own world, with our functions as an object that only we hold.
#[derive(Debug, Clone)]
pub(super) struct PageApi {
    session: CdpSession,
    functions: String,
}

/// How a run in the page's own world ended.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Ran {
    #[serde(default)]
    pub missing: bool,
    #[serde(default)]
    pub value: Option<Box<RawValue>>,
    #[serde(default)]
    pub failure: Option<String>,
}

impl PageApi {
    /// Enters the main world of the document at the root of a session. `native` tells whether the browser has
    /// WebMCP itself there.
    pub async fn enter(session: &CdpSession, native: bool) -> Result<Self, CdpError> {
        let params = json!({"expression": format!("({SCRIPT})({native})")});
        let made: Evaluated<Handle> = session.call("Runtime.evaluate", params).await?.decode()?;
        Ok(Self { session: session.clone(), functions: made.result.object_id })
    }

    /// The tools that the page offers through its own API; `None` when it has none.
    pub async fn list(&self) -> Option<Vec<SeenTool>> {
        let listed = tokio::time::timeout(PATIENCE, self.call("list", json!([]))).await;
        listed.ok()?.inspect_err(|error| tracing::debug!(%error, "a page's own API did not answer")).ok()?
    }

    /// Waits until the list may have changed.
    pub async fn changed(&self) -> Result<(), CdpError> {
        self.call::<Value>("changed", json!([])).await.map(drop)
    }

    /// An `AbortController` of the page, as a handle.
    pub async fn controller(&self) -> Result<String, CdpError> {
        let params = self.function("controller", json!([]));
        let made: Evaluated<Handle> = self.session.call("Runtime.callFunctionOn", params).await?.decode()?;
        Ok(made.result.object_id)
    }

    /// Runs a tool.
    pub async fn run(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        controller: &str,
    ) -> Result<Ran, CdpError> {
        let text = Value::Object(arguments.clone()).to_string();
        let arguments =
            json!([{"value": name}, {"value": arguments}, {"value": text}, {"objectId": controller}]);
        self.call("run", arguments).await
    }

    async fn call<T: DeserializeOwned>(&self, name: &str, arguments: Value) -> Result<T, CdpError> {
        let mut params = self.function(name, arguments);
        params["returnByValue"] = json!(true);
        let reply = self.session.call("Runtime.callFunctionOn", params).await?;
        let evaluated: Evaluated<ByValue> = reply.decode()?;
        let value = evaluated.result.value.as_deref().map_or("null", RawValue::get);
        serde_json::from_str(value).map_err(|error| CdpError::Unexpected {
            method: "Runtime.callFunctionOn",
            reason: error.to_string(),
        })
    }

    fn function(&self, name: &str, arguments: Value) -> Value {
        json!({
            "functionDeclaration": format!("function (...given) {{ return this.{name}(...given); }}"),
            "objectId": self.functions,
            "arguments": arguments,
            "awaitPromise": true,
        })
    }
}

/// Calls the page's tool off.
pub(super) fn abort(session: &CdpSession, controller: &str) -> pagebridge_cdp::Call {
    let params = json!({"functionDeclaration": "function () { this.abort(); }", "objectId": controller});
    session.call("Runtime.callFunctionOn", params)
}

#[derive(Deserialize)]
struct Evaluated<T> {
    result: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Handle {
    object_id: String,
}

#[derive(Deserialize)]
struct ByValue {
    #[serde(default)]
    value: Option<Box<RawValue>>,
}
