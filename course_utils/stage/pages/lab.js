// Brings the labs of a page to life: their controls, and screen.js over a stand-in for JupyterLab's model.
import { control, make } from "./controls.js";
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

function begin(place) {
  const name = place.dataset.place, rows = place.querySelector(".rows"), note = place.querySelector(".course-note");
  const still = place.querySelector(".course-screen"), lab = JSON.parse(place.dataset.controls);
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
  const model = new Model({ mistake: "", table: [], report: "", failed: false, progress: -1, ...shown }, (content, then) => ask(Object.fromEntries(Object.entries(content).map(([move, of]) => [move, [of]])), then));
  const own = document.createElement("div");
  still.replaceWith(own);
  screen.render({ model, el: own });

  const shows = {}; // by field
  for (const row of lab.rows) {
    const line = rows.appendChild(make("div", { class: "course-controls" }));
    for (const field of row) {
      const [node, show] = control(lab.parts[field], lab.headings[field], (part, to) => ask({ move: [field, part, to] }));
      line.append(node);
      shows[field] = show;
    }
  }
  const button = (label, click) => {
    const node = make("button", { type: "button" }, label);
    node.addEventListener("click", click);
    return node;
  };
  const [presets, starts, acts] = ["preset", "start", "act"].map((move) => lab[move].map((label) => button(label, () => ask({ [move]: [label] }))));
  const stop = button("Stop", () => { stopping = true; });
  stop.disabled = true;
  const work = starts.length ? [...starts, stop, ...acts] : acts;
  const below = [["presets", presets], ["work", work]].filter(([, buttons]) => buttons.length);
  rows.append(make("div", { class: "course-below" }, ...below.map(([name, buttons]) => make("div", { class: `course-${name}` }, ...buttons))));

  // What is still to be played has moved its control already.
  function show({ parts, running, ...values }) {
    model.set(values);
    const ahead = new Set(queue.flatMap(({ message }) => (message.move ? [message.move[0]] : [])));
    for (const field in shows) if (!ahead.has(field)) shows[field](parts[field]);
    for (const start of starts) start.disabled = running;
    stop.disabled = !running;
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
  for (const place of document.querySelectorAll("[data-lab]")) { // a lab may be there twice
    place.dataset.place = places.has(place.dataset.lab) ? `${place.dataset.lab} ${places.size}` : place.dataset.lab;
    places.set(place.dataset.place, begin(place));
  }
} catch (error) {
  places.forEach((place) => place.fail(String(error)));
}
