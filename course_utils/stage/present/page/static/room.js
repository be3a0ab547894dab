// An extension of JupyterLab for presentations. It gives walls their height and theme, and gives
// keys back to the presentation. A jump is the command "Run All Above Selected Cell": after it, the
// extension keeps the selected cell at the top of the window.
"use strict";
(() => {
const SETTLES_MS = 1500;  // after a jump, until outputs above no longer change their height
const RESIZED_MS = 300;  // after a resize, until JupyterLab's parts have their new sizes
const NOTED_MS = 1000;  // between two notes of the cells that have run
const PREFIX = "course-wall: ";  // of the messages from a wall's page
let isJumping = false;
let shell = null;

const LEAST_PX = 360;  // the least height of a wall
const REVEAL_PX = 620;  // what a wall gets at a reveal, if that is no more than half of the window
const MARGIN_PX = 12;  // below a wall

const active = () => document.querySelector(".jp-Notebook .jp-mod-active");
const cellOf = (frame) => frame.closest(".jp-Cell");

function frameOf(source) {
  const frames = [...document.querySelectorAll("iframe.course-wall")];
  return frames.find((frame) => frame.contentWindow === source);
}

// Below a guess there is space for the whole window, so that nothing of the answer is in view.
const isAsking = (frame) => frame.parentElement.style.minHeight === "100vh";

// A wall takes the height that the window leaves below the text of its cell. At a reveal, below
// large results, it still gets a part of the window.
function giveHeight(frame) {
  const cell = cellOf(frame);
  const view = frame.closest(".jp-WindowedPanel-outer");
  if (!cell || !view) return;
  const above = frame.getBoundingClientRect().top - cell.getBoundingClientRect().top;
  const left = view.clientHeight - above - MARGIN_PX;
  const least = Math.min(0.5 * view.clientHeight, REVEAL_PX);
  frame.style.height = `${Math.max(left, least, LEAST_PX)}px`;
}

// Put a note in place of a wall that a jump has skipped: it asks nothing and shows no answer.
function skip(frame) {
  const words = document.createElement("p");
  words.textContent = "Skipped by the jump. Run this cell again to ask it.";
  const around = frame.parentElement;
  around.style.minHeight = "0";
  around.replaceChildren(words);
}

// Let a wall's page begin, and if its cell has just run, show that cell at the top.
function begin(frame) {
  if (isJumping) {
    skip(frame);
    return;
  }
  giveHeight(frame);
  const cell = cellOf(frame);
  const isLastRun = cell?.nextElementSibling === active();
  if (isAsking(frame) && isLastRun) cell.scrollIntoView({ block: "start" });
  frame.contentWindow.postMessage("begin", "*");
}

addEventListener("message", ({ data, source }) => {
  if (typeof data !== "string" || !data.startsWith(PREFIX)) return;
  const frame = frameOf(source);
  if (!frame) return;
  switch (data.slice(PREFIX.length)) {
    case "begin":
      begin(frame);
      break;
    case "keys": // it no longer needs the keyboard
      active()?.focus({ preventScroll: true });
      break;
    case "answer": // it shows the answer; whoever types elsewhere is not scrolled away from there
      if (document.activeElement === active()) frame.scrollIntoView({ block: "nearest" });
      break;
    case "theme": // it asks whether JupyterLab is light or dark
      source.postMessage(document.body.dataset.jpThemeLight ?? "", "*");
      break;
  }
});

// After a resize, as by F11, give walls their new height, and keep in view what was in view.
function fitAgain() {
  document.querySelectorAll("iframe.course-wall").forEach(giveHeight);
  const above = active()?.previousElementSibling;
  if (above?.querySelector("iframe.course-wall")) above.scrollIntoView({ block: "start" });
}
addEventListener("resize", () => setTimeout(fitAgain, RESIZED_MS));

// The cells that the audience has seen run. They are noted now and then, because a jump runs all of
// them once more.
const seen = new WeakSet();
function noteWhatRan() {
  if (isJumping) return;
  for (const cell of shell?.currentWidget?.content?.widgets ?? []) {
    if (cell.model.type === "code" && cell.model.executionCount !== null) seen.add(cell);
  }
}

// Fold the answers that the jump has run past: the presenter may go back and ask.
function foldWhatWasSkipped(cells) {
  for (const cell of cells) {
    const reveals = /\bguess=|\breveal\(/.test(cell.model.sharedModel.getSource());
    if (reveals && !seen.has(cell)) cell.outputHidden = true;
    cell.node.querySelectorAll("iframe.course-wall").forEach(skip);
  }
}

// Keep the cell at the top until the outputs above have settled, or another cell is active.
function toTheTop(cell) {
  const until = performance.now() + SETTLES_MS;
  const step = () => {
    if (!cell.node.classList.contains("jp-mod-active")) return;
    cell.node.scrollIntoView({ block: "start" });
    if (performance.now() < until) requestAnimationFrame(step);
  };
  step();
}

// After a jump, fold what it has run past, and keep the selected cell at the top. `result` is the
// promise of the command's end.
async function jumped(result) {
  const notebook = shell.currentWidget?.content;
  const target = notebook?.activeCell;
  const at = notebook?.activeCellIndex ?? 0;
  isJumping = true;
  try {
    if ((await result) === false) return;  // a cell has failed, and JupyterLab shows it
    const above = notebook.widgets.slice(0, at);
    foldWhatWasSkipped(above.filter((cell) => cell.model.type === "code"));
    toTheTop(target);
    await new Promise((done) => setTimeout(done, SETTLES_MS));
  } finally {
    isJumping = false;
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

window._JUPYTERLAB ??= {};
window._JUPYTERLAB["course-room"] = {
  init() {},
  get: async () => () => ({ __esModule: true, default: plugin }),
};
})();
