// The controls of a lab, made of parts as engine/labs/control_parts.py has them.

const LETTER_PX = 8;
const PLAY_MS = 150; // between two steps of a slider that moves by itself
let made = 0; // so many fields have a label

export function make(tag, attributes = {}, ...inside) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...inside);
  return node;
}

function labelled(words, field) {
  field.id = `field-${made += 1}`;
  return [make("label", { for: field.id }, words), field];
}

function field(tag, attributes, say) {
  const node = make(tag, attributes);
  node.addEventListener("input", () => say(node));
  return node;
}

function typed(say, attributes) {
  return field("input", { type: "text", autocomplete: "off", ...attributes }, ({ value }) => say(value));
}

// What is typed stays as it is typed, for as long as it means the same.
function put(text, value) {
  if (text.value !== String(value)) text.value = value;
}

// By kind: what stands in the page, and a function that shows what Python says of the part; `say` is told where the
// reader has moved it.
const KINDS = {
  text({ label, placeholder, width_px }, say) {
    const text = typed(say, { placeholder, style: `width: ${width_px - LETTER_PX * (label.length + 2)}px` });
    return [labelled(label, text), ({ value }) => put(text, value)];
  },
  typed(_, say) {
    const text = typed(say, { class: "typed" });
    return [[text], ({ label, value }) => { put(text, value); text.setAttribute("aria-label", `${label}, typed`); }];
  },
  tick({ label }, say) {
    const box = field("input", { type: "checkbox" }, ({ checked }) => say(checked));
    return [[make("label", {}, box, ` ${label}`)], ({ value }) => { box.checked = value; }];
  },
  toggle({ label }, say) {
    const button = make("button", { type: "button" }, label);
    button.addEventListener("click", () => { show({ value: button.getAttribute("aria-pressed") !== "true" }); say(button.getAttribute("aria-pressed") === "true"); });
    const show = ({ value }) => button.setAttribute("aria-pressed", value);
    return [[button], show];
  },
  // Moves the slider beside it to its end, and begins anew there.
  play({ label, step }) {
    const button = make("button", { type: "button", "aria-label": `Play ${label}`, "aria-pressed": false }, "▶");
    let clock;
    const slider = () => button.parentElement.querySelector("input[type=range]");
    const to = (value) => { slider().value = value; slider().dispatchEvent(new Event("input")); };
    const stop = () => { clearInterval(clock); button.setAttribute("aria-pressed", false); };
    button.addEventListener("click", () => {
      if (button.getAttribute("aria-pressed") === "true") { stop(); return; }
      const { value, max, min } = slider();
      if (Number(value) === Number(max)) to(min);
      button.setAttribute("aria-pressed", true);
      clock = setInterval(() => {
        to(Number(slider().value) + step);
        if (Number(slider().value) >= Number(slider().max)) stop();
      }, PLAY_MS);
    });
    return [[button], () => {}];
  },
  menu({ label, options }, say) {
    const menu = field("select", {}, ({ value }) => say(value));
    menu.append(...options.map((option) => make("option", {}, option)));
    return [labelled(label, menu), ({ value }) => { menu.value = value; }];
  },
  buttons({ label, options }, say) {
    const buttons = options.map((option) => make("button", { type: "button" }, option));
    const show = ({ value }) => buttons.forEach((button) => button.setAttribute("aria-pressed", button.textContent === value));
    for (const button of buttons) button.addEventListener("click", () => { show({ value: button.textContent }); say(button.textContent); });
    return [[make("div", { role: "group", "aria-label": label }, make("span", {}, label), ...buttons)], show];
  },
  slider({ label, least, step, options, width_px }, say) {
    const at = (slider) => (options.length ? options[slider.value] : Number(slider.value));
    const output = make("output");
    const tell = () => { output.textContent = at(slider); slider.setAttribute("aria-valuetext", at(slider)); };
    const width = options.length ? width_px : width_px / 2;
    const slider = field("input", { type: "range", min: least, step, style: `width: ${width}px` }, () => { tell(); say(at(slider)); });
    const show = ({ value, most }) => {
      slider.max = options.length ? options.length - 1 : most;
      slider.value = options.length ? options.indexOf(value) : value;
      tell();
    };
    return [[...labelled(label, slider), output], show];
  },
  // In powers of two, with a field beside it; it stays where it is while that has no number.
  powers({ label, least, most, step }, say) {
    const text = () => slider.nextElementSibling;
    const tell = () => slider.setAttribute("aria-valuetext", text().value);
    const slider = field("input", { type: "range", min: least, max: most, step, style: "width: 130px" }, () => {
      put(text(), Math.round(2 ** slider.value));
      tell();
      say(Number(slider.value));
    });
    const nodes = labelled(label, slider);
    const show = (part) => {
      nodes[0].textContent = part.label;
      if (part.value !== null) slider.value = part.value;
      queueMicrotask(tell); // once the field beside it shows its own
    };
    return [nodes, show];
  },
};

// A control, and a function that shows what Python says of its parts; `move` is told of the part that was moved.
export function control(parts, heading, move) {
  const groups = [], shows = [];
  parts.forEach((part, place) => {
    const [nodes, show] = KINDS[part.kind](part, (to) => move(place, to));
    if (part.kind === "typed" || part.kind === "play") groups.at(-1).append(...nodes); // beside its slider
    else groups.push(make("div", { class: "part" }, ...nodes));
    const group = groups.at(-1);
    shows.push((now) => { group.hidden = now.hidden; show(now); });
  });
  const inside = heading ? [make("div", { role: "group", "aria-label": heading }, make("span", {}, heading), ...groups)] : groups;
  const node = make("div", { class: "control" }, ...inside);
  const show = (now) => {
    node.hidden = now.every(({ hidden }) => hidden);
    now.forEach((part, place) => shows[place](part));
  };
  show(parts);
  return [node, show];
}
