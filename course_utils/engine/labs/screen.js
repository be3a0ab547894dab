// A lab's screen: its picture, one line of meaning, the reader's mistake, a table, and the progress of work.
// Words arrive as text and are set as text. Only the picture is markup, and Python escaped its words.

const PAUSE_MS = 700; // of somebody who types
const REACH = 26, SLIP = 4; // of a track, in the picture's units
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

// Sends one message at a time, and always the last: while the kernel answers, only the latest is remembered.
function latestOf(model) {
  let waits = false, latest = null;
  const next = () => {
    waits = latest !== null;
    if (!waits) return;
    const [content, then] = latest;
    latest = null;
    const status = ({ content: { execution_state: state } }) => { if (state === "idle") { if (!latest) then(); next(); } };
    model.send(content, { iopub: { status } });
  };
  return (content, then = () => {}) => { latest = [content, then]; if (!waits) next(); };
}

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
  const frame = fold.appendChild(part("table", "group"));
  frame.tabIndex = 0; // so that the keyboard can scroll it
  const table = frame.appendChild(document.createElement("table"));

  const buttons = () => [...picture.querySelectorAll("[data-key]")];
  let current = null; // the one part of the picture that the Tab key reaches

  function draw() {
    picture.setAttribute("aria-label", `${model.get("name")}, picture`);
    frame.setAttribute("aria-label", `${model.get("name")}, table`);
    const hadFocus = picture.contains(document.activeElement);
    const held = hadFocus && document.activeElement.dataset.mark;
    picture.innerHTML = model.get("svg");
    for (const mark of marks()) {
      mark.setAttribute("tabindex", "0");
      mark.setAttribute("data-lm-suppress-shortcuts", "true");
      if (mark.dataset.mark === held) mark.focus({ preventScroll: true });
    }
    for (const [field, levels] of Object.entries(ahead)) marks(field).forEach((mark, n) => levels[n] === null || put(mark, levels[n]));
    const all = buttons();
    for (const button of all) {
      button.setAttribute("tabindex", "-1");
      button.setAttribute("data-lm-suppress-shortcuts", "true"); // or JupyterLab takes some keys for its commands
    }
    const again = all.find((button) => button.dataset.key === current) ?? all[0];
    if (again) {
      current = again.dataset.key;
      again.setAttribute("tabindex", "0");
      if (hadFocus && !held) again.focus();
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
    model.send({ pick: button.dataset.key });
  }

  function goTo(button) {
    for (const other of buttons()) other.setAttribute("tabindex", "-1");
    button.setAttribute("tabindex", "0");
    button.focus();
    current = button.dataset.key;
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

  // A guess that is drawn: marks on tracks, which Python has put there. A mark moves at once, and Python is told;
  // until it has answered, what the reader said is `ahead` of the pictures that come.
  const ahead = {}, tellDrawn = latestOf(model);
  let stroke = null; // of a pointer that is down: the field that it draws in, and where it was last

  const isFree = (mark) => mark.getAttribute("aria-disabled") !== "true";
  const fieldOf = (mark) => mark.dataset.mark.split(" ")[0];
  function marks(field) {
    const all = [...picture.querySelectorAll("[data-mark]")];
    return field ? all.filter((mark) => fieldOf(mark) === field) : all;
  }
  const value = (mark, which) => Number(mark.getAttribute(`aria-value${which}`));
  const track = (mark) => mark.dataset.track.split(" ").map(Number);

  function put(mark, level) {
    const [x, y, toX, toY] = track(mark), share = level / value(mark, "max"), handle = mark.querySelector(".mark");
    handle.setAttribute("cx", x + share * (toX - x));
    handle.setAttribute("cy", y + share * (toY - y));
    if (value(mark, "now") !== level || mark.classList.contains("unset")) mark.removeAttribute("aria-valuetext"); // Python says it
    mark.setAttribute("aria-valuenow", level);
    mark.classList.replace("unset", "set");
    const line = picture.querySelector(`[data-through="${fieldOf(mark)}"]`);
    const places = marks(fieldOf(mark)).filter((one) => one.classList.contains("set")).map((one) => one.querySelector(".mark"));
    line?.setAttribute("points", places.map((one) => `${one.getAttribute("cx")},${one.getAttribute("cy")}`).join(" "));
  }

  function set(mark, level) {
    const whole = Math.max(0, Math.min(value(mark, "max"), Math.round(level)));
    if (mark.classList.contains("set") && value(mark, "now") === whole) return;
    put(mark, whole);
    const field = fieldOf(mark);
    ahead[field] = marks(field).map((one) => (one.classList.contains("set") ? value(one, "now") : null));
    tellDrawn({ set: { [field]: ahead[field] } }, () => { delete ahead[field]; });
  }

  // Where the pointer is in the picture's own units; and how near a mark's track is to that, and at which level.
  function inPicture({ clientX, clientY }) {
    const svg = picture.querySelector("svg");
    const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(svg.getScreenCTM().inverse());
    return [x, y];
  }
  function near(mark, [px, py]) {
    const [x, y, toX, toY] = track(mark), [dx, dy] = [toX - x, toY - y];
    const share = Math.max(0, Math.min(1, ((px - x) * dx + (py - y) * dy) / (dx * dx + dy * dy)));
    return { mark, level: share * value(mark, "max"), away: Math.hypot(px - x - share * dx, py - y - share * dy) };
  }
  const nearest = (place, field) => marks(field).filter(isFree).map((mark) => near(mark, place)).sort((a, b) => a.away - b.away)[0];
  // Half of the way to the next track: there, a stroke passes from one to the other.
  function reach(field) {
    const starts = marks(field).map(track);
    return Math.min(REACH, ...starts.slice(1).map(([x, y], n) => Math.hypot(x - starts[n][0], y - starts[n][1]) / 2));
  }

  function grab(event) {
    if (!picture.querySelector("[data-mark]") || event.target.closest("[data-key]")) return null;
    const found = nearest(inPicture(event));
    return found && found.away <= reach(fieldOf(found.mark)) ? found : null;
  }
  function begin(event) {
    const found = event.button === 0 && grab(event);
    if (!found) return;
    stroke = { field: fieldOf(found.mark), last: inPicture(event), passed: new Map() };
    picture.setPointerCapture(event.pointerId);
    found.mark.focus({ preventScroll: true });
    pass(found);
    event.preventDefault();
  }
  function drag(event) {
    if (!stroke) return;
    const [from, to] = [stroke.last, inPicture(event)], one = marks(stroke.field).length === 1;
    const steps = Math.max(1, Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / 3));
    for (let n = 1; n <= steps; n += 1) { // a quick stroke is seen at few places
      const found = nearest(from.map((at, axis) => at + (n / steps) * (to[axis] - at)), stroke.field);
      if (found && (one || found.away <= reach(stroke.field))) pass(found);
    }
    stroke.last = to;
  }
  // One mark follows the pointer. When the stroke goes on to others, each stays where the stroke came nearest to its track.
  function pass({ mark, level, away }) {
    const { passed } = stroke, number = mark.dataset.mark, nearestYet = passed.get(number);
    if (!nearestYet && passed.size === 1) {
      const [[first, { level: there }]] = passed;
      set(picture.querySelector(`[data-mark="${first}"]`), there);
    }
    const nearer = !nearestYet || away <= nearestYet.away + SLIP;
    if (nearer) passed.set(number, { level, away: Math.min(away, nearestYet?.away ?? away) });
    if (nearer || passed.size === 1) set(mark, level);
  }
  function type(event) {
    const mark = event.target.closest("[data-mark]");
    if (!mark || !isFree(mark) || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    const all = marks(fieldOf(mark)), now = value(mark, "now"), page = Math.max(1, Math.round(value(mark, "max") / 10));
    const beside = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const to = { ArrowUp: now + 1, ArrowDown: now - 1, PageUp: now + page, PageDown: now - page, Home: 0, End: value(mark, "max"), Enter: now, " ": now }[event.key];
    if (beside && all.length > 1) all[all.indexOf(mark) + beside]?.focus();
    else if (beside || to !== undefined) set(mark, to ?? now + beside);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  picture.addEventListener("pointerdown", begin);
  picture.addEventListener("pointermove", drag);
  for (const end of ["pointerup", "pointercancel"]) picture.addEventListener(end, () => { stroke = null; });
  picture.addEventListener("keydown", type);
  // A finger that draws neither scrolls nor goes back in the history.
  const draws = ({ target, touches: [{ clientX, clientY }, second] }) => !second && (stroke || grab({ target, clientX, clientY }));
  for (const touch of ["touchstart", "touchmove"]) picture.addEventListener(touch, (event) => draws(event) && event.preventDefault(), { passive: false });

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

// ipywidgets leaves slider handles without a name, whose label stands beside them, Play's buttons without one, and fields that have a title alone.
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
    for (const icon of lab.querySelectorAll(".widget-play button i")) icon.parentNode.setAttribute("aria-label", icon.matches(".fa-stop") ? "Back to the start" : "Play");
    for (const field of lab.querySelectorAll("input[title]")) field.setAttribute("aria-label", field.title);
  }
  const unnamed = !lab || lab.querySelectorAll(".widget-slider").length > lab.querySelectorAll(".noUi-handle[aria-label]").length;
  if (unnamed && tries) setTimeout(() => nameTheControls(el, name, tries - 1), 50);
}

export default { render };
