// Brings the labs of a page to life: their controls, and screen.js over a stand-in for JupyterLab's model.
import screen from "./screen.js";

const LOADING = "The lab is coming to life, once its Python is here. Move it already: what you do is kept.";
const FAILED = "This lab could not come to life here, so its picture stays as it is. ";
const places = new Map();
let worker;

// What screen.js knows of a widget: values that change, and somebody to send to.
class Model {
  #values; #heard = []; #send;
  constructor(values, send) { this.#values = values; this.#send = send; }
  get(name) { return this.#values[name]; }
  on(events, then) { this.#heard.push([events.split(" "), then]); }
  send(content, callbacks) { this.#send(content, () => callbacks?.iopub.status({ content: { execution_state: "idle" } })); }
  set(values) {
    const changed = Object.keys(values).filter((name) => name in this.#values && values[name] !== this.#values[name]);
    Object.assign(this.#values, values);
    const events = changed.map((name) => `change:${name}`);
    for (const [of, then] of this.#heard) if (of.some((event) => events.includes(event))) then();
  }
}

// One for each kind of control: `show(state)`, and `move({ field: value })` when the reader moves it.
function control(part, move) {
  const name = part.dataset.field, say = (value) => move({ [name]: value });
  const [slider, text, select, output] = ["input[type=range]", "input[type=text]", "select", "output"].map((kind) => part.querySelector(kind));
  const ticks = [...part.querySelectorAll("input[type=checkbox]")], buttons = [...part.querySelectorAll("button")];
  if (part.matches(".sizes")) return sizes(part, say);
  if (part.matches(".size") && slider) return size(part, say);
  if (text) {
    text.addEventListener("input", () => say(text.value));
    return ({ value }) => put(text, value);
  }
  if (select) {
    select.addEventListener("input", () => say(select.value));
    return ({ value }) => { select.value = value; };
  }
  if (part.matches(".tick")) {
    ticks[0].addEventListener("input", () => say(ticks[0].checked));
    return ({ value }) => { ticks[0].checked = value; };
  }
  if (ticks.length) {
    part.addEventListener("input", () => say(ticks.filter((tick) => tick.checked).map((tick) => tick.value)));
    return ({ value }) => ticks.forEach((tick) => { tick.checked = value.includes(tick.value); });
  }
  if (buttons.length) {
    const show = ({ value }) => buttons.forEach((button) => button.setAttribute("aria-pressed", button.value === value));
    for (const button of buttons) button.addEventListener("click", () => { show(button); say(button.value); });
    return show;
  }
  const options = slider.dataset.options && JSON.parse(slider.dataset.options);
  const tell = () => {
    output.textContent = options ? options[slider.value] : slider.value;
    slider.setAttribute("aria-valuetext", output.textContent);
  };
  slider.addEventListener("input", () => { tell(); say(options ? options[slider.value] : Number(slider.value)); });
  tell();
  return ({ value, end }) => {
    if (end !== undefined) slider.max = end;
    slider.value = options ? options.indexOf(value) : value;
    tell();
  };
}

// What is typed stays as it is typed, for as long as it means the same.
function put(text, value) {
  if (text.value !== String(value)) text.value = value;
}

// A slider in powers of two and a field beside it; the slider stays where it is while the field has no number.
function size(part, say) {
  const slider = part.querySelector("input[type=range]"), text = part.querySelector("input[type=text]");
  const show = ({ value }) => {
    const number = Number(String(value).replace(/^2 *(\^|\*\*) *(\d+)$/, (_, __, power) => 2 ** power).replace(/[,_]/g, ""));
    put(text, value);
    if (number >= 1) slider.value = Math.log2(number);
    slider.setAttribute("aria-valuetext", value);
  };
  slider.addEventListener("input", () => { const value = Math.round(2 ** slider.value); put(text, value); say(value); });
  text.addEventListener("input", () => say(text.value));
  show({ value: text.value });
  return show;
}

function sizes(part, say) {
  const parts = [...part.children];
  let now = { value: {}, names: [] };
  const shows = parts.map((one, place) => size(one, (value) => { now.value = { ...now.value, [now.names[place]]: value }; say(now.value); }));
  return (state) => {
    now = { names: now.names, ...state };
    parts.forEach((one, place) => {
      const name = now.names[place];
      one.hidden = name === undefined;
      if (one.hidden) return;
      one.querySelector("label").textContent = name;
      one.querySelector("input[type=text]").setAttribute("aria-label", `${name}, typed`);
      shows[place]({ value: now.value[name] ?? 4 });
    });
  };
}

function begin(place) {
  const name = place.dataset.lab, rows = place.querySelector(".rows"), note = place.querySelector(".course-note");
  const still = place.querySelector(".course-screen"), stop = place.querySelector("[data-step]");
  const queue = []; // what is still to be asked: what the page was sent, `then`, when it is answered
  let asked = null, stopping = false;

  // A movement that nobody has seen yet gives way to the next one of the same control.
  function ask(message, then = () => {}) {
    const last = queue.at(-1), [key] = Object.keys(message.set ?? {});
    if (key && last?.message.set && Object.keys(last.message.set)[0] === key) queue.pop();
    queue.push({ message, then });
    next();
  }
  function next() {
    if (asked || !queue.length) return;
    asked = queue.shift();
    worker.postMessage({ lab: name, message: asked.message });
  }

  const shown = { name: place.getAttribute("aria-label"), svg: still.querySelector(".course-picture").innerHTML, meaning: still.querySelector(".course-meaning").textContent };
  const model = new Model({ mistake: "", table: [], report: "", failed: false, progress: -1, ...shown }, (content, then) => ask(content, then));
  const own = document.createElement("div");
  still.replaceWith(own);
  screen.render({ model, el: own });

  const controls = [...place.querySelectorAll("[data-field]")].map((part) => [part, control(part, (said) => ask({ set: said }))]);
  for (const what of ["preset", "act", "start"]) {
    for (const button of place.querySelectorAll(`[data-${what}]`)) button.addEventListener("click", () => ask({ [what]: button.dataset[what] }));
  }
  stop?.addEventListener("click", () => { stopping = true; });

  // What is still to be played has moved its control already.
  function show({ fields, running, ...values }) {
    model.set(values);
    const ahead = new Set(queue.flatMap(({ message }) => Object.keys(message.set ?? {})));
    for (const [part, set] of controls) {
      part.hidden = !fields[part.dataset.field].asked;
      if (!ahead.has(part.dataset.field)) set(fields[part.dataset.field]);
    }
    for (const button of place.querySelectorAll("[data-start]")) button.disabled = running;
    if (stop) stop.disabled = !running;
    if (running) ask({ step: stopping });
    stopping = false;
  }

  rows.hidden = false;
  note.textContent = LOADING;
  ask(JSON.parse(place.dataset.begun));
  return {
    answer(answer) {
      const { then } = asked;
      asked = null;
      note.hidden = place.dataset.alive = true;
      show(answer);
      then();
      next();
    },
    fail(reason) {
      rows.hidden = true;
      note.hidden = false;
      note.textContent = FAILED;
      const how = note.appendChild(document.createElement("a"));
      [how.href, how.textContent] = ["index.html#kernel", "In JupyterLab it moves"];
      note.append(`. (${reason.trim().split("\n").at(-1).slice(0, 200)})`);
    },
  };
}

try {
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data: { lab, answer, failure } }) => (failure ? places.get(lab).fail(failure) : places.get(lab).answer(answer));
  worker.onerror = (event) => places.forEach((place) => place.fail(event.message ?? "its worker did not start"));
  for (const place of document.querySelectorAll("[data-lab]")) places.set(place.dataset.lab, begin(place));
} catch (error) {
  places.forEach((place) => place.fail(String(error)));
}
