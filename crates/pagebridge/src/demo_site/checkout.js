// The checkout and its tools.

import {
  DELIVERY, byId, cartSummary, element, emptyCart, isText, leaveFor, money, offer, recall, remember,
} from "/shop.js";

const FIELDS = ["name", "street", "postcode", "city"];

// The order so far: {address?, delivery?}
const draft = () => recall("draft", {});
const change = (part) => remember("draft", { ...draft(), ...part });

function show() {
  const { address, delivery } = draft();
  for (const field of FIELDS) byId(field).value = address?.[field] ?? "";
  for (const choice of document.querySelectorAll("#methods input")) choice.checked = choice.value === delivery;
}

function setAddress(address) {
  change({ address });
  show();
}

function setDelivery(delivery) {
  change({ delivery });
  show();
}

function placeOrder() {
  const { address, delivery } = draft();
  const { items, total, currency } = cartSummary();
  const missing = [!items.length && "something in the cart", !address && "an address", !delivery && "a way of delivery"].filter(Boolean);
  if (missing.length) return { error: `The order still lacks ${missing.join(" and ")}.`, missing };
  const number = `HG-${Date.now().toString(36).toUpperCase()}`;
  const order = { number, items, delivery, total: Math.round((total + DELIVERY[delivery].price) * 100) / 100, currency, to: address };
  emptyCart();
  remember("draft", {});
  show();
  return order;
}

function tell(order) {
  byId("outcome").textContent = order.error ?? `Thank you. Your order ${order.number} comes to ${money(order.total)}.`;
  return order;
}

// What a person does.

for (const [value, { label, price }] of Object.entries(DELIVERY)) {
  const input = element("input", { type: "radio", name: "delivery", value, onchange: () => setDelivery(value) });
  byId("methods").append(element("label", { className: "choice" }, input, label, element("span", { textContent: money(price) })));
}
byId("address").addEventListener("submit", (event) => {
  event.preventDefault();
  setAddress(Object.fromEntries(new FormData(event.target)));
});
byId("order").addEventListener("click", () => tell(placeOrder()));
show();

// What an agent can do.

offer({
  name: "set_shipping_address",
  title: "Set the address",
  description: "Fills in where the order should go. Use before the order is placed, and to correct an address.",
  inputSchema: {
    type: "object",
    properties: {
      name: { type: "string", description: "Who receives the order." },
      street: { type: "string", description: "Street and number." },
      postcode: { type: "string", description: "Postal code of the place." },
      city: { type: "string", description: "The place." },
    },
    required: FIELDS,
  },
  execute(input) {
    const missing = FIELDS.filter((field) => !isText(input[field]));
    if (missing.length) return { error: "The address is incomplete.", missing };
    const address = Object.fromEntries(FIELDS.map((field) => [field, input[field].trim()]));
    setAddress(address);
    return { address };
  },
});

offer({
  name: "choose_delivery",
  title: "Choose the delivery",
  description: "Decides how the order travels.",
  inputSchema: {
    type: "object",
    properties: { method: { type: "string", enum: Object.keys(DELIVERY), description: "The way it travels." } },
    required: ["method"],
  },
  execute({ method }) {
    if (!Object.hasOwn(DELIVERY, method)) return { error: "Nothing travels that way.", methods: Object.keys(DELIVERY) };
    setDelivery(method);
    const { label, price, days: [earliest, latest] } = DELIVERY[method];
    return { method, label, price, currency: "EUR", days: { earliest, latest } };
  },
});

offer({
  name: "place_order",
  title: "Place the order",
  description: "Buys what is in the cart. Use only when the user has agreed to the purchase.",
  inputSchema: { type: "object", properties: {} },
  annotations: { consequentialHint: true },
  execute: () => tell(placeOrder()),
});

offer({
  name: "back_to_shop",
  title: "Back to the shop",
  description: "Leads back to the catalogue. The cart and what was filled in are kept.",
  inputSchema: { type: "object", properties: {} },
  execute: () => leaveFor("/"),
});
