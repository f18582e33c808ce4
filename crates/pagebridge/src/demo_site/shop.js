// What both pages share: the goods, the cart, and the way in which a page offers its tools.

export const PRODUCTS = [
  { sku: "MUG-01", name: "Enamel mug", about: "Holds 350 ml and survives every fall.", category: "kitchen", price: 12.5, rating: 4.6, stock: 40, since: "2025-03-02", tint: "#d9ecef", accent: "#0f6a78" },
  { sku: "TEA-02", name: "Smoked black tea", about: "A tin of 100 g, from a single garden.", category: "kitchen", price: 9.9, rating: 4.2, stock: 25, since: "2025-06-18", tint: "#f0e3d6", accent: "#8a4b2a" },
  { sku: "NBK-03", name: "Dot-grid notebook", about: "160 pages that lie flat.", category: "desk", price: 14, rating: 4.8, stock: 60, since: "2024-11-05", tint: "#e4e6f5", accent: "#4353a4" },
  { sku: "LMP-04", name: "Brass desk lamp", about: "Warm light and a switch that clicks.", category: "desk", price: 79, rating: 4.5, stock: 6, since: "2025-09-12", tint: "#f7ecc9", accent: "#b3801c" },
  { sku: "PEN-05", name: "Fountain pen", about: "A steel nib that forgives.", category: "desk", price: 34, rating: 4.1, stock: 18, since: "2025-01-20", tint: "#f3dfe3", accent: "#a13c55" },
  { sku: "BTL-06", name: "Steel bottle", about: "Keeps tea hot for twelve hours.", category: "trail", price: 28, rating: 4.7, stock: 30, since: "2025-08-01", tint: "#dcebdd", accent: "#33713f" },
  { sku: "MAP-07", name: "Coast path map", about: "Waterproof, at a scale of 1:25 000.", category: "trail", price: 11, rating: 4.9, stock: 3, since: "2025-10-03", tint: "#dbe9f4", accent: "#2a649c" },
  { sku: "BLK-08", name: "Wool blanket", about: "Woven from the wool of island sheep.", category: "trail", price: 95, rating: 4.4, stock: 9, since: "2024-12-11", tint: "#ece4ee", accent: "#74508a" },
];

export const DELIVERY = {
  standard: { label: "Standard", price: 4.5, days: [3, 5] },
  express: { label: "Express", price: 11, days: [1, 2] },
  pickup: { label: "Collect at the harbour", price: 0, days: [1, 1] },
};

export const findProduct = (sku) => PRODUCTS.find((product) => product.sku === sku);
export const money = (amount) => `€${amount.toFixed(2)}`;
const cents = (amount) => Math.round(amount * 100) / 100;
export const byId = (id) => document.getElementById(id);

// An element with properties and children. Text never becomes markup.
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// The tab's memory.
export function recall(key, otherwise) {
  try {
    return JSON.parse(sessionStorage.getItem(`shop.${key}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function remember(key, value) {
  sessionStorage.setItem(`shop.${key}`, JSON.stringify(value));
}

// The cart: how many of each sku.

export function cartSummary() {
  const items = Object.entries(recall("cart", {}))
    .filter(([sku]) => findProduct(sku))
    .map(([sku, quantity]) => {
      const { name, price } = findProduct(sku);
      return { sku, name, quantity, price, subtotal: cents(price * quantity) };
    });
  return { items, total: cents(items.reduce((sum, item) => sum + item.subtotal, 0)), currency: "EUR" };
}

export function putInCart(sku, quantity) {
  const cart = recall("cart", {});
  cart[sku] = (cart[sku] ?? 0) + quantity;
  remember("cart", cart);
  showCart();
}

export function emptyCart() {
  remember("cart", {});
  showCart();
}

export function showCart() {
  const { items, total } = cartSummary();
  const lines = items.map((item) =>
    element("li", {}, element("span", { textContent: `${item.quantity} × ${item.name}` }), element("span", { textContent: money(item.subtotal) })),
  );
  byId("cart").replaceChildren(...(lines.length ? lines : [element("li", { className: "quiet", textContent: "It is empty." })]));
  byId("cart-total").textContent = money(total);
  const count = byId("cart-count");
  if (count) count.textContent = items.reduce((sum, item) => sum + item.quantity, 0);
}

// Tools.

// Offers a tool for as long as the page lives. One that the browser refuses leaves the others alone.
export async function offer(tool) {
  if (!("modelContext" in document)) return;
  const execute = async (input, options) => {
    const result = await tool.execute(input ?? {}, options ?? {});
    note(tool.name, result?.error ? `refused: ${result.error}` : "done");
    return result;
  };
  try {
    await document.modelContext.registerTool({ ...tool, execute });
  } catch (error) {
    console.warn(`The tool ${tool.name} could not be offered.`, error);
  }
}

// Tells a person who looks on what an agent did.
export function note(name, text) {
  const log = byId("activity");
  log.prepend(element("li", {}, element("code", { textContent: name }), ` ${text}`));
  while (log.children.length > 8) log.lastChild.remove();
}

// Answers after some time, or at once with undefined when the call is cancelled. No timer is left behind.
export function wait(milliseconds, signal, answer) {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve(undefined);
    const cancelled = () => {
      clearTimeout(timer);
      resolve(undefined);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", cancelled);
      resolve(answer());
    }, milliseconds);
    signal?.addEventListener("abort", cancelled, { once: true });
  });
}

// A tool that leads to another page answers first and leaves afterwards.
export function leaveFor(path) {
  setTimeout(() => location.assign(path), 50);
  return { opening: new URL(path, location.href).href };
}

export const isText = (value) => typeof value === "string" && value.trim() !== "";

byId("no-webmcp").hidden = "modelContext" in document;
showCart();
addEventListener("pageshow", (event) => event.persisted && showCart());
