//! Gives a control a value, as its kind needs it: typed, chosen, switched or set.

use pagebridge_core::{ErrorKind, Outcome, ToolError, text};
use serde::Deserialize;
use serde_json::json;

use super::keys;
use crate::browser::Browser;
use crate::element::{Element, removed};
use crate::loss;
use crate::page_tools::CallOptions;
use crate::targets::PageId;
use crate::wait::Progress;

const FILL: &str = include_str!("fill.js");
const FILLED: &str = include_str!("filled.js");
/// Characters of an error that lists a select's options.
const OPTIONS_CHARS: usize = 4_000;

/// What `fill.js` says of a control.
#[derive(Debug, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
enum Control {
    Removed,
    Hidden,
    Disabled,
    ReadOnly,
    /// Its focus handler gives the focus away.
    Unfocused,
    /// To be typed into.
    Text {
        #[serde(default)]
        empty: bool,
    },
    /// Set or chosen; what became of the value.
    Set {
        #[serde(default)]
        value: Option<String>,
    },
    /// To be switched by a click.
    Toggle {
        #[serde(rename = "type")]
        kind: String,
        is: bool,
    },
    /// Not of a kind that has a value.
    Unfit {
        what: String,
    },
    /// The value does not fit its type.
    Refused {
        what: String,
    },
    NoOption {
        options: Vec<(String, String)>,
        count: usize,
    },
    OptionDisabled,
}

/// What became of a value.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Filled {
    value: Option<String>,
    is: Option<bool>,
}

impl Browser {
    /// Gives a control a value. What comes back tells where it became another one.
    pub async fn fill(
        &self,
        page: PageId,
        uid: &str,
        value: &str,
        options: &CallOptions,
    ) -> Result<Option<String>, ToolError> {
        let progress = Progress::default();
        let work = async {
            let element = self.element(page, uid).await?;
            // Scrolled into view and ready, as a user would find it; what covers it does not matter to the keyboard.
            let control: Control =
                self.ask(&element, FILL, json!([{"value": value}, {"value": false}])).await?;
            drop(
                element
                    .document
                    .session
                    .call("DOM.scrollIntoViewIfNeeded", json!({"backendNodeId": element.backend})),
            );
            match checked(control, uid)? {
                Control::Toggle { kind, is } => self.toggle(&element, &kind, is, value, &progress).await,
                Control::Text { .. } => self.type_into(&element, value, &progress).await,
                _ => self.set(&element, value, &progress).await,
            }
        };
        Ok(self.act(page, "The filling", options, &progress, work).await?.flatten())
    }

    async fn set(
        &self,
        element: &Element,
        value: &str,
        progress: &Progress,
    ) -> Result<Option<String>, ToolError> {
        progress.done();
        let control: Control = self.ask(element, FILL, json!([{"value": value}, {"value": true}])).await?;
        match checked(control, &element.uid)? {
            Control::Set { value: Some(became) } if became != value => Ok(Some(other_value(&became))),
            _ => Ok(None),
        }
    }

    async fn toggle(
        &self,
        element: &Element,
        kind: &str,
        is: bool,
        value: &str,
        progress: &Progress,
    ) -> Result<Option<String>, ToolError> {
        let wanted = match value {
            "true" => true,
            "false" => false,
            _ => return Err(invalid(format!("A {kind} takes \"true\" or \"false\"; nothing was done."))),
        };
        if wanted == is {
            return Ok(Some(format!("It was {wanted} already.")));
        }
        if kind == "radio" && !wanted {
            let message =
                "A radio button is switched off by switching on another of its group; nothing was done.";
            return Err(invalid(message.into()));
        }
        let at = self.point_of(element).await?;
        self.click_at(element.document.page, at, false, progress).await?;
        let filled: Filled = element.call(FILLED, json!([{"value": value}])).await.unwrap_or_default();
        Ok(filled.is.filter(|is| *is != wanted).map(|is| format!("The page made it {is} again.")))
    }

