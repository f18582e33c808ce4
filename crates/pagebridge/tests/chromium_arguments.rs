//! Schemas of page tools as they are listed, and arguments as the page gets them.

mod support;

use pagebridge_mcp::client::ClientError;
use serde_json::{Value, json};
use support::{World, named, names};

const ECHO: &str =
    "const echo = (input) => ({ got: input, type: typeof input, list: Array.isArray(input) });\n";

/// A page whose tools give back what they get.
async fn echoes(tools: &str) -> World {
    World::with_page(&[], &format!("{ECHO}{tools}")).await
}

/// The `inputSchema` of the dynamic tool of this name.
async fn listed_schema(world: &World, name: &str) -> Value {
    let tools = json!(world.bridge.tools().await);
    named(&tools, name)["inputSchema"].clone()
}

#[tokio::test]
async fn a_missing_or_empty_schema_becomes_an_object_schema_and_others_pass_unchanged() {
    let world = echoes(
        r#"
offer("none", echo, { inputSchema: undefined });
offer("empty", echo, { inputSchema: {} });
offer("only_draft", echo, { inputSchema: { $schema: "http://json-schema.org/draft-07/schema#" } });
offer("nullable", echo, { inputSchema: { type: "object", properties: { a: { type: ["string", "null"] } } } });
offer("mixed_enum", echo, { inputSchema: { type: "object", properties: { n: { enum: [1, 2, null] } }, required: ["n"] } });
offer("no_type", echo, { inputSchema: { properties: { a: { type: "number", minimum: 0 } } } });
"#,
    )
    .await;
    let page_tools = world.page_tools().await;
    for (tool, schema) in [
        ("none", json!({"type": "object"})),
        ("empty", json!({"type": "object"})),
        ("only_draft", json!({"type": "object"})),
        ("nullable", json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}})),
        (
            "mixed_enum",
            json!({"type": "object", "properties": {"n": {"enum": [1, 2, null]}}, "required": ["n"]}),
        ),
        ("no_type", json!({"type": "object", "properties": {"a": {"type": "number", "minimum": 0}}})),
    ] {
        assert_eq!(listed_schema(&world, &format!("page_{tool}")).await, schema, "{tool}");
        assert_eq!(named(&page_tools["tools"], tool)["inputSchema"], schema, "{tool}");
    }
    for (tool, good, bad) in [
        ("nullable", json!({"a": null}), json!({"a": 1})),
        ("nullable", json!({"a": "x"}), json!({"a": []})),
        ("mixed_enum", json!({"n": 2}), json!({"n": "2"})),
        ("mixed_enum", json!({"n": null}), json!({})),
        ("no_type", json!({"a": 0.5}), json!({"a": -1})),
    ] {
        assert_eq!(world.result(tool, good.clone()).await["got"], good, "{tool}");
        assert_eq!(world.error(tool, bad.clone()).await["kind"], "invalid_arguments", "{tool} {bad}");
    }
    world.finish().await;
}

#[tokio::test]
async fn the_page_always_gets_an_object() {
    let world = echoes(
        r#"
offer("none", echo, { inputSchema: undefined });
offer("empty", echo, { inputSchema: {} });
offer("only_draft", echo, { inputSchema: { $schema: "https://json-schema.org/draft/2020-12/schema" } });
offer("object", echo);
"#,
    )
    .await;
    let object = json!({"got": {}, "type": "object", "list": false});
    for tool in ["none", "empty", "only_draft", "object"] {
        let dynamic = format!("page_{tool}");
        for arguments in ["absent", "null", "{}"] {
            let (mut call, mut own) = (json!({"tool": tool}), json!({"name": dynamic}));
            if arguments != "absent" {
                let arguments: Value = serde_json::from_str(arguments).expect("JSON");
                call["arguments"] = arguments.clone();
                own["arguments"] = arguments;
            }
            let answer = world.bridge.call("page_call", call).await;
            assert_eq!(answer["structuredContent"]["result"], object, "{tool} {arguments}: {answer:#}");
            let answer = world.bridge.request("tools/call", own).await;
            assert_eq!(answer["structuredContent"]["result"], object, "{dynamic} {arguments}: {answer:#}");
        }
        for arguments in [json!([]), json!("{}"), json!(1)] {
            let error = world.bridge.error("page_call", json!({"tool": tool, "arguments": arguments})).await;
            assert_eq!(error["kind"], "invalid_arguments", "{tool} {arguments}: {error:#}");
            let own = json!({"name": dynamic, "arguments": arguments});
            match world.bridge.client.request("tools/call", own).await {
                Err(ClientError::Rpc(error)) => {
                    assert_eq!(error.code, -32602, "{dynamic} {arguments}: {error}")
                }
                other => panic!("{dynamic} {arguments}: {other:?}"),
            }
        }
    }
    world.finish().await;
}

