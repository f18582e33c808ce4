// The official TypeScript SDK, in the generations that clients use. Each is brought to the same few verbs.

import * as v1 from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { EmptyResultSchema, ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { AjvJsonSchemaValidator as ValidatorV1 } from "@modelcontextprotocol/sdk/validation/ajv";
import * as v2 from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { AjvJsonSchemaValidator as ValidatorV2 } from "@modelcontextprotocol/client/validators/ajv";

const WHO = { name: "pagebridge-peer-test", version: "1.0.0" };

const second = {
  Transport: StdioV2,
  Validator: ValidatorV2,
  callTool: (client, params, options) => client.callTool(params, options),
  request: (client, request) => client.request(request, v2.specTypeSchemas.EmptyResult),
  onListChanged: (client, listener) => client.setNotificationHandler("notifications/tools/list_changed", listener),
};

export const SDKS = [
  {
    label: "@modelcontextprotocol/sdk 1.x",
    Transport: StdioV1,
    Validator: ValidatorV1,
    client: () => new v1.Client(WHO),
    callTool: (client, params, options) => client.callTool(params, undefined, options),
    request: (client, request) => client.request(request, EmptyResultSchema),
    onListChanged: (client, listener) => client.setNotificationHandler(ToolListChangedNotificationSchema, listener),
  },
  { ...second, label: "@modelcontextprotocol/client 2.x", client: () => new v2.Client(WHO) },
];

// Asks for the newest revision first, with a request that older servers do not know.
export const PROBING = {
  ...second,
  label: "@modelcontextprotocol/client 2.x, which probes for the modern era",
  client: () => new v2.Client(WHO, { versionNegotiation: { mode: "auto" } }),
};
