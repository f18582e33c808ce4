// How large a document is, counted no further than needed. Prototypes are named because a page's elements can hide the
// members of `document`.
(mostNodes, longText) => {
  const walk = (root) => Document.prototype.createTreeWalker.call(document, root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  const size = { nodes: 0, text: 0, longest: 0 };
  const roots = [document];
  while (roots.length > 0) {
    const walker = walk(roots.pop());
    while (walker.nextNode()) {
      const node = walker.currentNode;
      size.nodes += 1;
      const length = node.nodeType === Node.TEXT_NODE ? node.length : node instanceof HTMLTextAreaElement ? node.textLength : 0;
      size.text += length;
      if (length > size.longest) size.longest = length;
      if (node.shadowRoot) roots.push(node.shadowRoot);
      if (size.nodes > mostNodes || size.longest > longText) return size;
    }
  }
  return size;
}
