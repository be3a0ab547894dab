// Part of JupyterLab's page while somebody presents: it gives walls their height and theme, keeps the keys with the
// presentation, and makes a jump arrive where it was meant to. JupyterLab loads it as it loads any extension.
"use strict";
(() => {
const SETTLES_MS = 1500;  // after a jump, within which outputs above still change their height
const RESIZED_MS = 300, NOTED_MS = 1000;
let jumps = false;
let shell = null;

const active = () => document.querySelector(".jp-Notebook .jp-mod-active");
const frameOf = (source) => [...document.querySelectorAll("iframe.course-wall")].find((one) => one.contentWindow === source);

const cellOf = (frame) => frame.closest(".jp-Cell");
// Below a question there is space for the whole window, so that nothing of the answer is in view.
const isAsking = (frame) => frame.parentElement.style.minHeight === "100vh";

// A wall takes what the window leaves below the text of its cell; at a reveal, what its results leave, but not too little.
function giveHeight(frame) {
  const cell = frame.closest(".jp-Cell"), view = frame.closest(".jp-WindowedPanel-outer");
  if (!cell || !view) return;
  const above = frame.getBoundingClientRect().top - cell.getBoundingClientRect().top;
  const left = view.clientHeight - above - 12;
  frame.style.height = `${Math.max(left, Math.min(0.5 * view.clientHeight, 620), 360)}px`;
}

// What a jump skips is not asked, so that no phone sees it and no answer stands there.
function skip(frame) {
  const said = document.createElement("p");
  said.textContent = "Skipped by the jump. Run this cell again to ask it.";
  const around = frame.parentElement;
  around.style.minHeight = "0";
  around.replaceChildren(said);
}

addEventListener("message", ({ data, source }) => {
  const frame = typeof data === "string" && data.startsWith("course-wall: ") && frameOf(source);
  if (!frame) return;
  const told = data.slice("course-wall: ".length);
  if (told === "begin") {
    if (jumps) return skip(frame);
    giveHeight(frame);
    if (isAsking(frame) && cellOf(frame)?.nextElementSibling === active()) cellOf(frame).scrollIntoView({ block: "start" });
    source.postMessage("begin", "*");
  }
  if (told === "keys") active()?.focus({ preventScroll: true });
  if (told === "answer" && document.activeElement === active()) frame.scrollIntoView({ block: "nearest" });
  if (told === "theme") source.postMessage(document.body.dataset.jpThemeLight ?? "", "*");
});
// As after F11: what was in view stays in view, once JupyterLab has given its parts their new sizes.
addEventListener("resize", () => setTimeout(() => {
  document.querySelectorAll("iframe.course-wall").forEach(giveHeight);
  const above = active()?.previousElementSibling;
  if (above?.querySelector("iframe.course-wall")) above.scrollIntoView({ block: "start" });
}, RESIZED_MS));

// What the audience has seen already: it is noted now and then, as a jump runs all of it once more.
const seen = new WeakSet();
function noteWhatRan() {
  if (jumps) return;
  for (const cell of shell?.currentWidget?.content?.widgets ?? []) {
    if (cell.model.type === "code" && cell.model.executionCount !== null) seen.add(cell);
  }
}

// The answers that the jump ran past stay folded: somebody may go back and ask.
function foldWhatWasSkipped(cells) {
  for (const cell of cells) {
    if (!seen.has(cell) && /\bguess=/.test(cell.model.sharedModel.getSource())) cell.outputHidden = true;
    cell.node.querySelectorAll("iframe.course-wall").forEach(skip);
  }
}

function toTheTop(cell) {
  const until = performance.now() + SETTLES_MS;
  const step = () => {
    if (!cell.node.classList.contains("jp-mod-active")) return;  // somebody went on
    cell.node.scrollIntoView({ block: "start" });
    if (performance.now() < until) requestAnimationFrame(step);
  };
  step();
}

async function jumped(result) {
  const notebook = shell.currentWidget?.content;
  const [target, at] = [notebook?.activeCell, notebook?.activeCellIndex ?? 0];
  jumps = true;
  try {
    if ((await result) === false) return;  // a cell has failed, and JupyterLab shows it
    foldWhatWasSkipped(notebook.widgets.slice(0, at).filter((cell) => cell.model.type === "code"));
    toTheTop(target);
    await new Promise((done) => setTimeout(done, SETTLES_MS));
  } finally {
    jumps = false;
  }
}

const plugin = {
  id: "course-room:plugin",
  autoStart: true,
  activate: (app) => {
    shell = app.shell;
    setInterval(noteWhatRan, NOTED_MS);
    app.commands.commandExecuted.connect((_, { id, result }) => {
      if (id === "notebook:run-all-above") jumped(result);
    });
  },
};

(window._JUPYTERLAB ??= {})["course-room"] = { init() {}, get: async () => () => ({ __esModule: true, default: plugin }) };
})();
