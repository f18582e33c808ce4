// `pagebridge serve` and `pagebridge demo --site` as child processes of a test.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const BINARY = process.env.PAGEBRIDGE_BIN || fileURLToPath(new URL("../../target/debug/pagebridge", import.meta.url));
if (!existsSync(BINARY)) throw new Error(`${BINARY} is not there: build it with \`cargo build -p pagebridge\`, or set PAGEBRIDGE_BIN.`);

// XDG_* variables reach the browser, so everything that a bridge starts can be found by its mark.
const MARK = "XDG_PAGEBRIDGE_TEST_MARK";
// What a machine may need so that the browser is found and starts; nothing else of ours reaches the bridge.
const PASSED_ON = ["PAGEBRIDGE_EXECUTABLE_PATH", "PAGEBRIDGE_NO_SANDBOX", "PLAYWRIGHT_BROWSERS_PATH", "TMPDIR", "LANG"];
const LIST_CHANGED = "notifications/tools/list_changed";

export const text = (result) => result.content.filter((block) => block.type === "text").map((block) => block.text).join("\n");

/** Waits until `check` gives something true, and gives that. */
export async function until(what, check, patience = 20_000) {
  const end = performance.now() + patience;
  for (;;) {
    const found = await check();
    if (found) return found;
    if (performance.now() > end) throw new Error(`${what}: not within ${patience} ms`);
    await sleep(20);
  }
}

/** A bridge with a client of an SDK that is connected to it. */
export class Bridge {
  /** Everything on the wire, in order: {sent: message} or {received: message}. */
  wire = [];
  /** How often the SDK told its client of a new list. */
  listChanges = 0;
  #stderr = "";
  #fetchedAt = 0;
  #mark = randomUUID();
  #workspace = mkdtempSync(join(tmpdir(), "pagebridge-peer-"));

  constructor(sdk) {
    this.sdk = sdk;
    const isRoot = process.getuid?.() === 0;
    const passed = PASSED_ON.filter((name) => process.env[name] !== undefined).map((name) => [name, process.env[name]]);
    this.transport = new sdk.Transport({
      command: BINARY,
      args: ["serve", ...(isRoot ? ["--no-sandbox"] : []), "--workspace", this.#workspace],
      env: { ...Object.fromEntries(passed), [MARK]: this.#mark },
      stderr: "pipe",
    });
    this.transport.stderr.on("data", (chunk) => (this.#stderr += chunk));
    this.transport.onmessage = (received) => this.wire.push({ received });
    const send = this.transport.send.bind(this.transport);
    this.transport.send = (sent, ...more) => {
      this.wire.push({ sent });
      return send(sent, ...more);
    };
    this.client = sdk.client();
    this.client.onerror = (error) => (this.#stderr += `the SDK complains: ${error}\n`);
  }

  async connect() {
    await this.client.connect(this.transport);
    this.sdk.onListChanged(this.client, () => void this.listChanges++);
    // Private in the types only. The exit status cannot be had in another way.
    this.child = this.transport._process;
    return this;
  }

  /** Calls a tool, whatever comes of it. */
  call(name, args = {}, options = undefined) {
    return this.sdk.callTool(this.client, { name, arguments: args }, options);
  }

  /** Calls a tool that must not fail. */
  async ok(name, args, options) {
    const result = await this.call(name, args, options);
    if (result.isError) throw new Error(`${name} ${JSON.stringify(args)} failed: ${JSON.stringify(result)}`);
    return result;
  }

  /** Calls a tool that must fail, and gives the error of its `structuredContent`. */
  async failure(name, args) {
    const result = await this.call(name, args);
    if (!result.isError) throw new Error(`${name} ${JSON.stringify(args)} did not fail: ${JSON.stringify(result)}`);
    return { ...result.structuredContent.error, text: text(result) };
  }

  async names() {
    this.#fetchedAt = this.listChanges;
    return (await this.client.listTools()).tools.map((tool) => tool.name);
  }

  /** Waits until the list is as it should be. It is fetched only when the bridge says that it changed. */
  async toldOf(what, isRight) {
    let names = [];
    const told = async () => {
      if (this.listChanges === this.#fetchedAt) return false;
      names = await this.names();
      return isRight(names);
    };
    await until(what, told).catch((error) => Promise.reject(new Error(`${error.message}. The last list: ${names.join(", ")}`)));
  }

  /** Runs a function in the page and gives what it returns. */
  async evaluate(fn) {
    // In a list, so that there is JSON for functions that return nothing, too.
    const said = text(await this.ok("evaluate_script", { function: `async () => [await (${fn})()]` }));
    return JSON.parse(said.slice(said.indexOf("```json") + 7, said.lastIndexOf("```")))[0];
  }

  /** The request of the last call of a tool. */
  lastCall(name) {
    return this.wire.findLast(({ sent }) => sent?.method === "tools/call" && sent.params.name === name).sent;
  }

  /** The answer to a request, as it was on the wire, and its place there. */
  answer(id) {
    const place = this.wire.findIndex(({ received }) => received && !received.method && received.id === id);
    return place < 0 ? undefined : { place, message: this.wire[place].received };
  }

  /** Whether a new list was announced after this request was sent and before it was answered. */
  announcedBeforeAnswer(request) {
    const from = this.wire.findIndex(({ sent }) => sent === request);
    const between = this.wire.slice(from, this.answer(request.id).place);
    return between.some(({ received }) => received?.method === LIST_CHANGED);
  }

  /** The processes that carry this bridge's mark, the bridge included; none where there is no /proc. */
  processes() {
    const entry = `${MARK}=${this.#mark}`;
    return readProc((pid) => {
      if (!readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(entry)) return undefined;
      const state = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)[0];
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      return "ZX".includes(state) ? undefined : `${pid} [${state}] ${command.slice(0, 120)}`;
    });
  }

  /** Closes the client. Gives how the bridge ended and after how many milliseconds. */
  async close() {
    const started = performance.now();
    const { child } = this;
    const ended = child && child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined;
    await this.client.close();
    await ended;
    rmSync(this.#workspace, { recursive: true, force: true });
    return { code: child?.exitCode, signal: child?.signalCode, took: performance.now() - started };
  }

  /** What to print when a test fails. */
  stderr() {
    return this.#stderr.slice(-4_000);
  }
}

function readProc(look) {
  if (process.platform !== "linux") return [];
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      return look(pid) ?? [];
    } catch {
      return []; // It ended meanwhile, or belongs to somebody else.
    }
  });
}

/** Serves the demo shop. Gives its address and a function that ends it. */
export async function demoShop() {
  const child = spawn(BINARY, ["demo", "--site"], { stdio: ["pipe", "pipe", "inherit"] });
  const exit = once(child, "exit");
  const lines = createInterface({ input: child.stdout });
  const [url] = await Promise.race([
    once(lines, "line"),
    exit.then(([code, signal]) => Promise.reject(new Error(`the demo site ended early: ${code ?? signal}`))),
  ]);
  const stop = async () => {
    child.stdin.end();
    const [code, signal] = await exit;
    return code ?? signal;
  };
  return { url, stop };
}
