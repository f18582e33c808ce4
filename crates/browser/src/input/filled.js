// After typing or clicking: tells the page that a typed value is final, and us what became of it.
function (wanted) {
  let control = this.nodeType === Node.ELEMENT_NODE ? this : this.parentElement ?? this.getRootNode().host ?? null;
  if (control instanceof HTMLLabelElement && control.control) control = control.control;
  if (control === null || !control.isConnected) return {};
  if (control instanceof HTMLInputElement && ["checkbox", "radio"].includes(control.type)) return { is: control.checked };
  if (control.hasAttribute("aria-checked")) return { is: control.getAttribute("aria-checked") === "true" };
  if (!(control instanceof HTMLInputElement || control instanceof HTMLTextAreaElement)) return {};
  control.dispatchEvent(new Event("change", { bubbles: true }));
  if (control.type === "password" || control.value === wanted.replace(/\r\n?/g, "\n")) return {};
  return { value: control.value.slice(0, 1000) };
}
