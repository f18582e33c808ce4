//! Input schemas that a page wrote, in the form that every MCP client accepts.
//!
//! Hosts and model APIs want an object schema without unions or references at the top; one tool that offends
//! can make a host drop the whole list. What is lost in the stricter form is told in the description.

use serde_json::{Map, Value, json};

use crate::limits::{DESCRIPTION_CHARS, SCHEMA_BYTES};
use crate::text;

/// A schema fit to be listed.
#[derive(Debug, Clone, PartialEq)]
pub struct Exposed {
    /// Always an object schema.
    pub schema: Value,
    /// What a reader must know because the page's own schema says it and this one cannot.
    pub note: Option<String>,
}

/// Keywords that combine schemas; at the top level many clients refuse them.
const UNIONS: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// The listed form of a page's schema.
pub fn exposed(schema: Option<&Value>) -> Exposed {
    let Some(Value::Object(declared)) = schema else { return Exposed { schema: empty(), note: None } };
    if let Some(note) = refusal(declared) {
        return Exposed { schema: empty(), note: Some(note) };
    }
    let mut object = follow_reference(declared);
    object.shift_remove("$schema");
    object.insert("type".into(), json!("object"));
    let mut notes = Vec::new();
    for keyword in UNIONS {
        if let Some(parts) = object.shift_remove(keyword) {
            merge_properties(&mut object, &parts);
            notes.push(format!("Arguments must also satisfy {keyword}: {}", short_json(&parts)));
        }
    }
    let mut schema = Value::Object(object);
    clean_texts(&mut schema);
    Exposed { schema, note: (!notes.is_empty()).then(|| notes.join(" ")) }
}

/// Whether arguments can be checked against the schema at all: a tool is always called with an object.
pub fn admits_objects(schema: &Value) -> bool {
    match schema.get("type") {
        None => schema.is_object(),
        Some(Value::String(one)) => one == "object",
        Some(Value::Array(several)) => several.iter().any(|one| one == "object"),
        Some(_) => false,
    }
}

fn empty() -> Value {
    json!({"type": "object"})
}

fn refusal(declared: &Map<String, Value>) -> Option<String> {
    let as_value = Value::Object(declared.clone());
    let bytes = as_value.to_string().len();
    if bytes > SCHEMA_BYTES {
        return Some(format!(
            "The page's schema has {bytes} bytes and is not shown; arguments are checked against it."
        ));
    }
    (!admits_objects(&as_value)).then(|| {
        "The page's schema allows no object, which is all that a tool can be called with; arguments are not checked.".into()
    })
}

/// Replaces a local reference at the top by what it points to (a few steps: references may form a ring).
fn follow_reference(declared: &Map<String, Value>) -> Map<String, Value> {
    let root = Value::Object(declared.clone());
    let mut object = declared.clone();
    for _ in 0..8 {
        let Some(Value::String(reference)) = object.shift_remove("$ref") else { break };
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        let Some(Value::Object(target)) = target else { break };
        for (key, value) in target {
            object.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    object.shift_remove("$ref");
    object
}

/// Shows the properties of a union's members, so that a caller knows what can be given.
fn merge_properties(object: &mut Map<String, Value>, parts: &Value) {
    let members = parts.as_array().into_iter().flatten();
    let found: Vec<(String, Value)> = members
        .filter_map(|part| part.get("properties")?.as_object())
        .flat_map(|properties| properties.clone())
        .collect();
    if found.is_empty() {
        return;
    }
    let properties = object.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        for (name, schema) in found {
            properties.entry(name).or_insert(schema);
        }
    }
}

fn short_json(value: &Value) -> String {
    text::one_line(&value.to_string(), DESCRIPTION_CHARS / 2)
}

/// Bounds and cleans what the page wrote for readers. Values that arguments are compared with stay exact.
fn clean_texts(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for (key, value) in object.iter_mut() {
                match (key.as_str(), &mut *value) {
                    ("description" | "title" | "$comment", Value::String(written)) => {
                        *written = text::bounded(written, DESCRIPTION_CHARS);
                    }
                    ("default" | "const" | "enum" | "examples", _) => {}
                    _ => clean_texts(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(clean_texts),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exposed_schema_is_an_object_without_unions_on_top() {
        for schema in [
            json!(null),
            json!([]),
            json!({}),
            json!({"type": "string"}),
            json!({"type": ["object", "null"]}),
            json!({"properties": {"a": {"type": "string"}}}),
            json!({"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}),
            json!({"oneOf": [{"type": "object"}], "allOf": [true]}),
            json!({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {}}, "required": ["a"]}}}),
            json!({"$ref": "#"}),
            json!({"$ref": "https://evil.test/schema"}),
            json!({"description": "x".repeat(20_000)}),
        ] {
            let exposed = exposed(Some(&schema)).schema;
            assert_eq!(exposed["type"], "object", "{schema}");
            for keyword in ["anyOf", "oneOf", "allOf", "$ref"] {
                assert!(exposed.get(keyword).is_none(), "{schema} keeps {keyword}");
            }
        }
    }

    #[test]
    fn what_is_lost_is_told() {
        let union =
            exposed(Some(&json!({"anyOf": [{"required": ["a"], "properties": {"a": {"type": "number"}}}]})));
        assert_eq!(union.schema["properties"]["a"]["type"], "number");
        assert!(union.note.unwrap().contains(r#""required":["a"]"#));
        assert!(exposed(Some(&json!({"type": "string"}))).note.unwrap().contains("not checked"));
        assert!(exposed(None).note.is_none());
    }

    #[test]
    fn a_good_schema_passes_unchanged_and_keeps_its_order() {
        let schema = json!({"type": "object", "properties": {"größe": {"type": ["string", "null"], "enum": ["é", null]},
            "a": {"enum": [1, 2, null]}}, "required": ["größe"], "additionalProperties": false});
        let exposed = exposed(Some(&schema));
        assert_eq!(exposed.schema.to_string(), schema.to_string());
        assert_eq!(exposed.note, None);
    }

    #[test]
    fn texts_are_cleaned_and_values_are_not() {
        let schema = json!({"type": "object", "properties": {"a": {"description": "x\u{202e}y", "enum": ["x\u{202e}y"]}}});
        let exposed = exposed(Some(&schema)).schema;
        assert_eq!(exposed["properties"]["a"]["description"], "xy");
        assert_eq!(exposed["properties"]["a"]["enum"][0], "x\u{202e}y");
    }
}
