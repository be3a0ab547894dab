// The controls of a lab, made of parts as engine/labs/control_parts.py has them. Their names stay as
// they are in each language, because the text around a lab quotes them.
import { translated } from "./words.js";

const LETTER_PX = 8;
const FONT_PX = 13; // of a field, for which Python's widths are; on a phone its letters are larger
// Between two steps of a slider that moves by itself, and from its first step to its last if it has
// few. The same as in engine/labs/controls.py.
const PLAY_MS = 150;
const PLAY_IN_ALL_MS = 4500;
let fields = 0; // how many fields have a label, and so an id

export function make(tag, attributes = {}, ...inside) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...inside);
  return node;
}

// The field with its label. The two belong together by the field's id.
function labelled(words, field) {
  fields += 1;
  field.id = `field-${fields}`;
  return [make("label", { for: field.id }, words), field];
}

// Buttons or fields with a name that is read aloud before them.
const group = (name, ...nodes) =>
  make("div", { role: "group", "aria-label": name }, make("span", {}, name), ...nodes);

function makeButton(attributes, words, click) {
  const button = make("button", { type: "button", ...attributes }, words);
  button.addEventListener("click", click);
  return button;
}

const isPressed = (button) => button.getAttribute("aria-pressed") === "true";
const press = (button, pressed) => button.setAttribute("aria-pressed", pressed);

// An element that calls `onInput` with itself whenever the reader changes it.
function field(tag, attributes, onInput) {
  const node = make(tag, attributes);
  node.addEventListener("input", () => onInput(node));
  return node;
}

function textField(attributes, onInput) {
  const all = { type: "text", autocomplete: "off", ...attributes };
  return field("input", all, ({ value }) => onInput(value));
}

// Set the text of a field, but leave alone what the reader has typed if it is the same text.
function put(text, value) {
  if (text.value !== String(value)) text.value = value;
}

