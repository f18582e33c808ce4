//! `initialize` (spec: Lifecycle, "Initialization").

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// What the client said about itself. Read leniently: a part of an odd shape counts as missing, because a handshake
/// should not fail over a field that we could do without.
#[derive(Debug, Default)]
pub struct InitializeParams {
    /// The version that the client asks for.
    pub protocol_version: Option<String>,
    /// Who the client is.
    pub client_info: Option<ClientInfo>,
    /// As sent.
    pub capabilities: Option<Box<RawValue>>,
}

/// The client's `clientInfo`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct ClientInfo {
    /// The program's name, for programs.
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// Its name for people.
    #[serde(default)]
    pub title: Option<String>,
}

impl InitializeParams {
    pub(super) fn from_raw(params: Option<&RawValue>) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            #[serde(borrow, default)]
            protocol_version: Option<&'a RawValue>,
            #[serde(borrow, default)]
            client_info: Option<&'a RawValue>,
            #[serde(borrow, default)]
            capabilities: Option<&'a RawValue>,
        }
        let shape: Shape = params.and_then(read).unwrap_or_default();
        Self {
            protocol_version: shape.protocol_version.and_then(read),
            client_info: shape.client_info.and_then(read),
            capabilities: shape.capabilities.map(ToOwned::to_owned),
        }
    }
}

fn read<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// What the server says about itself.
#[derive(Clone, Debug)]
pub struct InitializeResult {
    /// The `capabilities` object.
    pub capabilities: Value,
    /// The `serverInfo` object.
    pub server_info: Value,
    /// How to use this server, for the model.
    pub instructions: Option<String>,
}

impl InitializeResult {
    pub(super) fn to_raw(&self, protocol_version: &str) -> serde_json::Result<Box<RawValue>> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            protocol_version: &'a str,
            capabilities: &'a Value,
            server_info: &'a Value,
            #[serde(skip_serializing_if = "Option::is_none")]
            instructions: Option<&'a str>,
        }
        serde_json::value::to_raw_value(&Shape {
            protocol_version,
            capabilities: &self.capabilities,
            server_info: &self.server_info,
            instructions: self.instructions.as_deref(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(json: &str) -> InitializeParams {
        InitializeParams::from_raw(Some(serde_json::from_str(json).unwrap()))
    }

    #[test]
    fn odd_parts_count_as_missing() {
        let read = params(r#"{"protocolVersion":7,"clientInfo":"me","capabilities":{"z":1,"a":1e400}}"#);
        assert_eq!((read.protocol_version, read.client_info), (None, None));
        assert_eq!(read.capabilities.unwrap().get(), r#"{"z":1,"a":1e400}"#);
        for json in ["null", "[]", "3", "{}"] {
            assert!(params(json).protocol_version.is_none(), "{json}");
        }
    }

    #[test]
    fn the_usual_parts() {
        let json =
            r#"{"protocolVersion":"2025-06-18","clientInfo":{"name":"n","version":"1","title":"N","x":1}}"#;
        let read = params(json);
        let title = Some("N".to_owned());
        assert_eq!(read.protocol_version.as_deref(), Some("2025-06-18"));
        assert_eq!(read.client_info.unwrap(), ClientInfo { name: "n".into(), version: "1".into(), title });
    }
}
