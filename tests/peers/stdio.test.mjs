// The official TypeScript SDK as a client of `pagebridge serve` on stdio, with the demo shop in a real browser.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Bridge, demoShop, text, until } from "./bridge.mjs";
import { PROBING, SDKS } from "./sdks.mjs";

const PATIENCE = 60_000;
// A client that closes the connection waits no longer.
const END = 5_000;
const LOCAL = ["list_pages", "new_page", "navigate_page", "select_page", "close_page", "evaluate_script", "page_tools", "page_call", "bridge_info"];
const SHOP = ["page_search_products", "page_add_to_cart", "page_view_cart", "page_read_reviews", "page_estimate_delivery"];
const CHECKOUT = ["page_place_order", "page_choose_delivery"];

const isDynamic = (name) => name.startsWith("page_") && !LOCAL.includes(name);
const includesAll = (names, wanted) => wanted.every((name) => names.includes(name));

let shop;
before(async () => (shop = await demoShop()), { timeout: PATIENCE });
after(async () => assert.equal(await shop?.stop(), 0, "the demo site ends with its input"));

/** `it`, with what the bridge logged when the test fails. */
function step(name, current, body) {
  it(name, { timeout: PATIENCE }, async () => {
    try {
      await body(current());
    } catch (error) {
      error.message += `\n--- the bridge's log ---\n${current()?.stderr()}`;
      throw error;
    }
  });
}

async function endsAndLeavesNothing(bridge) {
  const { code, signal, took } = await bridge.close();
  assert.deepEqual({ code, signal }, { code: 0, signal: null }, "it ended by itself");
  assert.ok(took < END, `it took ${took} ms`);
  await until("no process is left", () => bridge.processes().length === 0, Math.max(500, END - took)).catch((error) => {
    throw new Error(`${error.message}:\n${bridge.processes().join("\n")}`);
  });
}

