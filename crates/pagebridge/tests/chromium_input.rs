//! Clicks, keys and values, as pages see them, and waits for what pages show.

#[path = "support/elements.rs"]
mod elements;
mod support;

use std::time::{Duration, Instant};

use elements::{run, showing, snapshot, uid};
use pagebridge_testkit::bridge::text_of;
use pagebridge_testkit::watch::descendants;
use serde_json::{Value, json};
use support::World;

/// Records these events with what matters of them, in `window.seen`.
const RECORD: &str = "<script>window.seen = [];
function record(...types) { for (const type of types) document.addEventListener(type, (event) => {
  const path = event.composedPath()[0];
  seen.push([event.type, path.id, event.isTrusted, event.key ?? event.detail ?? null, path.value ?? null].slice(0, 5));
}, true); }
</script>";

async fn seen(world: &World) -> Value {
    world.evaluate("() => window.seen.splice(0)").await
}

async fn call(world: &World, tool: &str, arguments: Value) -> String {
    world.bridge.text(tool, arguments).await
}

#[tokio::test]
async fn a_click_is_a_users_click() {
    let html = format!(
        "{RECORD}<div style='height:5000px'></div><button id=b>Far</button><script>record('pointerdown', 'mousedown', 'mouseup', 'click', 'dblclick');</script>"
    );
    let world = showing(&[], &html).await;
    let button = uid(&snapshot(&world).await, "Far");
    let told = call(&world, "click", json!({"uid": button})).await;
    assert_eq!(told, "Successfully clicked on the element");
    let events = seen(&world).await;
    let types: Vec<&str> =
        events.as_array().unwrap().iter().map(|event| event[0].as_str().unwrap()).collect();
    assert_eq!(types, ["pointerdown", "mousedown", "mouseup", "click"]);
    for event in events.as_array().unwrap() {
        assert_eq!((&event[1], &event[2]), (&json!("b"), &json!(true)), "{events}");
    }
    let told = call(&world, "click", json!({"uid": button, "dblClick": true})).await;
    assert_eq!(told, "Successfully double clicked on the element");
    let events = seen(&world).await;
    assert_eq!(events.as_array().unwrap().last().unwrap()[0], "dblclick", "{events}");
    world.finish().await;
}

