// What keeps a user from acting on this node now, if anything. Waits for a frame to be drawn, so that what moves is seen.
async function () {
  const element = this.nodeType === Node.ELEMENT_NODE ? this : this.parentElement ?? this.getRootNode().host ?? null;
  if (!this.isConnected) return { state: "removed" };
  if (element === null) return { state: "ready" };
  const place = () => { const { x, y, width, height } = element.getBoundingClientRect(); return [x, y, width, height].join(); };
  const before = place();
  // A hidden page draws no frames.
  await new Promise((done) => { requestAnimationFrame(done); setTimeout(done, 50); });
  if (!this.isConnected) return { state: "removed" };
  if (element instanceof HTMLOptionElement) return { state: "option" };
  if (!element.checkVisibility({ visibilityProperty: true })) return { state: "hidden" };
  if (Element.prototype.matches.call(element, ":disabled")) return { state: "disabled" };
  return { state: place() === before ? "ready" : "moving", hidden: document.hidden === true };
}