for (const sdk of SDKS) {
  describe(sdk.label, () => {
    let bridge;
    before(async () => (bridge = await new Bridge(sdk).connect()), { timeout: PATIENCE });
    after(() => bridge?.close());
    const test = (name, body) => step(name, () => bridge, body);

    test("initialize names the server, its capabilities and how to use it", ({ client, wire }) => {
      assert.equal(client.getServerVersion().name, "pagebridge");
      assert.match(client.getServerVersion().version, /^\d+\.\d+\.\d+/);
      assert.equal(client.getServerCapabilities().tools.listChanged, true);
      assert.match(client.getInstructions(), /page_tools/);
      assert.equal(wire[1].received.result.protocolVersion, "2025-11-25");
    });

    test("tools/list has the local tools, and the SDK understands all of it", async (bridge) => {
      const { tools } = await bridge.client.listTools();
      assert.ok(includesAll(tools.map((tool) => tool.name), LOCAL), "all local tools are listed");
      assert.deepEqual(tools.filter((tool) => isDynamic(tool.name)), [], "no page is open");
      understands(bridge, tools);
    });

    test("ping is answered, and no browser runs yet", async (bridge) => {
      assert.deepEqual(await bridge.client.ping(), {});
      const { structuredContent } = await bridge.ok("bridge_info");
      assert.equal(structuredContent.browser.state, "idle");
    });

    test("new_page brings the shop's tools, announced before the result", async (bridge) => {
      const result = await bridge.ok("new_page", { url: shop.url });
      assert.match(text(result), /page_search_products/);
      assert.ok(bridge.announcedBeforeAnswer(bridge.lastCall("new_page")));
      assert.ok(bridge.listChanges > 0, "the SDK told its client");
      const { tools } = await bridge.client.listTools();
      assert.ok(includesAll(tools.map((tool) => tool.name), [...SHOP, ...LOCAL]));
      understands(bridge, tools);
    });

    test("a page tool is called by its own name and by page_call", async (bridge) => {
      const own = await bridge.ok("page_search_products", { query: "tea", sort: "cheapest" });
      const { tool, origin, result } = own.structuredContent;
      assert.deepEqual({ tool, origin }, { tool: "search_products", origin: new URL(shop.url).origin });
      assert.ok(result.products.length > 0 && result.currency === "EUR");
      assert.deepEqual(JSON.parse(text(own)), result, "the text is the same");

      const fixed = await bridge.ok("page_call", { tool: "search_products", arguments: { query: "tea", sort: "cheapest" } });
      assert.deepEqual(fixed.structuredContent, own.structuredContent);

      const [{ sku }] = result.products;
      await bridge.ok("page_add_to_cart", { sku, quantity: 2 });
      const cart = (await bridge.ok("page_call", { tool: "view_cart" })).structuredContent.result;
      assert.deepEqual(cart.items.map((item) => [item.sku, item.quantity]), [[sku, 2]]);
    });

    test("page_tools tells the same tools with their schemas", async (bridge) => {
      const [page] = (await bridge.ok("page_tools")).structuredContent.pages;
      const { tools } = await bridge.client.listTools();
      for (const { exposedName, name, inputSchema } of page.tools) {
        const listed = tools.find((tool) => tool.name === exposedName);
        assert.equal(listed?.title, name);
        assert.deepEqual(listed.inputSchema, inputSchema);
      }
      assert.deepEqual(page.tools.map((tool) => tool.exposedName).sort(), tools.map((tool) => tool.name).filter(isDynamic).sort());
    });

    test("names, arguments and results beyond ASCII come through exactly", async (bridge) => {
      const { tools } = await bridge.client.listTools();
      const card = tools.find((tool) => tool.name === "page_carte_cadeau");
      assert.deepEqual(Object.keys(card.inputSchema.properties), ["prénom", "montant", "thème"]);
      assert.match(card.description, /Prépare une carte cadeau/);
      const { result } = (await bridge.ok("page_carte_cadeau", { prénom: "Zoë 🎁 李雷", thème: "forêt" })).structuredContent;
      assert.deepEqual(result, { carte: "Pour Zoë 🎁 李雷, une carte « forêt »", valeur: 50, validité: "deux années" });
    });

    test("tools that a page adds and removes while it runs are announced", async (bridge) => {
      await bridge.evaluate(addTools);
      await bridge.toldOf("the new tools", (names) => includesAll(names, ["page_echo", "page_hold", "page_short_lived"]));
      await bridge.evaluate(() => window.shortLived.abort());
      await bridge.toldOf("the removal", (names) => !names.includes("page_short_lived") && names.includes("page_echo"));
    });

    test("values of every kind come back as they were sent", async (bridge) => {
      const value = {
        texts: ["", " ", "äöü ß", "e\u0301", "שלום", "日本語", "👩‍👩‍👧 🇪🇺", "\u2028 \u2029 \ufeff", '"\\/\b\f\n\r\t', "\u0000\u001b\u007f", "</script>", "{{x}} ${y}"],
        numbers: [0, -1, 0.1, 1e21, 1.5e-9, Number.MAX_SAFE_INTEGER, Number.MIN_VALUE],
        others: [null, true, false, [], {}, [[[]]]],
        "ключ 🔑": { "": "an empty name", "a.b/c~d": 1, 10: "ten", 9: "nine" },
      };
      for (const result of [await bridge.ok("page_echo", { value }), await bridge.ok("page_call", { tool: "echo", arguments: { value } })]) {
        assert.deepEqual(result.structuredContent.result, { value });
        assert.equal(JSON.stringify(result.structuredContent.result), JSON.stringify({ value }), "in the same order");
      }
      for (const bare of [null, true, 0, -2.5, "für dich", [], [1, "zwei"], {}]) {
        const result = await bridge.ok("page_bare", { value: bare });
        assert.deepEqual(result.structuredContent.result, bare);
        assert.equal(text(result), typeof bare === "string" ? bare : JSON.stringify(bare));
      }
      assert.match(text(await bridge.ok("evaluate_script", { function: "() => null" })), /```json\nnull\n```/);
    });

    test("wrong arguments never reach the page, unknown names are errors of the protocol", async (bridge) => {
      const wrong = await bridge.failure("page_add_to_cart", { sku: "MUG-01", quantity: 0 });
      assert.deepEqual([wrong.kind, wrong.outcome], ["invalid_arguments", "not_run"]);
      assert.match(wrong.text, /quantity/);
      assert.equal((await bridge.failure("new_page", { address: "x" })).kind, "invalid_arguments");
      assert.equal((await bridge.failure("page_call", { tool: "nothing_like_it" })).kind, "not_found");
      await assert.rejects(bridge.call("no_such_tool"), { code: -32602 });
      await assert.rejects(bridge.sdk.request(bridge.client, { method: "no/such_method" }), { code: -32601 });
    });

    test("calls at the same time get their own answers", async (bridge) => {
      const results = await Promise.all(Array.from({ length: 12 }, (_, number) => bridge.ok("page_echo", { value: number })));
      assert.deepEqual(results.map((result) => result.structuredContent.result.value), [...results.keys()]);
    });

    test("a cancelled call reaches the page's signal, is not answered, and holds up nothing", async (bridge) => {
      const controller = new AbortController();
      const slow = bridge.call("page_hold", {}, { signal: controller.signal });
      await until("the tool runs", () => bridge.evaluate(() => window.held === "running"));
      controller.abort(new Error("changed my mind"));
      await assert.rejects(slow);

      const started = performance.now();
      await bridge.ok("page_view_cart");
      const took = performance.now() - started;
      assert.ok(took < 3_000, `the next answer took ${took} ms`);
      await until("the page's signal fires", () => bridge.evaluate(() => window.held === "cancelled"));

      const { id } = bridge.lastCall("page_hold");
      const cancels = bridge.wire.filter(({ sent }) => sent?.method === "notifications/cancelled");
      assert.deepEqual(cancels.map(({ sent }) => sent.params.requestId), [id]);
      await sleep(300);
      assert.equal(bridge.answer(id), undefined);
    });

    test("the shop's slow tool can be cancelled and called again", async (bridge) => {
      const delivery = () => bridge.evaluate(() => document.getElementById("delivery").textContent);
      const idle = await delivery();
      const controller = new AbortController();
      const estimate = bridge.call("page_call", { tool: "estimate_delivery", arguments: { postcode: "10115" } }, { signal: controller.signal });
      await until("the shop asks its carrier", async () => (await delivery()) !== idle);
      controller.abort();
      await assert.rejects(estimate);
      await until("the shop gives up", async () => (await delivery()) === idle);
      const { result } = (await bridge.ok("page_estimate_delivery", { postcode: "10115" })).structuredContent;
      assert.equal(result.postcode, "10115");
    });

    test("a progress token is accepted", async (bridge) => {
      const reports = [];
      const onprogress = (report) => reports.push(report);
      const result = await bridge.ok("page_estimate_delivery", { postcode: "20095" }, { onprogress });
      assert.equal(result.structuredContent.result.postcode, "20095");
      const { params } = bridge.lastCall("page_estimate_delivery");
      assert.notEqual(params._meta.progressToken, undefined, "the SDK sent a token");
      assert.ok(reports.every((report) => report.progress > 0));
    });

    test("navigate_page changes the set, announced before the result", async (bridge) => {
      const result = await bridge.ok("navigate_page", { url: new URL("checkout", shop.url).href });
      assert.match(text(result), /page_place_order/);
      assert.ok(bridge.announcedBeforeAnswer(bridge.lastCall("navigate_page")));
      const names = await bridge.names();
      assert.ok(includesAll(names, [...CHECKOUT, ...LOCAL]));
      assert.ok(!names.some((name) => SHOP.includes(name) || name === "page_echo"), `still there: ${names}`);
      assert.equal(new Set(names).size, names.length, "each name once");
    });

    test("a tool with consequences is refused, because nobody can be asked", async (bridge) => {
      for (const [name, args] of [["page_place_order", {}], ["page_call", { tool: "place_order" }]]) {
        const { kind, outcome } = await bridge.failure(name, args);
        assert.deepEqual({ kind, outcome }, { kind: "confirmation_unavailable", outcome: "not_run" });
      }
      assert.equal(await bridge.evaluate(() => document.getElementById("outcome").textContent), "");
    });

    test("a call that leads elsewhere tells so, and the set changes back", async (bridge) => {
      const { structuredContent } = await bridge.ok("page_back_to_shop");
      assert.equal(structuredContent.result.opening, shop.url);
      await bridge.toldOf("the shop's tools", (names) => includesAll(names, SHOP));
      const { result } = (await bridge.ok("page_view_cart")).structuredContent;
      assert.equal(result.items[0].quantity, 2, "it is the same tab");
    });

    test("nothing came that the SDK could not read", (bridge) => assert.doesNotMatch(bridge.stderr(), /the SDK complains/));

    test("closing the client ends the bridge and its browser", async (bridge) => {
      if (process.platform === "linux") assert.ok(bridge.processes().length > 2, "the browser's processes carry the mark");
      await endsAndLeavesNothing(bridge);
    });
  });

  describe(`${sdk.label}: a client that goes away`, () => {
    let bridge;
    before(async () => (bridge = await new Bridge(sdk).connect()), { timeout: PATIENCE });
    after(() => bridge?.close());

    step("during a call, it leaves nothing", () => bridge, async (bridge) => {
      await bridge.ok("new_page", { url: shop.url });
      await bridge.evaluate(addTools);
      // It may still be answered, with a failure, or it may be lost with the connection.
      const outcome = bridge.call("page_call", { tool: "hold" }).then((result) => result.isError, () => true);
      await until("the tool runs", () => bridge.evaluate(() => window.held === "running"));
      await endsAndLeavesNothing(bridge);
      assert.equal(await outcome, true);
    });
  });
}

