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

// What the reader sees and moves of a part of a control, by its kind: `say` is told of a movement, and what is
// returned shows what Python says of the part.
const PARTS = {
  text(field, say) {
    field.addEventListener("input", () => say(field.value));
    return ({ value }) => put(field, value);
  },
  typed(field, say) {
    const show = PARTS.text(field, say);
    return (part) => { show(part); field.setAttribute("aria-label", `${part.label}, typed`); };
  },
  tick(box, say) {
    box.addEventListener("input", () => say(box.checked));
    return ({ value }) => { box.checked = value; };
  },
  menu(menu, say) {
    menu.addEventListener("input", () => say(menu.value));
    return ({ value }) => { menu.value = value; };
  },
  buttons(group, say) {
    const buttons = group.querySelectorAll("button");
    const show = ({ value }) => buttons.forEach((button) => button.setAttribute("aria-pressed", button.value === value));
    for (const button of buttons) button.addEventListener("click", () => { show(button); say(button.value); });
    return show;
  },
  slider(slider, say) {
    const output = slider.nextElementSibling, options = slider.dataset.options && JSON.parse(slider.dataset.options);
    const tell = () => {
      output.textContent = options ? options[slider.value] : slider.value;
      slider.setAttribute("aria-valuetext", output.textContent);
    };
    slider.addEventListener("input", () => { tell(); say(options ? options[slider.value] : Number(slider.value)); });
    tell();
    return ({ value, most }) => {
      if (!options) slider.max = most;
      slider.value = options ? options.indexOf(value) : value;
      tell();
    };
  },
  // In powers of two; it stays where it is while the field beside it has no number.
  powers(slider, say) {
    const name = slider.previousElementSibling, field = slider.nextElementSibling;
    const tell = () => slider.setAttribute("aria-valuetext", field.value);
    slider.addEventListener("input", () => { put(field, Math.round(2 ** slider.value)); tell(); say(Number(slider.value)); });
    field.addEventListener("input", tell);
    tell();
    return ({ value, label }) => {
      name.textContent = label;
      if (value !== null) slider.value = value;
      queueMicrotask(tell); // once the field beside it shows its own
    };
  },
};

// What is typed stays as it is typed, for as long as it means the same.
function put(field, value) {
  if (field.value !== String(value)) field.value = value;
}

// A control, which shows all its parts; `move` is told which one the reader has moved, and where to.
function control(node, move) {
  const shows = [...node.querySelectorAll("[data-place]")].map((part, place) => {
    const show = PARTS[part.dataset.kind](part, (to) => move(place, to));
    return (state) => { part.closest(".part").hidden = state.hidden; show(state); };
  });
  return (parts) => {
    node.hidden = parts.every(({ hidden }) => hidden);
    parts.forEach((part, place) => shows[place](part));
  };
}

function begin(place) {
  const name = place.dataset.lab, rows = place.querySelector(".rows"), note = place.querySelector(".course-note");
  const still = place.querySelector(".course-screen"), stop = place.querySelector("[data-stop]");
  const queue = []; // what is still to be asked: what the page was sent, `then`, when it is answered
  let asked = null, stopping = false;

  // A movement that nobody has seen yet gives way to the next one of the same part.
  function ask(message, then = () => {}) {
    const part = ({ move }) => move && String(move.slice(0, 2));
    if (queue.length && message.move && part(queue.at(-1).message) === part(message)) queue.pop();
    queue.push({ message, then });
    next();
  }
  function next() {
    if (asked || !queue.length) return;
    asked = queue.shift();
    worker.postMessage({ lab: name, message: asked.message });
  }

  const shown = { name: place.getAttribute("aria-label"), svg: still.querySelector(".course-picture").innerHTML, meaning: still.querySelector(".course-meaning").textContent };
  const model = new Model({ mistake: "", table: [], report: "", failed: false, progress: -1, ...shown }, ({ pick }, then) => ask({ pick: [pick] }, then));
  const own = document.createElement("div");
  still.replaceWith(own);
  screen.render({ model, el: own });

  const controls = [...place.querySelectorAll("[data-field]")].map((node) => {
    const { field } = node.dataset;
    return [field, control(node, (part, to) => ask({ move: [field, part, to] }))];
  });
  for (const what of ["preset", "act", "start"]) {
    for (const button of place.querySelectorAll(`[data-${what}]`)) button.addEventListener("click", () => ask({ [what]: [button.dataset[what]] }));
  }
  stop?.addEventListener("click", () => { stopping = true; });

  // What is still to be played has moved its control already.
  function show({ controls: parts, running, ...values }) {
    model.set(values);
    const ahead = new Set(queue.flatMap(({ message }) => (message.move ? [message.move[0]] : [])));
    for (const [field, set] of controls) if (!ahead.has(field)) set(parts[field]);
    for (const button of place.querySelectorAll("[data-start]")) button.disabled = running;
    if (stop) stop.disabled = !running;
    if (running) ask(stopping ? { stop: [], step: [] } : { step: [] });
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