#[tokio::test]
async fn all_mistakes_are_told_at_once_and_the_page_is_not_called() {
    let world = echoes(
        r#"
self.calls = 0;
offer("order", (input) => { self.calls++; return input; }, { inputSchema: {
  type: "object", required: ["sku", "count"], additionalProperties: false,
  properties: { sku: { type: "string", minLength: 3 }, count: { type: "integer", minimum: 1 }, size: { enum: ["s", "m"] },
    gift: { type: "boolean", default: false }, deep: { type: "object", properties: { level: { default: 3 } } } } } });
"#,
    )
    .await;
    let error = world.error("order", json!({"sku": "x", "count": 0, "size": "xl", "extra": 1})).await;
    assert_eq!(
        (&error["kind"], &error["outcome"]),
        (&json!("invalid_arguments"), &json!("not_run")),
        "{error:#}"
    );
    let message = error["message"].as_str().expect("a message");
    for part in ["/sku", "/count", "/size", "extra"] {
        assert!(message.contains(part), "{part} is missing: {message}");
    }
    let error = world.error("order", json!({})).await;
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("\"sku\"") && message.contains("\"count\""), "{message}");
    assert_eq!(world.evaluate("() => self.calls").await, 0);
    let filled = world.result("order", json!({"sku": "abc", "count": 1, "deep": {}})).await;
    assert_eq!(filled, json!({"sku": "abc", "count": 1, "deep": {"level": 3}, "gift": false}));
    assert_eq!(world.evaluate("() => self.calls").await, 1);
    world.finish().await;
}