describe("a call that takes long", () => {
  let bridge;
  before(async () => (bridge = await new Bridge(SDKS[0]).connect()), { timeout: PATIENCE });
  after(() => bridge?.close());

  step("reports progress to a client that gave a token", () => bridge, async (bridge) => {
    const reports = [];
    const options = { onprogress: (report) => reports.push(report) };
    await bridge.ok("new_page", { url: shop.url });
    const waits = () => new Promise((resolve) => setTimeout(resolve, 10_800, "awake"));
    await bridge.ok("evaluate_script", { function: String(waits) }, options);
    assert.equal(reports.length, 1);
    assert.ok(reports[0].progress >= 10 && /still running/.test(reports[0].message));
  });
});

describe(PROBING.label, () => {
  let bridge;
  before(async () => (bridge = await new Bridge(PROBING).connect()), { timeout: PATIENCE });
  after(() => bridge?.close());

  step("finds a bridge of the legacy era and works with it", () => bridge, async (bridge) => {
    assert.equal(bridge.client.getNegotiatedProtocolVersion(), "2025-11-25");
    assert.ok(includesAll(await bridge.names(), LOCAL));
    await endsAndLeavesNothing(bridge);
  });
});

/** Nothing of a list is unknown to the SDK, and its validator can use every schema. */
function understands({ wire, sdk }, tools) {
  const raw = wire.findLast(({ received }) => received?.result?.tools).received.result.tools;
  assert.deepEqual(tools, raw, "the SDK's schemas keep every field");
  const validator = new sdk.Validator();
  for (const { name, description, inputSchema, annotations } of tools) {
    assert.match(name, /^[A-Za-z0-9_-]{1,64}$/, "models' interfaces accept the name");
    assert.ok(description, `${name} has a description`);
    assert.equal(typeof annotations.title, "string", `${name} has a title`);
    const validate = validator.getValidator(inputSchema);
    assert.equal(validate("no object").valid, false, `${name} takes an object`);
    const required = (inputSchema.required ?? []).length > 0;
    assert.equal(validate({}).valid, !required, `${name}: nothing is ${required ? "not " : ""}enough`);
  }
}

/** Runs in the page: gives it an echo, a tool that never ends by itself, and one that can be taken back. */
async function addTools() {
  const inputSchema = { type: "object", properties: { value: { description: "Anything." } } };
  const description = "For a test.";
  window.shortLived = new AbortController();
  const { modelContext } = document;
  await modelContext.registerTool({ name: "echo", description, inputSchema, execute: (input) => input });
  await modelContext.registerTool({ name: "bare", description, inputSchema, execute: (input) => input.value });
  await modelContext.registerTool({
    name: "hold",
    description,
    inputSchema: { type: "object", properties: {} },
    execute: (_, { signal }) =>
      new Promise((resolve) => {
        window.held = "running";
        signal.addEventListener("abort", () => {
          window.held = "cancelled";
          resolve("cancelled");
        });
      }),
  });
  await modelContext.registerTool(
    { name: "short_lived", description, inputSchema: { type: "object", properties: {} }, execute: () => "here" },
    { signal: window.shortLived.signal },
  );
}