// How each kind of part is made: from the part as Python has it, and from `onMove`, which is called
// with the value to which the reader has moved the part. Each function returns the nodes for the
// page, and a function that shows a later state of the part, as Python has it.
const KINDS = {
  text({ label, placeholder, width_px }, onMove) {
    const width = width_px - LETTER_PX * (label.length + 2); // the label stands beside it
    const text = textField({ placeholder, style: `width: ${width}px` }, onMove);
    const show = ({ value }) => put(text, value);
    return [labelled(label, text), show];
  },

  typed(_, onMove) {
    const text = textField({ class: "typed" }, onMove);
    const show = ({ label, value }) => {
      put(text, value);
      text.setAttribute("aria-label", translated("{name}, typed", { name: label }));
    };
    return [[text], show];
  },

  // In place of the words that the slider beside it would show. What is typed is sent once the
  // reader presses Enter or leaves the field.
  readout({ width_px }, onMove) {
    const text = make("input", { type: "text", autocomplete: "off", class: "readout" });
    text.style.width = `${width_px / FONT_PX}em`;
    text.addEventListener("change", () => onMove(text.value));
    const show = ({ label, value }) => {
      put(text, value);
      text.setAttribute("aria-label", translated("{name}, typed", { name: label }));
    };
    return [[text], show];
  },

  tick({ label }, onMove) {
    const box = field("input", { type: "checkbox" }, ({ checked }) => onMove(checked));
    const show = ({ value }) => { box.checked = value; };
    return [[make("label", {}, box, ` ${label}`)], show];
  },

  // The button Show. Its name says what the next press does, so it is not called pressed as well.
  toggle(_, onMove) {
    let isShown = false;
    const show = ({ value }) => {
      isShown = value;
      button.textContent = isShown ? translated("Hide") : translated("Show");
    };
    const button = makeButton({}, "", () => {
      show({ value: !isShown });
      onMove(isShown);
    });
    return [[button], show];
  },

  // Moves the slider beside it to its end. From the end it begins anew.
  play({ label, step }) {
    let clock;
    const slider = () => button.parentElement.querySelector("input[type=range]");
    const moveTo = (value) => {
      slider().value = value;
      slider().dispatchEvent(new Event("input"));
    };
    const isAtEnd = () => Number(slider().value) >= Number(slider().max);
    const stop = () => {
      clearInterval(clock);
      press(button, false);
    };
    const start = () => {
      if (isAtEnd()) moveTo(slider().min);
      press(button, true);
      const steps = (slider().max - slider().min) / step;
      const stepMs = Math.max(PLAY_MS, PLAY_IN_ALL_MS / steps);
      clock = setInterval(() => {
        moveTo(Number(slider().value) + step);
        if (isAtEnd()) stop();
      }, stepMs);
    };
    const name = translated("Play {name}", { name: label });
    const attributes = { "aria-label": name, "aria-pressed": false };
    const button = makeButton(attributes, "▶", () => (isPressed(button) ? stop() : start()));
    return [[button], () => {}];
  },

  menu({ label, options }, onMove) {
    const menu = field("select", {}, ({ value }) => onMove(value));
    menu.append(...options.map((option) => make("option", {}, option)));
    const show = ({ value }) => { menu.value = value; };
    return [labelled(label, menu), show];
  },

  buttons({ label, options }, onMove) {
    const choose = (option) => {
      show({ value: option });
      onMove(option);
    };
    const buttons = options.map((option) => makeButton({}, option, () => choose(option)));
    const show = ({ value }) => {
      for (const button of buttons) press(button, button.textContent === value);
    };
    return [[group(label, ...buttons)], show];
  },

  // A slider of numbers, or of options.
  slider({ label, least, step, options, width_px }, onMove) {
    const hasOptions = options.length > 0;
    const width = hasOptions ? width_px : width_px / 2;
    // As wide as its longest option, so that nothing behind it moves while the slider does.
    const longest = Math.max(0, ...options.map((option) => option.length));
    const output = make("output", { style: `min-width: ${longest}ch` });
    const valueOf = ({ value }) => (hasOptions ? options[value] : Number(value));
    const showValue = () => {
      output.textContent = valueOf(slider);
      slider.setAttribute("aria-valuetext", valueOf(slider));
    };
    const attributes = { type: "range", min: least, step, style: `width: ${width}px` };
    const slider = field("input", attributes, () => {
      showValue();
      onMove(valueOf(slider));
    });
    const show = ({ value, most }) => {
      slider.max = hasOptions ? options.length - 1 : most;
      slider.value = hasOptions ? options.indexOf(value) : value;
      showValue();
    };
    return [[...labelled(label, slider), output], show];
  },

  // A slider in powers of two, with a field for the number beside it. While that field has no
  // number, the slider stays where it is.
  powers({ label, least, most, step }, onMove) {
    const number = () => slider.nextElementSibling;
    const setValueText = () => slider.setAttribute("aria-valuetext", number().value);
    const attributes = { type: "range", min: least, max: most, step, style: "width: 130px" };
    const slider = field("input", attributes, () => {
      put(number(), Math.round(2 ** slider.value));
      setValueText();
      onMove(Number(slider.value));
    });
    const [name] = labelled(label, slider);
    const show = (part) => {
      name.textContent = part.label;
      if (part.value !== null) slider.value = part.value;
      queueMicrotask(setValueText); // after the field beside it shows its own value
    };
    return [[name, slider], show];
  },
};

// Kinds of parts that stand beside the part before them, which is a slider.
const STANDS_BESIDE = ["typed", "readout", "play"];

// A control, and a function that shows a later state of its parts, as Python has them. `move` is
// called with the index of the part that was moved, and with the value to which it was moved.
export function control(parts, heading, move) {
  const groups = [];
  const shows = [];
  parts.forEach((part, place) => {
    const [nodes, show] = KINDS[part.kind](part, (to) => move(place, to));
    if (STANDS_BESIDE.includes(part.kind)) groups.at(-1).append(...nodes);
    else groups.push(make("div", { class: "part" }, ...nodes));
    const around = groups.at(-1);
    if (part.kind === "readout") around.querySelector("output").hidden = true;
    shows.push((now) => {
      around.hidden = now.hidden;
      show(now);
    });
  });
  const inside = heading ? [group(heading, ...groups)] : groups;
  const node = make("div", { class: "control" }, ...inside);
  const showAll = (now) => {
    node.hidden = now.every(({ hidden }) => hidden);
    now.forEach((part, place) => shows[place](part));
  };
  showAll(parts);
  return [node, showAll];
}