#[tokio::test]
async fn odd_schemas_do_not_harm_their_neighbours_and_are_listed_as_object_schemas() {
    let world = echoes(
        r#"
for (const name of ["good_1", "good_2", "good_3", "good_4"])
  offer(name, echo, { inputSchema: { type: "object", properties: { a: { type: "number" } } } });
offer("any_of", echo, { inputSchema: { anyOf: [
  { properties: { id: { type: "string" } }, required: ["id"] }, { properties: { name: { type: "string" } }, required: ["name"] }] } });
offer("one_of", echo, { inputSchema: { oneOf: [{ required: ["a"] }, { required: ["b"] }] } });
offer("text", echo, { inputSchema: { type: "string" } });
offer("array", echo, { inputSchema: { type: "array", items: {} } });
offer("empty_list", echo, { inputSchema: [] });
"#,
    )
    .await;
    let all = ["any_of", "array", "empty_list", "good_1", "good_2", "good_3", "good_4", "one_of", "text"];
    assert_eq!(world.names().await, all);
    let listed = json!(world.bridge.tools().await);
    for tool in all {
        let schema = &named(&listed, &format!("page_{tool}"))["inputSchema"];
        assert_eq!(schema["type"], "object", "{tool}: {schema}");
        for union in ["anyOf", "oneOf", "allOf", "$ref", "$schema"] {
            assert!(schema.get(union).is_none(), "{tool}: {schema}");
        }
        if tool.starts_with("good") {
            assert_eq!(*schema, json!({"type": "object", "properties": {"a": {"type": "number"}}}), "{tool}");
        }
    }
    let any_of = named(&listed, "page_any_of");
    assert_eq!(
        any_of["inputSchema"]["properties"],
        json!({"id": {"type": "string"}, "name": {"type": "string"}})
    );
    let told = any_of["description"].as_str().expect("a description");
    assert!(told.contains("anyOf") && told.contains(r#""required":["id"]"#), "{told}");
    assert_eq!(world.error("any_of", json!({})).await["kind"], "invalid_arguments");
    assert_eq!(world.result("any_of", json!({"name": "x"})).await["got"], json!({"name": "x"}));
    assert_eq!(world.error("one_of", json!({"a": 1, "b": 2})).await["kind"], "invalid_arguments");
    for tool in ["text", "array", "empty_list", "good_1"] {
        assert_eq!(world.result(tool, json!({})).await["got"], json!({}), "{tool}");
    }
    world.finish().await;
}

/// Latin-1 alone and wider characters take different ways through the browser.
#[tokio::test]
async fn text_beyond_ascii_arrives_unchanged_everywhere() {
    for word in ["größe_é", "日本👩‍👩‍👧_é"] {
        let script = format!(
            r#"
document.title = "{word} title";
offer("plain", (input) => ({{ got: input, answer: "{word}" }}), {{
  title: "{word} tool", description: "About {word}.",
  inputSchema: {{ type: "object", properties: {{ text: {{ type: "string", enum: ["{word}", "x"], description: "The {word}" }} }} }} }});
offer("named", (input) => ({{ "{word}": input["{word}"], keys: Object.keys(input) }}), {{
  inputSchema: {{ type: "object", properties: {{ "{word}": {{ type: "object" }} }}, required: ["{word}"], additionalProperties: false }} }});
offer("says", () => "{word}");
offer("throws", (input) => {{ throw new Error("{word} " + Object.keys(input)); }}, {{ inputSchema: {{}} }});
"#
        );
        let world = World::with_page(&[], &script).await;
        let listed = world.page_tools().await;
        assert_eq!(names(&listed["tools"]), ["named", "plain", "says", "throws"]);
        let plain = named(&listed["tools"], "plain");
        assert_eq!(plain["title"], format!("{word} tool"));
        assert_eq!(plain["description"], format!("About {word}."));
        let text = json!({"type": "string", "enum": [word, "x"], "description": format!("The {word}")});
        assert_eq!(plain["inputSchema"]["properties"]["text"], text);
        let dynamic = json!(world.bridge.tools().await);
        let dynamic = named(&dynamic, "page_plain");
        assert_eq!(dynamic["inputSchema"], plain["inputSchema"]);
        assert!(
            dynamic["description"].as_str().is_some_and(|d| d.starts_with(&format!("About {word}."))),
            "{dynamic}"
        );
        let pages = world.bridge.text("list_pages", json!({})).await;
        assert!(pages.contains(&format!("{word} title")), "{pages}");

        let answer = world.page_call("plain", json!({"text": word})).await;
        let result = json!({"got": {"text": word}, "answer": word});
        assert_eq!(answer["structuredContent"]["result"], result, "{answer:#}");
        assert_eq!(answer["content"][0]["text"], result.to_string(), "{answer:#}");
        assert_eq!(world.error("plain", json!({"text": "y"})).await["kind"], "invalid_arguments");
        assert_eq!(world.result("says", json!({})).await, word);
        let given = json!({word: {word: [word]}});
        let result = world.result("named", given.clone()).await;
        assert_eq!(result, json!({word: {word: [word]}, "keys": [word]}));
        let error = world.error("named", json!({"other": 1})).await;
        assert!(error["message"].as_str().is_some_and(|m| m.contains(word)), "{error:#}");
        let error = world.error("throws", json!({word: 1})).await;
        assert_eq!(error["kind"], "threw", "{error:#}");
        assert!(
            error["message"].as_str().is_some_and(|m| m.ends_with(&format!("Error: {word} {word}"))),
            "{error:#}"
        );
        world.finish().await;
    }
}
