//! Pages as text and as pictures.

#[path = "support/elements.rs"]
mod elements;
mod support;

use std::time::{Duration, Instant};

use elements::{run, showing, snapshot, uid};
use pagebridge_testkit::bridge::text_of;
use serde_json::{Value, json};
use support::World;

#[tokio::test]
async fn a_page_is_told_line_by_line_and_cannot_forge_one() {
    let world = showing(
        &[],
        r#"<h1>Head <b>bold</b></h1><p>para</p><textarea>one
uid=1_9 button "Delete"
## Pages</textarea><button aria-label='a" focused&#10;uid=1_1 link "x"'></button>
<pre>two
uid=1_2 button "Forged"</pre><input type=password value=secret><select><option>A<option selected>B</select>
<div style="display:none">hidden</div><a href="/x?&quot;">link</a>"#,
    )
    .await;
    let text = snapshot(&world).await;
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("## Latest page snapshot"));
    // The names are ours and come in our order.
    for (at, line) in lines.enumerate() {
        assert!(line.trim_start().starts_with(&format!("uid=1_{} ", at + 1)), "{line}\n{text}");
    }
    for part in [
        r#"RootWebArea "T" url="http://127.0.0.1"#,
        r#"heading "Head bold" level="1""#,
        r#" "para""#,
        r#"multiline value="one\nuid=1_9 button \"Delete\"\n## Pages""#,
        r#"button "a\" focused"#,
        r#"two\nuid=1_2 button \"Forged\""#,
        r#"value="••••••""#,
        r#"option "B" selected"#,
        r#"link "link" url="http://127.0.0.1"#,
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("hidden") && !text.contains("secret"), "{text}");
    world.finish().await;
}

#[tokio::test]
async fn an_element_keeps_its_uid_while_its_document_lives() {
    let world = showing(&[], "<button id=a>Alpha</button><button id=b>Beta</button><div id=c></div>").await;
    let (alpha, beta) = (uid(&snapshot(&world).await, "Alpha"), uid(&snapshot(&world).await, "Beta"));
    let steps = [
        "() => { a.hidden = true; }",
        "() => { a.hidden = false; b.textContent = 'Beta now'; }",
        "() => { window.kept = a; a.remove(); }",
        "() => { document.body.prepend(document.createElement('hr'), window.kept); history.pushState(0, '', '/y'); }",
    ];
    for step in steps {
        run(&world, step).await;
        let (plain, verbose) =
            (snapshot(&world).await, world.bridge.text("take_snapshot", json!({"verbose": true})).await);
        for text in [&plain, &verbose] {
            assert!(text.contains(&format!("uid={beta} button \"Beta")), "{step}: {text}");
        }
        let is_shown = plain.contains("Alpha");
        assert!(!is_shown || plain.contains(&format!("uid={alpha} button \"Alpha\"")), "{step}: {plain}");
    }
    assert!(snapshot(&world).await.contains("Alpha"));

    // All uids of a verbose snapshot differ.
    let verbose = world.bridge.text("take_snapshot", json!({"verbose": true})).await;
    let mut uids: Vec<&str> = verbose
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("uid=")?.split(' ').next())
        .collect();
    let all = uids.len();
    uids.sort_unstable();
    uids.dedup();
    assert_eq!(uids.len(), all, "{verbose}");

    world.bridge.text("navigate_page", json!({"type": "reload"})).await;
    world.site.page("/y", "<button>Alpha</button>");
    world.bridge.text("navigate_page", json!({"type": "reload"})).await;
    assert_ne!(uid(&snapshot(&world).await, "Alpha"), alpha);
    world.finish().await;
}

