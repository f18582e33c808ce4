// Runs in our isolated world. Keeps an AbortController where only this world can reach it, so that a later
// call can cancel the run. `prepared` marks the world of the one document that the tool belongs to: a command that
// is carried over to the frame's next document finds no mark there and does nothing.
async (name, input, token) => {
  if (!globalThis.prepared?.delete(token)) return { missing: true };
  const running = (globalThis.running ??= new Map());
  const controller = new AbortController();
  running.set(token, controller);
  try {
    const tools = await document.modelContext.getTools();
    const tool = tools.find((tool) => tool.name === name && tool.window === window);
    if (!tool) return { missing: true };
    return { returned: await document.modelContext.executeTool(tool, JSON.parse(input), { signal: controller.signal }) };
  } catch (error) {
    return { failure: `${error.name}: ${error.message}` };
  } finally {
    running.delete(token);
  }
}
