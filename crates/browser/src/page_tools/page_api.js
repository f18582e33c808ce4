// Runs in the page's own world, because only there a polyfill can be reached. Whatever comes back is the page's
// word: plain data, made without JSON, which pages patch. `native` tells whether the browser has WebMCP itself.
(native) => {
  const LEVELS = 60;

  const api = () => {
    const isOwn = Object.getOwnPropertyDescriptor(document, "modelContext") !== undefined;
    if ((isOwn || !native) && document.modelContext) return document.modelContext;
    return navigator.modelContext ?? null;
  };

  const entry = () => {
    const context = api();
    if (typeof context?.getTools === "function" && typeof context.executeTool === "function") {
      return {
        context,
        list: () => context.getTools(),
        run: (tool, input, signal) => context.executeTool(tool, input, { signal }),
      };
    }
    const testing = navigator.modelContextTesting;
    if (typeof testing?.listTools === "function" && typeof testing.executeTool === "function") {
      return { context: testing, list: () => testing.listTools(), run: (tool, input) => testing.executeTool(tool.name, input) };
    }
    return null;
  };

  const plain = (value, level = 0, above = []) => {
    if (value === null || typeof value === "string" || typeof value === "boolean") return value;
    if (typeof value === "number") return value - value === 0 ? value : String(value);
    if (typeof value !== "object") return typeof value === "bigint" ? String(value) : undefined;
    for (const ancestor of above) if (ancestor === value) return "<circular>";
    if (level >= LEVELS) return "<too deep>";
    const inside = [...above, value];
    if (Array.isArray(value)) {
      const items = [];
      for (let i = 0; i < value.length; i++) items[i] = plain(value[i], level + 1, inside) ?? null;
      return items;
    }
    const copy = { __proto__: null };
    for (const key of Object.keys(value)) {
      const member = plain(value[key], level + 1, inside);
      if (member !== undefined) copy[key] = member;
    }
    return copy;
  };

  const described = (tool) => ({
    name: tool.name,
    title: typeof tool.title === "string" ? tool.title : "",
    description: typeof tool.description === "string" ? tool.description : "",
    inputSchema: plain(tool.inputSchema) ?? null,
    annotations: {
      readOnlyHint: tool.annotations?.readOnlyHint === true,
      untrustedContentHint: tool.annotations?.untrustedContentHint === true,
      consequentialHint: tool.annotations?.consequentialHint === true,
      debugging: tool.annotations?.debugging === true,
    },
  });

  return {
    controller: () => new AbortController(),

    async list() {
      const found = entry();
      if (!found) return null;
      const tools = [];
      for (const tool of await found.list()) {
        try {
          if (typeof tool.name === "string") tools[tools.length] = described(tool);
        } catch {
          // One tool that cannot be read does not hide the others.
        }
      }
      return tools;
    },

    // Resolves when the list may have changed. Pages without the event are looked at again after a while.
    changed() {
      const context = entry()?.context;
      return new Promise((resolve) => {
        if (typeof context?.addEventListener === "function") {
          context.addEventListener("toolchange", () => resolve(), { once: true });
        } else {
          setTimeout(resolve, 1000);
        }
      });
    },

    // Generations differ: where the schema is text, so is the input, and one well-known polyfill takes text always.
    // The tool is run once, whatever comes of it.
    async run(name, input, text, controller) {
      try {
        const found = entry();
        if (!found) return { missing: true };
        let tool = null;
        for (const known of await found.list()) if (known.name === name) tool = known;
        if (!tool) return { missing: true };
        const wantsText =
          typeof tool.inputSchema === "string" ||
          found.context.__isWebMCPPolyfill === true ||
          found.context === navigator.modelContextTesting;
        const returned = await found.run(tool, wantsText ? text : input, controller.signal);
        return { value: returned === undefined ? "undefined" : plain(returned) ?? String(returned) };
      } catch (error) {
        return { failure: String(error?.message ?? error) };
      }
    },
  };
}
