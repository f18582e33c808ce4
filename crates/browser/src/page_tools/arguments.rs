//! Arguments against a page's schema. Chromium checks nothing and applies no default, so we do both.
//!
//! The schema is the page's: it may name any draft, hold broken parts or patterns that explode. Nothing is
//! fetched, patterns run in linear time, and what cannot be used is left out and told.

use jsonschema::{Draft, PatternOptions, Retrieve, Uri, Validator};
use serde_json::{Map, Value};

use pagebridge_core::schema::admits_objects;
use pagebridge_core::text;

/// Most mistakes that are listed at once.
const MISTAKES: usize = 20;
const MISTAKE_CHARS: usize = 300;

/// Arguments as the page gets them, or everything that is wrong with them.
pub fn check(
    schema: Option<&Value>,
    arguments: &Map<String, Value>,
) -> Result<Map<String, Value>, Vec<String>> {
    let Some(schema) = schema.filter(|schema| admits_objects(schema)) else { return Ok(arguments.clone()) };
    let mut filled = Value::Object(arguments.clone());
    apply_defaults(schema, &mut filled);
    let mistakes = match compile(schema) {
        Some(validator) => mistakes(&validator, &filled),
        None => Vec::new(),
    };
    match filled {
        Value::Object(filled) if mistakes.is_empty() => Ok(filled),
        _ => Err(mistakes),
    }
}

fn mistakes(validator: &Validator, arguments: &Value) -> Vec<String> {
    let mut found: Vec<String> = validator
        .iter_errors(arguments)
        .map(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() { "arguments".to_owned() } else { place };
            text::one_line(&format!("{place}: {error}"), MISTAKE_CHARS)
        })
        .take(MISTAKES + 1)
        .collect();
    if found.len() > MISTAKES {
        found[MISTAKES] = "and more".into();
    }
    found
}

/// The validator of a schema; broken patterns are left out rather than the whole schema. `None` when the
/// schema cannot be used at all: then the page's own code is the judge, as it is in the browser.
fn compile(schema: &Value) -> Option<Validator> {
    let mut usable = schema.clone();
    let draft = take_draft(&mut usable);
    build(&usable, draft)
        .or_else(|| {
            drop_patterns(&mut usable);
            build(&usable, draft)
        })
        .or_else(|| {
            tracing::debug!("a page's schema cannot be used; arguments are passed on unchecked");
            None
        })
}

fn build(schema: &Value, draft: Draft) -> Option<Validator> {
    jsonschema::options()
        .with_draft(draft)
        .with_pattern_options(PatternOptions::regex())
        .with_retriever(Nowhere)
        .should_ignore_unknown_formats(true)
        .should_validate_formats(false)
        .build(schema)
        .ok()
}

/// References lead nowhere but into the schema itself.
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("schemas are not fetched".into())
    }
}

/// The draft that a schema names, 2020-12 where it names none or one that we do not know.
fn take_draft(schema: &mut Value) -> Draft {
    let named = schema.as_object_mut().and_then(|object| object.shift_remove("$schema"));
    let named = named.as_ref().and_then(Value::as_str).unwrap_or_default();
    match () {
        () if named.contains("draft-04") => Draft::Draft4,
        () if named.contains("draft-06") => Draft::Draft6,
        () if named.contains("draft-07") => Draft::Draft7,
        () if named.contains("2019-09") => Draft::Draft201909,
        () => Draft::Draft202012,
    }
}

fn drop_patterns(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("pattern").is_some_and(Value::is_string) {
                object.shift_remove("pattern");
            }
            if object.get("patternProperties").is_some_and(Value::is_object) {
                object.shift_remove("patternProperties");
            }
            object.values_mut().for_each(drop_patterns);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_patterns),
        _ => {}
    }
}

