// A lab's screen: its picture, one line of meaning, the reader's mistake, a table, and the progress of work.
// Words arrive as text and are set as text. Only the picture is markup, and Python escaped its words.

const PAUSE_MS = 700; // of somebody who types
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function render({ model, el }) {
  el.classList.add("course-screen");
  const part = (name, role) => {
    const node = document.createElement("div");
    node.className = `course-${name}`;
    node.setAttribute("role", role);
    el.append(node);
    return node;
  };
  const progress = document.createElement("progress");
  progress.setAttribute("aria-label", "Progress");
  const mistake = part("mistake", "alert"); // stands in place of the meaning while there is one
  const meaning = part("meaning", "status");
  const picture = part("picture", "group");
  el.append(progress); // below the picture, which stays where it is when a job has something to say
  const report = part("report", "status");
  const fold = el.appendChild(document.createElement("details"));
  fold.className = "course-numbers";
  fold.appendChild(document.createElement("summary")).textContent = "All numbers";
  const frame = fold.appendChild(part("table", "region"));
  frame.tabIndex = 0; // so that the keyboard can scroll it
  const table = frame.appendChild(document.createElement("table"));

  const buttons = () => [...picture.querySelectorAll("[data-key]")];
  let current = null; // the one part of the picture that the Tab key reaches

  function draw() {
    picture.setAttribute("aria-label", `${model.get("name")}, picture`);
    frame.setAttribute("aria-label", `${model.get("name")}, table`);
    const hadFocus = picture.contains(document.activeElement);
    picture.innerHTML = model.get("svg");
    const all = buttons();
    for (const button of all) {
      button.setAttribute("tabindex", "-1");
      button.setAttribute("data-lm-suppress-shortcuts", "true"); // or JupyterLab takes some keys for its commands
    }
    const again = all.find((button) => button.dataset.key === current) ?? all[0];
    if (again) {
      current = again.dataset.key;
      again.setAttribute("tabindex", "0");
      if (hadFocus) again.focus();
    }
    nameTheControls(el, model.get("name"));
  }

  function tabulate() {
    fold.hidden = !model.get("table").length;
    if (!fold.open) return; // it is filled when it is unfolded: no movement waits for what nobody sees
    table.replaceChildren();
    model.get("table").forEach((cells, number) => {
      const row = table.insertRow();
      for (const words of cells) {
        const cell = row.appendChild(document.createElement(number || !words ? "td" : "th"));
        cell.textContent = words;
      }
    });
  }

  function press(button) {
    if (!button) return;
    goTo(button);
    if (!("point" in button.dataset)) model.send({ pick: button.dataset.key }); // what points has been picked by now
  }

  function goTo(button) {
    for (const other of buttons()) other.setAttribute("tabindex", "-1");
    button.setAttribute("tabindex", "0");
    button.focus();
    current = button.dataset.key;
    point(button);
  }

  // Some parts answer when they are pointed at, by the mouse or by the arrow keys. A picture that is drawn anew
  // under a resting pointer is no new pointing, so it is the movement that counts: pointerover comes then, too.
  // And who sweeps over many asks for one at a time: while the kernel answers, only the latest is remembered.
  let pointed = null, asking = false, latest = null;
  function point(button) {
    if (!button || !("point" in button.dataset) || button.dataset.key === pointed) return;
    pointed = latest = button.dataset.key;
    if (!asking) ask();
  }
  function ask() {
    asking = latest !== null;
    if (!asking) return;
    const status = ({ content }) => content.execution_state === "idle" && ask();
    model.send({ pick: latest }, { iopub: { status } });
    latest = null;
  }

  // Left and right stay in the row; up and down go to the nearest part of the next one.
  function beside(from, [dx, dy]) {
    const all = buttons();
    const rows = [...new Set(all.map((button) => button.dataset.row))];
    const row = rows[rows.indexOf(from.dataset.row) + dy];
    const inRow = all.filter((button) => button.dataset.row === row);
    if (dx) return inRow[inRow.indexOf(from) + dx];
    const x = (button) => { const box = button.getBoundingClientRect(); return box.left + box.width / 2; };
    return inRow.sort((a, b) => Math.abs(x(a) - x(from)) - Math.abs(x(b) - x(from)))[0];
  }

  // On the way down: a picture that is drawn anew before the finger is up would lose the click.
  picture.addEventListener("pointerdown", (event) => event.button === 0 && press(event.target.closest("[data-key]")));
  picture.addEventListener("click", (event) => event.detail === 0 && press(event.target.closest("[data-key]")));
  picture.addEventListener("mousedown", (event) => event.target.closest("[data-key]") && event.preventDefault());
  picture.addEventListener("pointermove", (event) => event.pointerType === "mouse" && point(event.target.closest("[data-key]")));
  picture.addEventListener("pointerleave", () => { pointed = null; asking = false; }); // back on the same part, it is pointed at anew
  picture.addEventListener("keydown", (event) => {
    const from = event.target.closest("[data-key]");
    if (!from || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return; // Shift+Enter runs the cell
    if (event.key === " " || event.key === "Enter") event.repeat || press(from);
    else if (event.key in ARROWS) {
      const to = beside(from, ARROWS[event.key]);
      if (to) goTo(to);
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  // Half of a number is no mistake yet: while somebody types, a sentence waits until they pause.
  let late;
  const tell = () => {
    clearTimeout(late);
    const typing = el.closest(".course-lab")?.contains(document.activeElement) && document.activeElement.matches("input[type=text]");
    if (typing && model.get("mistake") && !mistake.textContent) late = setTimeout(say, PAUSE_MS);
    else say();
  };
  const say = () => {
    meaning.textContent = model.get("meaning");
    mistake.textContent = model.get("mistake");
    report.textContent = model.get("report");
    report.classList.toggle("failed", model.get("failed"));
    progress.hidden = model.get("progress") < 0;
    progress.value = Math.max(0, model.get("progress"));
    picture.classList.toggle("stale", model.get("mistake") !== "");
  };
  fold.addEventListener("toggle", tabulate);
  model.on("change:svg", draw);
  model.on("change:table", tabulate);
  model.on("change:meaning change:mistake change:report change:failed change:progress", tell);
  draw();
  tabulate();
  tell();
  return () => el.replaceChildren(); // a cell that ran again: something in the page may hold on to its old output
}

// JupyterLab takes letters for commands where the focus is on no text field: "dd" on a button would delete the lab's
// cell. It asks each element whether it may, on the way down from the document; so we say so before, at the window.
// With a modifier it may: Ctrl+S saves, Shift+Enter runs the cell.
function keepLetters({ target, ctrlKey, metaKey, altKey, shiftKey }) {
  if (!target.matches?.(".course-lab :is(button, select, summary, input[type=checkbox], .noUi-handle, .widget-readout)")) return;
  const command = ctrlKey || metaKey || altKey || shiftKey;
  if (command) target.removeAttribute("data-lm-suppress-shortcuts");
  else target.setAttribute("data-lm-suppress-shortcuts", "true");
}
if (!window.courseLabKeys) {
  window.courseLabKeys = keepLetters; // once for a page, however often this file is loaded
  window.addEventListener("keydown", keepLetters, true);
}

// JupyterLab shows the pictures of outputs without alternative text. Ours carry their words inside, as PNG can.
function describe() {
  for (const image of document.querySelectorAll(".jp-RenderedImage img:not([alt], [data-wordless])")) {
    const words = description(image.src);
    if (words) image.alt = words;
    else image.dataset.wordless = "";
  }
}

function description(address) {
  const [kind, base64] = address.split(",");
  if (kind !== "data:image/png;base64") return "";
  const bytes = Uint8Array.from(atob(base64.replace(/\s/g, "").slice(0, 16384)), (c) => c.charCodeAt(0)); // it comes before the pixels
  const view = new DataView(bytes.buffer);
  for (let at = 8; at + 8 < bytes.length; at += 12 + view.getUint32(at)) { // length, type, data, checksum
    const data = bytes.subarray(at + 8, at + 8 + view.getUint32(at));
    const type = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    if (type !== "tEXt" && type !== "iTXt") continue;
    const [key, ...rest] = new TextDecoder(type === "iTXt" ? "utf-8" : "latin1").decode(data).split("\0");
    if (key === "Description") return rest.at(-1);
  }
  return "";
}

if (!window.courseDescriptions) {
  window.courseDescriptions = new MutationObserver(describe);
  window.courseDescriptions.observe(document.body, { childList: true, subtree: true });
  describe();
}

// ipywidgets leaves slider handles without a name, whose label stands beside them, and fields that have a title alone.
function nameTheControls(el, name, tries = 40) {
  const lab = el.closest(".course-lab");
  if (lab) {
    lab.setAttribute("role", "group");
    lab.setAttribute("aria-label", name);
    for (const handle of lab.querySelectorAll(".noUi-handle")) {
      const label = handle.closest(".widget-slider").querySelector("label");
      handle.setAttribute("aria-label", label.textContent);
      const readout = handle.closest(".widget-slider").querySelector(".widget-readout");
      if (!readout) continue;
      if (handle.closest(".course-chosen")) readout.contentEditable = "false"; // one of a few, which nobody can type
      else {
        readout.setAttribute("role", "textbox");
        readout.setAttribute("aria-label", `${label.textContent}, typed`);
      }
    }
    for (const field of lab.querySelectorAll("input[title]")) field.setAttribute("aria-label", field.title);
  }
  const unnamed = !lab || lab.querySelectorAll(".widget-slider").length > lab.querySelectorAll(".noUi-handle[aria-label]").length;
  if (unnamed && tries) setTimeout(() => nameTheControls(el, name, tries - 1), 50);
}

export default { render };
