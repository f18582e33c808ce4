// Which of these texts this document shows; `null` if none. Members are taken from prototypes, because a page's elements can
// hide those of `document` and of forms.
(texts) => {
  const tidy = (text) => text.replace(/\s+/g, " ");
  const wanted = texts.map((text) => tidy(text).trim());
  const root = Object.getOwnPropertyDescriptor(Document.prototype, "documentElement").get.call(document);
  if (root === null) return null;
  const found = (text) => { const tidied = tidy(text ?? ""); return wanted.findIndex((one) => tidied.includes(one)); };
  const isVisible = (element) => Element.prototype.checkVisibility.call(element, { visibilityProperty: true });
  const attribute = (element, name) => Element.prototype.getAttribute.call(element, name);
  const inside = (scope) => {
    for (const part of scope instanceof ShadowRoot ? scope.children : [scope]) {
      const at = part instanceof HTMLElement && isVisible(part) ? found(part.innerText) : -1;
      if (at >= 0) return at;
    }
    // What is seen or heard without being text.
    for (const element of scope.querySelectorAll("input, textarea, [aria-label], [alt], [placeholder], [title]")) {
      const labels = ["aria-label", "alt", "placeholder", "title"].map((name) => attribute(element, name));
      const value = ("value" in element && element.type !== "password" && element.type !== "hidden") ? String(element.value) : "";
      const at = found([...labels, value].filter(Boolean).join("\n"));
      if (at >= 0 && isVisible(element)) return at;
    }
    return -1;
  };
  const scopes = [root];
  while (scopes.length > 0) {
    const scope = scopes.pop();
    const at = inside(scope);
    if (at >= 0) return at;
    for (const element of scope.querySelectorAll("*")) if (element.shadowRoot) scopes.push(element.shadowRoot);
  }
  return null;
}