/// Fills in `default`s of properties that are absent, at every depth that the arguments have.
fn apply_defaults(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(object) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            for (name, property) in properties {
                let default = property.get("default").filter(|_| !object.contains_key(name));
                if let Some(default) = default {
                    object.insert(name.clone(), default.clone());
                } else if let Some(present) = object.get_mut(name) {
                    apply_defaults(property, present);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            items.iter_mut().for_each(|item| apply_defaults(schema, item));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;

    fn run(schema: Value, arguments: Value) -> Result<Value, Vec<String>> {
        check(Some(&schema), arguments.as_object().unwrap()).map(Value::Object)
    }

    #[test]
    fn all_mistakes_are_listed_with_their_places() {
        let schema = json!({"type": "object", "required": ["größe", "n"], "additionalProperties": false,
            "properties": {"größe": {"type": "string"}, "n": {"type": "integer", "minimum": 1},
                "deep": {"properties": {"e": {"enum": ["a", "b"]}}}}});
        let mistakes = run(schema, json!({"n": 0, "deep": {"e": "c"}, "extra": 1})).unwrap_err();
        assert_eq!(mistakes.len(), 4, "{mistakes:?}");
        let all = mistakes.join("\n");
        for part in ["größe", "/n: 0 is less than the minimum of 1", "/deep/e", "extra"] {
            assert!(all.contains(part), "{part} is missing in {all}");
        }
    }

    #[test]
    fn defaults_fill_what_is_absent_at_every_depth() {
        let schema = json!({"properties": {"a": {"default": 1}, "b": {"properties": {"c": {"default": "x"}}},
            "l": {"items": {"properties": {"d": {"default": null}}}}}});
        let filled = run(schema, json!({"b": {}, "l": [{}, {"d": 2}]})).unwrap();
        assert_eq!(filled, json!({"b": {"c": "x"}, "l": [{"d": null}, {"d": 2}], "a": 1}));
    }

    #[test]
    fn every_draft_is_understood_and_unknown_ones_do_not_matter() {
        for draft in [
            "http://json-schema.org/draft-04/schema#",
            "http://json-schema.org/draft-06/schema#",
            "http://json-schema.org/draft-07/schema#",
            "https://json-schema.org/draft/2019-09/schema",
            "https://json-schema.org/draft/2020-12/schema",
            "https://example.com/my-own",
        ] {
            let schema =
                json!({"$schema": draft, "properties": {"a": {"type": "number", "format": "made-up"}}});
            assert!(run(schema.clone(), json!({"a": 1})).is_ok(), "{draft}");
            assert!(run(schema, json!({"a": "1"})).is_err(), "{draft}");
        }
        let tuple = json!({"properties": {"t": {"prefixItems": [{"type": "string"}]}}});
        assert!(run(tuple, json!({"t": [1]})).is_err());
    }

    #[test]
    fn patterns_run_in_linear_time_and_broken_parts_cost_only_themselves() {
        let evil = json!({"properties": {"s": {"type": "string", "pattern": "^(a+)+$"}}});
        let started = Instant::now();
        assert!(run(evil, json!({"s": format!("{}!", "a".repeat(50_000))})).is_err());
        assert!(started.elapsed().as_secs() < 5);
        let look_ahead = json!({"properties": {"s": {"pattern": "^(?=x)"}, "n": {"type": "number"}}});
        assert!(run(look_ahead.clone(), json!({"s": "y", "n": 1})).is_ok());
        assert!(run(look_ahead, json!({"n": "1"})).is_err(), "the rest of the schema still counts");
    }

    #[test]
    fn nothing_is_fetched_and_unusable_schemas_check_nothing() {
        for schema in [
            json!({"$ref": "http://127.0.0.1:1/schema"}),
            json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
            json!({"type": "string"}),
            json!({"type": 7}),
            json!([]),
            json!("text"),
        ] {
            assert!(run(schema.clone(), json!({"a": 1})).is_ok(), "{schema}");
        }
    }

    #[test]
    fn references_into_the_schema_are_followed() {
        let schema = json!({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {"type": "number"}}}}});
        assert!(run(schema, json!({"a": "1"})).is_err());
    }
}
