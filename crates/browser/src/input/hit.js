// Whether a click that lands on `hit` reaches this node: `null` if it does, else what is in the way.
function (hit) {
  const element = (node) => (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement ?? node.getRootNode().host ?? null);
  const up = (node) => node.assignedSlot ?? node.parentElement ?? node.getRootNode().host ?? null;
  const target = element(this);
  const first = element(hit);
  if (target === null || first === null) return null;
  for (let node = first; node !== null; node = up(node)) {
    if (node === target) return null;
    if (node instanceof HTMLLabelElement && node.control === target) return null;
  }
  // What a closed shadow root shows in its slots does not tell of them.
  const root = target.getRootNode();
  if (root instanceof ShadowRoot && root.mode === "closed" && root.host !== first && root.host.contains(first)) return null;
  if (first.contains(target) && getComputedStyle(target).pointerEvents === "none") return null;
  const text = first.getAttribute("aria-label") ?? first.innerText ?? first.textContent ?? "";
  return { tag: first.localName, id: first.getAttribute("id") ?? "", text: text.trim().slice(0, 200) };
}