    async fn type_into(
        &self,
        element: &Element,
        value: &str,
        progress: &Progress,
    ) -> Result<Option<String>, ToolError> {
        progress.begin();
        let control: Control = self.ask(element, FILL, json!([{"value": value}, {"value": true}])).await?;
        let Control::Text { empty } = checked(control, &element.uid)? else { return Ok(None) };
        let page = element.document.page;
        if value.is_empty() && !empty {
            let delete = keys::parse("Delete").map_err(invalid)?;
            self.press(page, &delete, progress).await?;
        } else if !value.is_empty() {
            let typed = element.document.session.call("Input.insertText", json!({"text": value}));
            progress.done();
            typed.await.map_err(|error| loss::tool_error(&error, Outcome::Unknown))?;
        }
        progress.done();
        let filled: Filled = element.call(FILLED, json!([{"value": value}])).await.unwrap_or_default();
        Ok(filled.value.map(|became| other_value(&became)))
    }
}

fn other_value(became: &str) -> String {
    format!("The page made another value of it: {}.", text::quoted(&text::bounded(became, 300)))
}

fn invalid(message: String) -> ToolError {
    ToolError::not_run(ErrorKind::InvalidArguments, message)
}

/// A control that can be filled, or why it cannot.
fn checked(control: Control, uid: &str) -> Result<Control, ToolError> {
    let cannot = |why: &str| {
        let message = format!("Nothing was filled in: the element uid={uid} {why}.");
        ToolError::not_run(ErrorKind::Unsupported, message)
    };
    Err(match control {
        Control::Text { .. } | Control::Set { .. } | Control::Toggle { .. } => return Ok(control),
        Control::Removed => removed(uid),
        Control::Hidden => cannot("is not visible"),
        Control::Disabled => cannot("is disabled"),
        Control::ReadOnly => cannot("is read-only"),
        Control::Unfocused => cannot("does not keep the focus: the page moves it elsewhere"),
        Control::OptionDisabled => cannot("has that option, but it is disabled"),
        Control::Unfit { what } => cannot(&format!(
            "is {}, which takes no value. Text fields, selects, checkboxes, radio buttons and editable elements do",
            text::one_line(&what, 80)
        )),
        Control::Refused { what } => invalid(format!(
            "Nothing was filled in: the value does not fit an input of type {what}. It takes values like {}.",
            example(&what)
        )),
        Control::NoOption { options, count } => invalid(no_option(uid, &options, count)),
    })
}

fn example(kind: &str) -> &'static str {
    match kind {
        "date" => "2026-12-31",
        "time" => "23:59",
        "month" => "2026-12",
        "week" => "2026-W52",
        "datetime-local" => "2026-12-31T23:59",
        "color" => "#ff8800",
        _ => "50",
    }
}

fn no_option(uid: &str, options: &[(String, String)], count: usize) -> String {
    let mut listed = String::new();
    let mut told = 0;
    for (value, label) in options {
        let label = text::quoted(&text::one_line(label, 100));
        let value = text::quoted(&text::one_line(value, 100));
        let option = if label == value { value } else { format!("{label} (value {value})") };
        if listed.len() + option.len() > OPTIONS_CHARS {
            break;
        }
        listed.push_str(if told == 0 { "" } else { ", " });
        listed.push_str(&option);
        told += 1;
    }
    let more = if told < count { format!(", and {} more", count - told) } else { String::new() };
    match count {
        0 => format!("Nothing was chosen: the select uid={uid} has no options."),
        _ => format!("Nothing was chosen: the select uid={uid} has no such option. It has: {listed}{more}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_listed_in_quotes_and_many_are_counted() {
        let options =
            [("1".to_owned(), "One".to_owned()), ("two".into(), "two".into()), ("x\"\n".into(), "X".into())];
        assert_eq!(
            no_option("3_1", &options, 3),
            r#"Nothing was chosen: the select uid=3_1 has no such option. It has: "One" (value "1"), "two", "X" (value "x\"")."#
        );
        let many: Vec<_> = (0..200).map(|n| (format!("{n}{}", "v".repeat(90)), String::new())).collect();
        let text = no_option("3_1", &many, 5_000);
        assert!(text.len() < 4_300 && text.contains(", and 49"), "{text}");
    }
}
