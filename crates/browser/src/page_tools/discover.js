// Runs in an isolated world: its own builtins and prototypes, which the page can neither see nor patch.
async (...otherOrigins) => {
  const look = {
    origin: self.origin,
    title: document.title,
    secure: self.isSecureContext,
    present: "modelContext" in document,
    tools: [],
    exposed: [],
  };
  if (!look.present) return JSON.stringify(look);
  try {
    for (const tool of await document.modelContext.getTools()) {
      // Tools of other frames are asked for in their own frame, where their document is known.
      if (tool.window !== window) continue;
      const { name, title, description, inputSchema, annotations } = tool;
      look.tools.push({ name, title, description, inputSchema, annotations });
    }
  } catch (error) {
    look.failure = `${error.name}: ${error.message}`;
  }
  // What frames of other origins expose to this one. An origin that the browser refuses to ask for exposes nothing.
  for (const origin of otherOrigins) {
    try {
      const tools = await document.modelContext.getTools({ fromOrigins: [origin] });
      for (const tool of tools) if (tool.origin === origin) look.exposed.push([origin, tool.name]);
    } catch {
      continue;
    }
  }
  return JSON.stringify(look);
}