#[tokio::test]
async fn a_click_that_navigates_tells_where_to_and_what_tools_came() {
    let world = World::new(&[]).await;
    world.site.page("/next", support::page("offer('hello', () => 1);"));
    world.site.page(
        "/",
        "<a href=/next>Link</a><form action=/next><button>Submit</button></form><button onclick='setTimeout(() => location = `/next`, 0)'>Later</button><a href='#here'>Fragment</a><a href=/next target=_blank>Tab</a>",
    );
    for name in ["Link", "Submit", "Later"] {
        call(&world, "navigate_page", json!({"url": world.site.url("/")})).await;
        let told = call(&world, "click", json!({"uid": uid(&snapshot(&world).await, name)})).await;
        assert!(told.contains(&format!("\nThe page went to {}", world.site.url("/next"))), "{name}: {told}");
        assert!(told.contains("New page tools: page_hello."), "{name}: {told}");
    }
    call(&world, "navigate_page", json!({"url": world.site.url("/")})).await;
    let started = Instant::now();
    let told = call(&world, "click", json!({"uid": uid(&snapshot(&world).await, "Fragment")})).await;
    assert!(
        told == "Successfully clicked on the element" && started.elapsed() < Duration::from_secs(2),
        "{told}"
    );
    let told = call(&world, "click", json!({"uid": uid(&snapshot(&world).await, "Tab")})).await;
    assert!(told.contains("\nPage 2 was opened: "), "{told}");
    let told = call(&world, "press_key", json!({"key": "Tab", "includeSnapshot": true})).await;
    assert!(told.contains("\n## Latest page snapshot\nuid="), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn what_cannot_be_clicked_is_told_with_the_reason() {
    let world = showing(
        &[],
        r#"<button id=a onclick="a.textContent = 'Hit'">Covered</button><button disabled>Disabled</button>
<button style="opacity:0;width:0;height:0;padding:0;border:0" aria-label=Nothing></button><select><option>One</select>
<div id=cover style="position:fixed;inset:0;background:#fff8" aria-label="Cookies &quot;please&quot;"></div>"#,
    )
    .await;
    let text = snapshot(&world).await;
    let refused = async |name: &str, words: &str| {
        let error = world.bridge.error("click", json!({"uid": uid(&text, name)})).await;
        assert_eq!(error["outcome"], "not_run", "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        error
    };
    let error = refused("Covered", r#"is covered by <div> id="cover" "Cookies \"please\"" (uid="#).await;
    assert_eq!((&error["kind"], &error["details"]["reason"]), (&json!("timeout"), &json!("covered")));
    refused("Disabled", "is disabled").await;
    refused("Nothing", "has no visible area").await;
    assert_eq!(refused("option", "fill on the select").await["kind"], "unsupported");
    run(&world, "() => { a.style.visibility = 'hidden'; }").await;
    refused("Covered", "is not visible").await;
    assert!(!snapshot(&world).await.contains("Hit"));

    // What goes away within a second does no harm.
    run(&world, "() => { a.style.visibility = ''; setTimeout(() => cover.remove(), 300); }").await;
    call(&world, "click", json!({"uid": uid(&text, "Covered")})).await;
    assert!(snapshot(&world).await.contains("Hit"));
    world.finish().await;
}

#[tokio::test]
async fn labels_children_and_moving_elements_are_hit() {
    let world = showing(
        &[],
        r#"<style>@keyframes go { from { margin-left: 0 } to { margin-left: 300px } } #m { animation: go .4s linear; }</style>
<label style="position:relative;display:block;width:200px"><input id=c type=checkbox style="position:absolute;opacity:0;left:0;top:0"><span style="position:relative;background:#ccc;display:block">Styled</span></label>
<button id=p><span style="pointer-events:none">Inner</span></button><a href="/x"><div>Block</div></a>
<button id=m onclick="m.textContent = 'Caught'">Moving</button>"#,
    )
    .await;
    world.site.page("/x", "arrived");
    let text = snapshot(&world).await;
    call(&world, "click", json!({"uid": uid(&text, "Moving")})).await;
    call(&world, "click", json!({"uid": uid(&text, "checkbox")})).await;
    call(&world, "click", json!({"uid": uid(&text, "Inner")})).await;
    let state = world.evaluate("() => [c.checked, document.activeElement.id, m.textContent]").await;
    assert_eq!(state, json!([true, "p", "Caught"]));
    let told = call(&world, "click", json!({"uid": uid(&text, "Block")})).await;
    assert!(told.contains("The page went to"), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn every_kind_of_control_takes_a_value() {
    let kinds = ["text", "search", "email", "url", "tel", "password", "number"];
    let fields: String = kinds
        .iter()
        .map(|kind| format!("<input id={kind} type={kind} aria-label=L-{kind} value=7>"))
        .collect();
    let html = format!(
        "{RECORD}{fields}<textarea id=area aria-label=L-area></textarea><div id=rich contenteditable aria-label=L-rich role=textbox>old <b>text</b></div>
<input id=date type=date aria-label=L-date><input id=color type=color aria-label=L-color><input id=range type=range aria-label=L-range>
<input id=time type=time aria-label=L-time>
<script>record('input', 'change');</script>"
    );
    let world = showing(&[], &html).await;
    let text = snapshot(&world).await;
    let cases = [
        ("text", "größer \"x\"", true),
        ("search", "s", true),
        ("email", "a@b.c", true),
        ("url", "http://x/", true),
        ("tel", "1", true),
        ("password", "p", true),
        ("number", "12.5", true),
        ("area", "one\ntwo", true),
        ("rich", "new", true),
        ("date", "2026-12-31", false),
        ("color", "#ff8800", false),
        ("range", "80", false),
        ("time", "23:59", false),
    ];
    for (id, value, is_typed) in cases {
        // A date field shows its parts too.
        let label = format!("\"L-{id}\"");
        let told = call(&world, "fill", json!({"uid": uid(&text, &label), "value": value})).await;
        assert_eq!(told, "Successfully filled out the element", "{id}");
        let mut events = seen(&world).await;
        // A field that was typed into tells its change once more when it loses the focus.
        events.as_array_mut().unwrap().retain(|event| event[1] == id);

        let first = json!(["input", id, is_typed]);
        let of_first = Value::Array(events[0].as_array().unwrap()[..3].to_vec());
        assert_eq!(of_first, first, "{events}");
        if id == "rich" {
            assert_eq!(world.evaluate("() => rich.textContent").await, value);
            continue;
        }
        assert!(
            events.as_array().unwrap().iter().any(|event| event[0] == "change" && event[1] == id),
            "{events}"
        );
        assert_eq!(world.evaluate(&format!("() => document.getElementById('{id}').value")).await, value);
    }
    // Emptied.
    call(&world, "fill", json!({"uid": uid(&text, "\"L-text\""), "value": ""})).await;
    assert_eq!(world.evaluate("() => document.getElementById('text').value").await, "");
    // Values that do not fit.
    for (id, value) in [("date", "tomorrow"), ("color", "red-ish"), ("range", "much")] {
        let error = world
            .bridge
            .error("fill", json!({"uid": uid(&text, &format!("\"L-{id}\"")), "value": value}))
            .await;
        assert_eq!(error["kind"], "invalid_arguments", "{id}: {error}");
    }
    let told = call(&world, "fill", json!({"uid": uid(&text, "\"L-number\""), "value": "a12b"})).await;
    assert!(told.contains("The page made another value of it: "), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn selects_boxes_and_buttons_are_switched() {
    let html = format!(
        r#"{RECORD}<select id=s aria-label=Choice><option value=1>One<option value=two>Number  two<option value=x disabled>Off</select>
<select id=m multiple aria-label=Many><option selected>A<option>B</select>
<input id=c type=checkbox aria-label=Box><input id=r1 type=radio name=r aria-label=First checked><input id=r2 type=radio name=r aria-label=Second>
<div id=w role=switch aria-checked=false aria-label=Switch tabindex=0 onclick="w.ariaChecked = String(w.ariaChecked !== 'true')">w</div>
<input id=ro readonly aria-label=Fixed value=v><input disabled aria-label=Dead><button>Push</button>
<script>record('input', 'change');</script>"#
    );
    let world = showing(&[], &html).await;
    let text = snapshot(&world).await;
    let fill = async |name: &str, value: &str| {
        let result = world.bridge.call("fill", json!({"uid": uid(&text, name), "value": value})).await;
        (result["isError"] == true, text_of(&result))
    };
    for (value, chosen) in [("two", "two"), ("One", "1"), ("number two", "two")] {
        assert!(!fill("\"Choice\"", value).await.0, "{value}");
        assert_eq!(world.evaluate("() => s.value").await, chosen);
        let events = seen(&world).await;
        assert_eq!((&events[0][0], &events[1][0]), (&json!("input"), &json!("change")), "{events}");
    }
    let (failed, told) = fill("\"Choice\"", "Three").await;
    assert!(
        failed
            && told.contains(r#"It has: "One" (value "1"), "Number two" (value "two"), "Off" (value "x")."#),
        "{told}"
    );
    assert!(fill("\"Choice\"", "Off").await.1.contains("is disabled"));
    fill("\"Many\"", "B").await;
    assert_eq!(world.evaluate("() => [...m.selectedOptions].map((o) => o.value)").await, json!(["B"]));
    seen(&world).await;

    fill("\"Box\"", "true").await;
    assert_eq!(seen(&world).await[0][2], true);
    assert!(fill("\"Box\"", "true").await.1.contains("It was true already."));
    assert!(fill("\"Box\"", "yes").await.0);
    fill("\"Second\"", "true").await;
    assert!(fill("\"Second\"", "false").await.0);
    fill("\"Switch\"", "true").await;
    let state = world.evaluate("() => [c.checked, r1.checked, r2.checked, w.ariaChecked]").await;
    assert_eq!(state, json!([true, false, true, "true"]));
    for (name, words) in
        [("\"Fixed\"", "is read-only"), ("\"Dead\"", "is disabled"), ("\"Push\"", "takes no value")]
    {
        let (failed, told) = fill(name, "x").await;
        assert!(failed && told.contains(words), "{told}");
    }
    world.finish().await;
}

#[tokio::test]
async fn keys_reach_the_page_as_from_a_keyboard() {
    let html = "<input id=i autofocus><form action=/sent><input id=f name=q aria-label=Query></form><script>window.seen = [];
        addEventListener('keydown', (e) => { if (!e.isTrusted) seen.push('forged'); seen.push([e.key, e.code, e.keyCode, e.ctrlKey, e.shiftKey, e.altKey, e.metaKey]); });</script>";
    let world = showing(&[], html).await;
    world.site.page("/sent", "sent");
    call(&world, "click", json!({"uid": uid(&snapshot(&world).await, "focused")})).await;
    for (key, expected) in [
        ("a", json!([["a", "KeyA", 65, false, false, false, false]])),
        (
            "Shift+b",
            json!([
                ["Shift", "ShiftLeft", 16, false, true, false, false],
                ["B", "KeyB", 66, false, true, false, false]
            ]),
        ),
        ("ß", json!([["ß", "", 0, false, false, false, false]])),
        ("ArrowLeft", json!([["ArrowLeft", "ArrowLeft", 37, false, false, false, false]])),
        ("Backspace", json!([["Backspace", "Backspace", 8, false, false, false, false]])),
    ] {
        let told = call(&world, "press_key", json!({"key": key})).await;
        assert_eq!(told, format!("Successfully pressed key: {key}"));
        assert_eq!(seen(&world).await, expected, "{key}");
    }
    assert_eq!(world.evaluate("() => i.value").await, "aß");
    call(&world, "press_key", json!({"key": "Control+Shift+K"})).await;
    assert_eq!(seen(&world).await[2], json!(["K", "KeyK", 75, true, true, false, false]));
    call(&world, "press_key", json!({"key": "Control+a"})).await;
    call(&world, "press_key", json!({"key": "x"})).await;
    assert_eq!(world.evaluate("() => i.value").await, "x");
    // The browser's own keys work too.
    let told = call(&world, "press_key", json!({"key": "Control+Shift+R"})).await;
    assert!(told.contains("The page went to"), "{told}");
    assert_eq!(world.bridge.error("press_key", json!({"key": "Hyper+x"})).await["kind"], "invalid_arguments");

    call(&world, "fill", json!({"uid": uid(&snapshot(&world).await, "Query"), "value": "find me"})).await;
    let told = call(&world, "press_key", json!({"key": "Enter"})).await;
    assert!(told.contains("/sent?q=find+me"), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn a_dialog_ends_a_click_well_and_stops_what_comes_after() {
    let world = showing(
        &[],
        "<button onclick='alert(`Hi`); this.textContent = `After`'>Ask</button><input aria-label=Field>",
    )
    .await;
    let text = snapshot(&world).await;
    let told = call(&world, "click", json!({"uid": uid(&text, "Ask")})).await;
    assert!(told.starts_with("Successfully clicked") && told.contains("alert dialog \"Hi\""), "{told}");
    for (tool, arguments) in [
        ("take_snapshot", json!({})),
        ("take_screenshot", json!({})),
        ("click", json!({"uid": uid(&text, "Ask")})),
        ("fill", json!({"uid": uid(&text, "Field"), "value": "x"})),
        ("press_key", json!({"key": "a"})),
        ("wait_for", json!({"text": "x"})),
    ] {
        let error = world.bridge.error(tool, arguments).await;
        assert_eq!(
            (&error["kind"], &error["outcome"]),
            (&json!("dialog"), &json!("not_run")),
            "{tool}: {error}"
        );
    }
    call(&world, "handle_dialog", json!({"action": "accept"})).await;
    assert!(snapshot(&world).await.contains("After"));
    world.finish().await;
}

#[tokio::test]
async fn waiting_for_a_text_ends_when_it_is_shown_or_the_time_is_over() {
    let world = showing(
        &[],
        r#"<p id=p>Loading <b>now</b></p><p hidden>Secret</p><input aria-label="Named field" value="In a field"><div id=s></div><iframe src=/in></iframe>
<script>s.attachShadow({mode: "open"}).innerHTML = "<i>In a shadow</i>"; String.prototype.includes = () => true; Array.prototype.findIndex = () => 0;</script>"#,
    )
    .await;
    world.site.page("/in", "In a frame");
    call(&world, "navigate_page", json!({"type": "reload"})).await;
    for text in [
        json!("Loading now"),
        json!(["none", "In a shadow"]),
        json!("In a frame"),
        json!("Named field"),
        json!("In a field"),
    ] {
        let told = call(&world, "wait_for", json!({"text": text})).await;
        assert!(told.contains("found.\n## Latest page snapshot\n"), "{text}: {told}");
    }
    let started = Instant::now();
    let error = world.bridge.error("wait_for", json!({"text": ["Secret", "a\"b"], "timeout": 400})).await;
    assert_eq!((&error["kind"], &error["outcome"]), (&json!("timeout"), &json!("not_run")), "{error}");
    assert!(error["message"].as_str().unwrap().contains(r#""Secret" or "a\"b" within 400 ms"#), "{error}");
    assert!(started.elapsed() < Duration::from_secs(3));

    run(&world, "() => { setTimeout(() => p.textContent = 'Late', 400); }").await;
    assert!(call(&world, "wait_for", json!({"text": "Late"})).await.contains("\"Late\" found"));
    world.site.page("/next", "<script>setTimeout(() => document.body.append('Arrived'), 300)</script>");
    run(&world, "() => { setTimeout(() => location = '/next', 200); }").await;
    assert!(call(&world, "wait_for", json!({"text": "Arrived"})).await.contains("\"Arrived\" found"));
    for wrong in [json!({"text": ""}), json!({"text": []}), json!({"text": 7}), json!({})] {
        assert_eq!(world.bridge.error("wait_for", wrong).await["kind"], "invalid_arguments");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_page_that_hides_and_replaces_builtins_is_acted_on_all_the_same() {
    let world = showing(
        &[],
        r#"<form title=frm><input name=checkVisibility><input name=getAttribute><input name=querySelectorAll></form>
<img name=createTreeWalker><img name=hidden><form name=documentElement></form><form name=body></form><p>para text</p>
<button id=far onclick="this.textContent = 'Hit'">Push</button><select id=s aria-label=Choice><option>A<option>B</select>
<script>for (const name of ["getBoundingClientRect", "checkVisibility", "matches", "getAttribute"]) Element.prototype[name] = () => { throw 1; };
Array.prototype.push = Array.from = window.setTimeout = window.requestAnimationFrame = Promise.prototype.then = () => { throw 2; };
Object.defineProperty(Node.prototype, "isConnected", { get: () => false });</script>"#,
    )
    .await;
    let text = call(&world, "wait_for", json!({"text": "para text"})).await;
    call(&world, "click", json!({"uid": uid(&text, "Push")})).await;
    call(&world, "fill", json!({"uid": uid(&text, "Choice"), "value": "B"})).await;
    let text = snapshot(&world).await;
    assert!(text.contains("button \"Hit\"") && text.contains("value=\"B\""), "{text}");
    world.finish().await;
}

#[tokio::test]
async fn a_page_in_the_background_is_acted_on_too() {
    let world =
        showing(&[], "<button onclick='this.textContent = `Hit`'>Push</button><input aria-label=Field>")
            .await;
    let text = snapshot(&world).await;
    world.site.page("/other", "other");
    call(&world, "new_page", json!({"url": world.site.url("/other")})).await;
    call(&world, "click", json!({"uid": uid(&text, "Push"), "pageId": 1})).await;
    call(&world, "fill", json!({"uid": uid(&text, "Field"), "value": "typed", "pageId": 1})).await;
    call(&world, "press_key", json!({"key": "!", "pageId": 1})).await;
    let text = call(&world, "take_snapshot", json!({"pageId": 1})).await;
    assert!(text.contains("button \"Hit\"") && text.contains("value=\"typed!\""), "{text}");
    world.finish().await;
}

#[tokio::test]
async fn every_wait_ends_with_its_page_and_the_next_call_works() {
    let world = World::new(&[]).await;
    let open = async || {
        world.site.page("/", "<button onclick='while (true) {}'>Hang</button><button>Idle</button>");
        call(&world, "new_page", json!({"url": world.site.url("/")})).await;
        snapshot(&world).await
    };
    open().await;
    let (waited, closed) =
        tokio::join!(world.bridge.error("wait_for", json!({"text": "never", "timeout": 20_000})), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            call(&world, "close_page", json!({"pageId": 1})).await
        });
    assert!(closed.starts_with("Closed page 1"), "{closed}");
    assert_eq!(waited["kind"], "closed", "{waited}");

    open().await;
    let wait = world.bridge.error("wait_for", json!({"text": "never", "timeout": 20_000}));
    let (waited, ()) = tokio::join!(wait, async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        kill_renderers(world.bridge.pid());
    });
    assert_eq!(waited["kind"], "crashed", "{waited}");
    let text = open().await;
    call(&world, "click", json!({"uid": uid(&text, "Idle")})).await;
    world.finish().await;
}

fn kill_renderers(bridge: u32) {
    for process in descendants(bridge).into_iter().filter(|one| one.cmdline.contains("--type=renderer")) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(process.pid).expect("a pid"));
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
    }
}

#[tokio::test]
async fn a_busy_page_ends_the_click_at_the_deadline_and_harms_no_other() {
    let world = World::new(&["--page-call-timeout", "2s"]).await;
    world.site.page(
        "/",
        "<button onclick='const end = Date.now() + 5000; while (Date.now() < end) {}'>Hang</button>",
    );
    world.site.page("/other", "<button>Idle</button>");
    call(&world, "new_page", json!({"url": world.site.url("/")})).await;
    let text = snapshot(&world).await;
    let started = Instant::now();
    let error = world.bridge.error("click", json!({"uid": uid(&text, "Hang")})).await;
    assert_eq!((&error["kind"], &error["outcome"]), (&json!("timeout"), &json!("unknown")), "{error}");
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    call(&world, "new_page", json!({"url": world.site.localhost_url("/other")})).await;
    let text = snapshot(&world).await;
    call(&world, "click", json!({"uid": uid(&text, "Idle")})).await;
    world.finish().await;
}

#[tokio::test]
async fn the_list_of_tools_stays_small() {
    let world = World::new(&[]).await;
    let list = world.bridge.request("tools/list", json!({})).await;
    let names = support::names(&list["tools"]);
    for name in ["wait_for", "take_snapshot", "take_screenshot", "click", "fill", "press_key"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    assert!(list.to_string().len() < 12 * 1024, "{}", list.to_string().len());
    world.finish().await;
}
