//! `pagebridge demo`: the main job, shown. A local shop, `pagebridge serve` as a child, and an MCP client that
//! goes through it as an agent would, with what it saw and how long it took.

mod stage;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{DONE, FAILED};
use crate::cli::DemoArgs;
use crate::demo_site::{self, DemoSite};
use crate::{App, printer};
use stage::Stage;

/// For the bridge to end after its input closed.
const TO_END: Duration = Duration::from_secs(6);

/// Runs the demo, or only serves its site.
pub async fn run(args: &DemoArgs, app: &App) -> u8 {
    let shown = match demo_site::start().await {
        Ok(site) if args.site => serve_site(site).await,
        Ok(site) => show(args, app, &site).await,
        Err(error) => Err(error).context("the demo site could not be served"),
    };
    app.supervisor.shutdown(TO_END).await;
    match shown {
        Ok(()) => DONE,
        Err(error) => {
            printer::problem(&format!("{error:#}"));
            FAILED
        }
    }
}

/// Serves the shop until the reader of our output is done with it: its address, then nothing until stdin ends.
async fn serve_site(site: DemoSite) -> Result<()> {
    printer::result(&site.url());
    let (mut input, mut nowhere) = (tokio::io::stdin(), tokio::io::sink());
    tokio::select! {
        _ = tokio::io::copy(&mut input, &mut nowhere) => {}
        () = super::serve::wait_for_signal() => {}
    }
    site.stop().await;
    Ok(())
}

async fn show(args: &DemoArgs, app: &App, site: &DemoSite) -> Result<()> {
    let started = Instant::now();
    say("A shop runs at", &site.url());
    let mut stage = Stage::open(app, &args.browser).await?;
    open_shop(&mut stage, site).await?;
    use_tools(&stage).await?;
    cancel_slow_call(&stage).await?;
    check_out(&mut stage, site).await?;
    let status = stage.close(TO_END).await?;
    let browser =
        if args.browser.connect.is_some() { "the browser goes on without it" } else { "the browser with it" };
    say("The client closed the connection;", &format!("the bridge ended with {status}, {browser}."));
    say("All of it took", &pagebridge_core::duration::show(started.elapsed()));
    Ok(())
}

fn say(what: &str, detail: &str) {
    printer::result(&format!("{what} {detail}"));
}

async fn open_shop(stage: &mut Stage, site: &DemoSite) -> Result<()> {
    stage.tools("tools/list: the bridge's own tools").await?;
    stage.call("new_page", json!({"url": site.url()})).await?;
    stage.list_changed().await?;
    let names = stage.tools("tools/list again: the shop's tools are MCP tools now").await?;
    ensure!(names.iter().any(|name| name == "page_search_products"), "the shop's tools are missing");
    Ok(())
}

async fn use_tools(stage: &Stage) -> Result<()> {
    let found = stage.call("page_search_products", json!({"query": "black tea"})).await?;
    let sku = first_sku(&found).context("the shop found no tea")?;
    stage.call("page_add_to_cart", json!({"sku": sku, "quantity": 2})).await?;
    stage.call("page_view_cart", json!({})).await?;
    stage.call("page_call", json!({"tool": "read_reviews", "arguments": {"sku": sku}})).await?;
    printer::result("Names and values in any language come through as they are:");
    stage.call("page_carte_cadeau", json!({"prénom": "Zoë", "thème": "été"})).await?;
    printer::result("A wrong argument never reaches the page; every mistake is named:");
    stage.refused("page_add_to_cart", json!({"quantity": 0})).await?;
    Ok(())
}

fn first_sku(found: &Value) -> Option<String> {
    let result = &found["structuredContent"]["result"];
    let list = result.as_array().or_else(|| result.as_object()?.values().find_map(Value::as_array))?;
    list.first()?["sku"].as_str().map(Into::into)
}

async fn cancel_slow_call(stage: &Stage) -> Result<()> {
    printer::result("A slow tool is cancelled after 300 ms; the page's AbortSignal fires and nothing hangs:");
    stage
        .cancelled("page_estimate_delivery", json!({"postcode": "10115"}), Duration::from_millis(300))
        .await?;
    Ok(())
}

async fn check_out(stage: &mut Stage, site: &DemoSite) -> Result<()> {
    stage.call("navigate_page", json!({"url": format!("{}checkout", site.url())})).await?;
    stage.list_changed().await?;
    stage.tools("tools/list: the checkout page has other tools").await?;
    printer::result("Buying has consequences. Without the user's consent it is refused:");
    stage.refused("page_place_order", json!({})).await?;
    Ok(())
}
