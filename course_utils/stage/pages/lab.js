// Makes the labs of a page work: with their controls, and with screen.js, which also draws the labs
// in JupyterLab. There it has a widget's model, and here a stand-in for that.
import { control, make } from "./controls.js";
import { linked, linker, offerToCopy } from "./link.js";
import screen from "./screen.js";
import { template, translated, translations } from "./words.js";

const LOADING = template(
  "The lab is coming to life, once its Python is here. Move it already: what you do is kept.",
);
const FAILED = template("This lab could not come to life here, so its picture stays as it is.");
const MOST_OF_A_REASON = 200; // characters
const labs = new Map(); // by their places
let worker;

// The part of a widget's model that screen.js uses: values that change, and a way to send messages.
class Model {
  #values;
  #listeners = [];
  #send;

  constructor(values, send) {
    this.#values = values;
    this.#send = send;
  }

  get(name) {
    return this.#values[name];
  }

  on(events, listener) {
    this.#listeners.push({ events: events.split(" "), listener });
  }

  // When the message is answered, call `callbacks` as JupyterLab does when the kernel is idle
  // again.
  send(content, callbacks) {
    const idle = { content: { execution_state: "idle" } };
    this.#send(content, () => callbacks?.iopub.status(idle));
  }

  // Take over the values, and call the listeners of those that have changed.
  set(values) {
    const known = Object.keys(values).filter((name) => name in this.#values);
    const changed = known.filter((name) => values[name] !== this.#values[name]);
    Object.assign(this.#values, values);
    const happened = changed.map((name) => `change:${name}`);
    for (const { events, listener } of this.#listeners) {
      if (events.some((event) => happened.includes(event))) listener();
    }
  }
}

// The messages of one lab to the worker, which gets one after the other.
class Queue {
  #lab;
  #waiting = [];
  #sent = null; // the message that is not answered yet

  constructor(lab) {
    this.#lab = lab;
  }

  // A move that waits is replaced by the next move of the same part: nobody would see the first.
  // `then` is called when the message is answered.
  add(message, then = () => {}) {
    const last = this.#waiting.at(-1);
    if (last && message.move && partOf(last.message) === partOf(message)) this.#waiting.pop();
    this.#waiting.push({ message, then });
    this.next();
  }

  next() {
    if (this.#sent || !this.#waiting.length) return;
    this.#sent = this.#waiting.shift();
    worker.postMessage({ lab: this.#lab, message: this.#sent.message });
  }

  // Note that the message is answered; returns the function to call then.
  answered() {
    const { then } = this.#sent;
    this.#sent = null;
    return then;
  }

  // The fields whose moves wait.
  fields() {
    const moves = this.#waiting.map(({ message }) => message.move).filter(Boolean);
    return new Set(moves.map(([field]) => field));
  }
}

// The part that a message moves, as text. A move has its field, the index of the part in the field,
// and the value to which the part was moved.
const partOf = ({ move }) => move && String(move.slice(0, 2));

function makeButton(words, click) {
  const button = make("button", { type: "button" }, words);
  button.addEventListener("click", click);
  return button;
}

// Make the lab in this element work. The result has two functions for the worker's messages:
// `answer`, and `fail` for the reason why there are no answers.
function begin(element) {
  const rows = element.querySelector(".rows");
  const note = element.querySelector(".course-note");
  const lab = JSON.parse(element.dataset.controls);
  const queue = new Queue(element.dataset.place);
  const model = drawOnScreen(element, queue);
  const shows = {}; // by field, the function that shows the field's state
  makeControls(lab.rows, lab, rows, queue, shows);
  const fold = lab.more.length ? makeFold(lab, rows, queue, shows) : null;
  let isStopping = false;
  const stop = makeButton(translated("Stop"), () => { isStopping = true; });
  stop.disabled = true;
  const starts = makeButtons(lab, rows, queue, stop);
  let keepInAddress = null; // for a lab whose page is linked, from its first answer on

  function show({ parts, running, values: held, ...shown }) {
    model.set(shown);
    if ("linked" in element.dataset) followAddress(held);
    // A control whose moves still wait shows a later state than this answer.
    const ahead = queue.fields();
    for (const field in shows) {
      if (!ahead.has(field)) shows[field](parts[field]);
    }
    fold?.follow(held);
    for (const start of starts) start.disabled = running;
    stop.disabled = !running;
    // While a job runs, each answer is followed by the message that has it take its next step.
    if (running) queue.add(isStopping ? { stop: [], step: [] } : { step: [] });
    isStopping = false;
  }

  // The first answer has what the controls hold at first. Then comes what the address holds.
  function followAddress(held) {
    if (keepInAddress) {
      keepInAddress(held);
      return;
    }
    keepInAddress = linker(held);
    offerToCopy();
    const asked = linked();
    if (Object.keys(asked).length) queue.add({ set: [asked] });
  }

  rows.hidden = false;
  note.textContent = translated(LOADING);
  queue.add(JSON.parse(element.dataset.begun));
  return {
    answer(answer) {
      const then = queue.answered();
      note.hidden = true;
      element.dataset.alive = true;
      show(answer);
      then();
      queue.next();
    },
    fail(reason) {
      rows.hidden = true;
      note.hidden = false;
      note.textContent = `${translated(FAILED)} `;
      const how = make("a", { href: "index.html#kernel" }, translated("In JupyterLab it moves"));
      const last = reason.trim().split("\n").at(-1); // of Python's traceback
      note.append(how, `. (${last.slice(0, MOST_OF_A_REASON)})`);
    },
  };
}

// Put screen.js in place of the still picture; returns the model that it shows.
function drawOnScreen(element, queue) {
  const still = element.querySelector(".course-screen");
  const values = {
    mistake: "",
    table: [],
    report: "",
    failed: false,
    progress: -1,
    labels: translations,
    name: element.getAttribute("aria-label"),
    svg: still.querySelector(".course-picture").innerHTML,
    meaning: still.querySelector(".course-meaning").textContent,
  };
  const model = new Model(values, (content, then) => {
    const moves = Object.entries(content).map(([move, argument]) => [move, [argument]]);
    queue.add(Object.fromEntries(moves), then);
  });
  const own = document.createElement("div");
  still.replaceWith(own);
  screen.render({ model, el: own });
  return model;
}

// Make these rows of controls, whose fields they name; returns the rows. For each field, the function
// that shows its state comes into `shows`.
function makeControls(fields, lab, rows, queue, shows) {
  return fields.map((row) => {
    const line = rows.appendChild(make("div", { class: "course-controls" }));
    for (const field of row) {
      const move = (part, to) => queue.add({ move: [field, part, to] });
      const [node, show] = control(lab.parts[field], lab.headings[field], move);
      line.append(node);
      shows[field] = show;
    }
    return line;
  });
}

// Make the rows of controls that are seldom used, folded, and the button that unfolds them. Returns
// `follow`, which takes what all controls hold, and unfolds the rows if one of theirs has changed
// while nobody saw it. The same is in engine/labs/fold.py.
function makeFold(lab, rows, queue, shows) {
  const button = makeButton("", () => turn(more[0].hidden));
  rows.lastElementChild.append(button);
  const more = makeControls(lab.more, lab, rows, queue, shows);
  let known = null; // what they held last, as text

  function turn(isOpen) {
    for (const row of more) row.hidden = !isOpen;
    button.textContent = isOpen ? translated("Fewer controls") : translated("More controls");
  }

  function follow(held) {
    const values = JSON.stringify(lab.more.flat().map((field) => held[field]));
    if (known !== null && values !== known && more[0].hidden) turn(true);
    known = values;
  }

  turn(false);
  return { follow };
}

// Make the row of buttons; returns those that start work.
function makeButtons(lab, rows, queue, stop) {
  const buttonsOf = (move) =>
    lab[move].map((label) => makeButton(translated(label), () => queue.add({ [move]: [label] })));
  const presets = buttonsOf("preset");
  const starts = buttonsOf("start");
  const acts = buttonsOf("act");
  const work = starts.length ? [...starts, stop, ...acts] : acts;
  const below = make("div", { class: "course-below" });
  if (presets.length) below.append(make("div", { class: "course-presets" }, ...presets));
  if (work.length) below.append(make("div", { class: "course-work" }, ...work));
  rows.append(below);
  return starts;
}

// A lab's place on the page: its name, with a number behind it for a second lab of that name.
function placeOf(element) {
  const name = element.dataset.lab;
  return labs.has(name) ? `${name} ${labs.size}` : name;
}

function failAll(reason) {
  for (const lab of labs.values()) lab.fail(reason);
}

try {
  worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
  worker.onmessage = ({ data: { lab, answer, failure } }) => {
    if (failure) labs.get(lab).fail(failure);
    else labs.get(lab).answer(answer);
  };
  worker.onerror = (event) => failAll(event.message ?? "its worker did not start");
  worker.postMessage({ translations });
  for (const element of document.querySelectorAll("[data-lab]")) {
    element.dataset.place = placeOf(element);
    labs.set(element.dataset.place, begin(element));
  }
} catch (error) {
  failAll(String(error));
}
