// Runs in an isolated world: its own builtins and prototypes, which the page can neither see nor patch.
async () => {
  const look = {
    origin: self.origin,
    title: document.title,
    secure: self.isSecureContext,
    present: "modelContext" in document,
    tools: [],
  };
  if (look.present) {
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
  }
  return JSON.stringify(look);
}
