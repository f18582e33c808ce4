// Looks at the control that this node is and, with `act`, gives it a value as far as that is done without typing.
// Built-in setters of this world are used: a page that replaces its own cannot notice, and frameworks that watch theirs
// see a changed value.
function (value, act) {
  let control = this.nodeType === Node.ELEMENT_NODE ? this : this.parentElement ?? this.getRootNode().host ?? null;
  if (!this.isConnected || control === null) return { state: "removed" };
  if (control instanceof HTMLLabelElement && control.control) control = control.control;
  const fire = (...types) => {
    for (const type of types) control.dispatchEvent(new Event(type, { bubbles: true, composed: type === "input" }));
  };
  if (!control.checkVisibility({ visibilityProperty: true })) return { state: "hidden" };
  if (Element.prototype.matches.call(control, ":disabled")) return { state: "disabled" };
  if (control instanceof HTMLSelectElement) return choose();
  const role = control.getAttribute("role");
  if (control instanceof HTMLInputElement) {
    const type = control.type;
    if (type === "checkbox" || type === "radio") return { state: "toggle", type, is: control.checked };
    if (["file", "button", "submit", "reset", "image", "hidden"].includes(type)) return { state: "unfit", what: `an input of type ${type}` };
    if (control.readOnly) return { state: "readonly" };
    if (["date", "time", "month", "week", "datetime-local", "color", "range"].includes(type)) return set(type);
    return focus();
  }
  if (control instanceof HTMLTextAreaElement) return control.readOnly ? { state: "readonly" } : focus();
  if (control.isContentEditable) return focus();
  if (["checkbox", "switch", "radio", "menuitemcheckbox"].includes(role)) return { state: "toggle", type: role, is: control.getAttribute("aria-checked") === "true" };
  return { state: "unfit", what: `a <${control.localName}>` };

  function focus() {
    if (!act) return { state: "text" };
    control.focus();
    const has = (root) => root.activeElement === control || root.activeElement?.contains(control);
    if (!has(control.getRootNode())) return { state: "unfocused" };
    if (control.select) {
      control.select();
    } else {
      const range = new Range();
      range.selectNodeContents(control);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }
    return { state: "text", empty: (control.value ?? control.textContent) === "" };
  }

  function set(type) {
    if (!act) return { state: "set" };
    const before = control.value;
    control.value = value;
    const after = control.value;
    const refused = type === "color" ? after.toLowerCase() !== value.toLowerCase() : type === "range" ? Number.isNaN(Number(value)) || value.trim() === "" : after === "" && value !== "";
    if (refused) {
      control.value = before;
      return { state: "refused", what: type };
    }
    if (after !== before) fire("input", "change");
    return { state: "set", value: control.value };
  }

  function choose() {
    const tidy = (text) => text.replace(/\s+/g, " ").trim();
    const options = Array.from(control.options);
    const label = (option) => tidy(option.label || option.text);
    const wanted =
      options.find((option) => option.value === value) ??
      options.find((option) => label(option) === tidy(value)) ??
      options.find((option) => label(option).toLowerCase() === tidy(value).toLowerCase());
    if (wanted === undefined) {
      const shown = options.slice(0, 200).map((option) => [option.value.slice(0, 200), label(option).slice(0, 200)]);
      return { state: "nooption", options: shown, count: options.length };
    }
    if (wanted.disabled || wanted.parentElement instanceof HTMLOptGroupElement && wanted.parentElement.disabled) return { state: "optiondisabled" };
    if (!act) return { state: "set" };
    const before = options.map((option) => option.selected).join();
    control.focus();
    for (const option of options) if (control.multiple || option === wanted) option.selected = option === wanted;
    if (options.map((option) => option.selected).join() !== before) fire("input", "change");
    return { state: "set" };
  }
}