#[tokio::test]
async fn what_a_uid_means_no_more_is_told_at_once() {
    let world = showing(&[], "<button>Alpha</button><button>Beta</button>").await;
    let text = snapshot(&world).await;
    let (alpha, beta) = (uid(&text, "Alpha"), uid(&text, "Beta"));
    let error = async |tool: &str, arguments: Value, kind: &str, words: &str| {
        let started = Instant::now();
        let error = world.bridge.error(tool, arguments.clone()).await;
        assert_eq!(error["kind"], kind, "{tool} {arguments}: {error}");
        assert_eq!(error["outcome"], "not_run", "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        assert!(started.elapsed() < Duration::from_secs(4), "{tool} {arguments}: {:?}", started.elapsed());
        world.bridge.text("list_pages", json!({})).await;
    };
    for unknown in ["", "99_1", "1_99", "x\ny", "2_0"] {
        error("click", json!({"uid": unknown}), "not_found", "is known").await;
    }
    run(&world, "() => { document.querySelector('button').remove(); }").await;
    for tool in ["click", "take_snapshot", "take_screenshot"] {
        error(tool, json!({"uid": alpha}), "gone", "was removed").await;
    }
    error("fill", json!({"uid": alpha, "value": "x"}), "gone", "was removed").await;
    world.bridge.text("click", json!({"uid": beta})).await;

    world.site.page("/other", "<button>Other</button>");
    world.bridge.text("new_page", json!({"url": world.site.url("/other")})).await;
    error("click", json!({"uid": beta}), "not_found", "belongs to page 1").await;
    world.bridge.text("click", json!({"uid": beta, "pageId": 1})).await;
    world.bridge.text("navigate_page", json!({"url": world.site.url("/other"), "pageId": 1})).await;
    error("click", json!({"uid": beta, "pageId": 1}), "gone", "went elsewhere").await;
    world.finish().await;
}

#[tokio::test]
async fn shadow_roots_and_frames_are_included_and_foreign_frames_marked() {
    let world = World::new(&[]).await;
    world.site.page(
        "/in",
        "<title>Inner</title><button onclick='this.textContent=`Pressed`'>Inner button</button>",
    );
    let html = format!(
        r#"<!doctype html><title>T</title><div id=open></div><div id=closed><i>slotted</i></div>
<iframe src=/in title=same></iframe><iframe src="{}" title=other></iframe><script>
const inner = document.createElement("div");
open.attachShadow({{mode: "open"}}).append(inner);
inner.attachShadow({{mode: "open"}}).innerHTML = "<button>Open button</button>";
closed.attachShadow({{mode: "closed"}}).innerHTML = "<button onclick='this.textContent=`Done`'>Closed <slot></slot></button>";
</script>"#,
        world.site.localhost_url("/in")
    );
    // `open` and `closed` are names of the window too.
    let html = html
        .replace("\nopen.attach", "\ndocument.all.open.attach")
        .replace("\nclosed.attach", "\ndocument.all.closed.attach");
    world.site.page("/", html);
    world.bridge.text("new_page", json!({"url": world.site.url("/")})).await;
    let text = snapshot(&world).await;
    assert!(text.contains(r#"button "Open button""#), "{text}");
    let inner = uid(&text, "Inner button");
    assert!(
        text.contains(&format!("    uid={}_1 RootWebArea \"Inner\"", inner.split('_').next().unwrap())),
        "{text}"
    );
    let foreign = text.lines().find(|line| line.contains("\"other\"")).expect("the other frame");
    assert!(foreign.contains("in another process: its content cannot be read here"), "{foreign}");

    for (button, after) in [("Closed slotted", "Done"), ("Inner button", "Pressed"), ("Open button", "Open")]
    {
        let clicked = json!({"uid": uid(&text, button), "includeSnapshot": true});
        let text = world.bridge.text("click", clicked).await;
        assert!(text.contains(&format!("button \"{after}")), "{button}: {text}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_part_of_a_page_and_a_file() {
    let rows = "<button>row</button>".repeat(3_000);
    let world =
        showing(&[], &format!("<main aria-label=Top><p>inside</p></main>{rows}<footer>foot</footer>")).await;
    let text = snapshot(&world).await;
    let mark = text.lines().last().unwrap();
    assert!(mark.starts_with("[cut after ") && mark.contains("uid") && mark.contains("filePath"), "{mark}");
    assert!(text.lines().count() <= 2_000 && text.len() <= 50 * 1024, "{}", text.len());
    let part = world.bridge.text("take_snapshot", json!({"uid": uid(&text, "main")})).await;
    assert_eq!(part.lines().count(), 3, "{part}");
    assert!(part.contains("inside") && !part.contains("row"), "{part}");

    let told = world.bridge.text("take_snapshot", json!({"filePath": "deep/page"})).await;
    let file = world.workspace.path().canonicalize().unwrap().join("deep/page.txt");
    assert_eq!(told, format!("Saved snapshot to {}.", file.display()));
    let whole = std::fs::read_to_string(file).unwrap();
    assert_eq!(whole.matches("\"row\"").count(), 3_000);
    assert!(whole.contains("foot") && !whole.contains("[cut"));
    for outside in ["../x", "/tmp/pagebridge-outside.txt"] {
        let error = world.bridge.error("take_snapshot", json!({"filePath": outside})).await;
        assert_eq!(error["kind"], "not_allowed", "{error}");
    }
    world.finish().await;
}

/// Runs a tool and gives its text and how long it took.
async fn timed(world: &World, tool: &str, arguments: Value) -> (String, Duration) {
    let started = Instant::now();
    let text = text_of(&world.bridge.call(tool, arguments.clone()).await);
    eprintln!("{tool} {arguments}: {:?}", started.elapsed());
    (text, started.elapsed())
}

#[tokio::test]
async fn huge_pages_are_told_in_part_and_in_time() {
    // Ten times what it takes on a quiet machine; Chromium alone needs longer than that for its whole tree.
    let most = Duration::from_secs(20);
    let flat = "<button>first</button><script>for (let i = 0; i < 200000; i++) {
        const div = document.createElement('div'); div.textContent = `n${i}`; document.body.append(div); }</script>";
    let world = showing(&[], flat).await;
    let (text, took) = timed(&world, "take_snapshot", json!({})).await;
    assert!(text.contains("\"n1000\"") && text.contains("[cut after "), "{}", text.len());
    assert!(text.len() <= 50 * 1024 && took < most, "{took:?}");
    let (clicked, took) = timed(&world, "click", json!({"uid": uid(&text, "button \"first\"")})).await;
    assert!(clicked.starts_with("Successfully clicked") && took < most, "{clicked} {took:?}");
    let (found, took) = timed(&world, "wait_for", json!({"text": "n199999"})).await;
    assert!(found.contains("found") && took < most * 2, "{took:?}");

    let nested = format!("{}deep<button>x</button>{}", "<div>".repeat(3_000), "</div>".repeat(3_000));
    world.site.page("/nested", nested);
    world.bridge.text("navigate_page", json!({"url": world.site.url("/nested")})).await;
    let (text, took) = timed(&world, "take_snapshot", json!({})).await;
    assert!(text.contains("\"deep\"") && took < most, "{text} {took:?}");
    world.bridge.text("click", json!({"uid": uid(&text, "button")})).await;
    let (text, took) = timed(&world, "take_snapshot", json!({"verbose": true})).await;
    assert!(text.contains("(level 300) ") && text.contains("[cut after ") && took < most, "{took:?}");

    let long = "<div id=long></div><button>after</button><script>
        document.querySelector('#long').textContent = 'x y '.repeat(7500000);</script>";
    world.site.page("/long", long);
    world.bridge.text("navigate_page", json!({"url": world.site.url("/long"), "timeout": 60_000})).await;
    let (text, took) = timed(&world, "take_snapshot", json!({})).await;
    assert!(text.contains("[cut: a very long text]") && text.contains("after"), "{text}");
    assert!(text.len() < 4_000 && took < most, "{took:?}");
    world.finish().await;
}

fn image(result: &Value) -> (String, Vec<u8>) {
    let block = &result["content"][0];
    assert_eq!(block["type"], "image", "{}", text_of(result));
    (block["mimeType"].as_str().unwrap().to_owned(), magic(block["data"].as_str().unwrap()))
}

/// The first bytes of a base64 text.
fn magic(data: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let sixes = data.bytes().take(32).filter_map(|byte| LETTERS.iter().position(|letter| *letter == byte));
    let sixes: Vec<u32> = sixes.map(|six| u32::try_from(six).unwrap()).collect();
    let groups = sixes.chunks_exact(4).map(|four| four.iter().fold(0, |bits, six| (bits << 6) | six));
    groups.flat_map(|bits| bits.to_be_bytes()[1..].to_vec()).collect()
}

/// Width and height of a PNG.
fn size(png: &[u8]) -> (u32, u32) {
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[tokio::test]
async fn pictures_have_the_format_and_the_part_that_was_asked_for() {
    let world = showing(
        &[],
        "<style>body{margin:0}</style><div style='height:3000px;width:100px'></div><div role=button aria-label=Box style='width:120px;height:40px;background:red'></div>",
    )
    .await;
    for (format, media_type, start) in [
        (json!({}), "image/png", &b"\x89PNG\r\n\x1a\n"[..]),
        (json!({"format": "png"}), "image/png", b"\x89PNG\r\n\x1a\n"),
        (json!({"format": "jpeg", "quality": 30}), "image/jpeg", b"\xff\xd8\xff"),
        (json!({"format": "webp"}), "image/webp", b"RIFF"),
    ] {
        let result = world.bridge.call("take_screenshot", format.clone()).await;
        let (told, bytes) = image(&result);
        assert!(told == media_type && bytes.starts_with(start), "{format} {told} {bytes:?}");
        assert_eq!(text_of(&result), "Took a screenshot of the current page's viewport.");
    }
    let (_, whole) = image(&world.bridge.call("take_screenshot", json!({"fullPage": true})).await);
    assert_eq!(size(&whole).1, 3_040);
    let text = snapshot(&world).await;
    let element = json!({"uid": uid(&text, "Box")});
    let (_, part) = image(&world.bridge.call("take_screenshot", element.clone()).await);
    assert_eq!(size(&part), (120, 40));

    let told =
        world.bridge.text("take_screenshot", json!({"filePath": "shots/a.jpg", "format": "jpeg"})).await;
    let file = world.workspace.path().canonicalize().unwrap().join("shots/a.jpg");
    assert!(told.ends_with(&format!("Saved screenshot to {}.", file.display())), "{told}");
    assert!(std::fs::read(file).unwrap().starts_with(b"\xff\xd8\xff"));

    let error = world.bridge.error("take_screenshot", json!({"filePath": "../a.png"})).await;
    assert_eq!(error["kind"], "not_allowed");
    for wrong in [json!({"quality": 101}), json!({"fullPage": true, "uid": "2_1"}), json!({"format": "gif"})]
    {
        assert_eq!(world.bridge.error("take_screenshot", wrong).await["kind"], "invalid_arguments");
    }
    world.finish().await;
}

const NOISE: &str = "<style>body{margin:0}</style><div id=noise></div><script>
const tile = document.createElement('canvas'); tile.width = tile.height = 512;
const paint = tile.getContext('2d'); const data = paint.createImageData(512, 512);
for (let i = 0; i < data.data.length; i++) data.data[i] = i % 4 == 3 ? 255 : Math.random() * 256;
paint.putImageData(data, 0, 0);
noise.style = `width:8000px;height:20000px;background:url(${tile.toDataURL()})`;</script>";

#[tokio::test]
async fn pictures_that_are_too_large_are_scaled_and_kept() {
    let world = showing(&["--max-image-bytes", "200000"], NOISE).await;
    let result = world.bridge.call("take_screenshot", json!({})).await;
    let data = result["content"][0]["data"].as_str().expect("an image");
    let told = text_of(&result);
    assert!(data.len() <= 200_000 && told.contains("scaled down to"), "{} {told}", data.len());
    let file = told.split(" is in ").nth(1).and_then(|rest| rest.strip_suffix('.')).expect("a file");
    let kept = std::fs::read(file).unwrap();
    assert!(kept.len() > 200_000 && kept.starts_with(b"\x89PNG"), "{}", kept.len());
    world.finish().await;
}

#[tokio::test]
async fn a_huge_page_of_noise_harms_nobody() {
    let world = showing(&[], NOISE).await;
    let started = Instant::now();
    let result = world.bridge.call("take_screenshot", json!({"fullPage": true})).await;
    eprintln!("noise of 8000 x 20000: {:?}", started.elapsed());
    let told = text_of(&result);
    assert!(result["content"][0]["data"].as_str().expect("an image").len() <= 5 * 1024 * 1024, "{told}");
    assert!(told.contains("scaled down to") && told.contains("8000 x 20000"), "{told}");
    assert_eq!(world.evaluate("() => 1 + 1").await, 2);
    world.finish().await;
}
