// A lab's screen: its picture, one line of meaning, the reader's mistake, a table, and the progress
// of a job. Words arrive as text and are set as text. Only the picture is markup, and Python has
// escaped the words in it.

const TYPING_PAUSE_MS = 700; // without a key for so long, a reader has stopped typing
const MARKED_MS = 3000; // how long a scale is marked that has changed
// The next three are in the picture's units.
const REACH = 26; // how far beside a track a pointer may be and still move its mark
const SLIP = 4; // how much farther from a track than before a stroke may be and still move its mark
const LONGEST_STEP = 3; // between two points of a stroke at which marks are moved
// What the arrow keys add to the number of the column, and to that of the row.
const DIRECTIONS = {
  ArrowLeft: { across: -1, down: 0 },
  ArrowRight: { across: 1, down: 0 },
  ArrowUp: { across: 0, down: -1 },
  ArrowDown: { across: 0, down: 1 },
};

// anywidget calls this for each view of a screen: `el` is the view's element, and `model` has the
// state that Python has set.
function render({ model, el }) {
  const say = wordsOf(model);
  const parts = buildScreen(el, say);
  const { picture, fold, frame } = parts;
  const clicks = followClicks(picture, model);
  const guess = followDrawing(picture, model);
  const markScales = followScales(picture);
  // Where a lab keeps what follows out of the window, the workspace's style says so below the lab.
  const comesUp = JSON.stringify(say("What follows comes up with Show."));
  document.documentElement.style.setProperty("--course-comes-up", comesUp);

  // Shows the picture that Python has sent.
  function draw() {
    picture.setAttribute("aria-label", say("{name}, picture", model.get("name")));
    frame.setAttribute("aria-label", say("{name}, table", model.get("name")));
    // The element that has the focus is replaced, so the new one in its place gets the focus.
    const hadFocus = picture.contains(document.activeElement);
    const markWithFocus = hadFocus ? document.activeElement.dataset.mark : undefined;
    picture.innerHTML = model.get("svg");
    markScales();
    guess.prepare(markWithFocus);
    clicks.prepare(hadFocus && !markWithFocus);
    nameTheControls(el, model, say, remark);
  }

  const fillTable = () => showTable(model.get("table"), parts);
  const { showWords, remark } = wordsShower(model, el, parts);
  fold.addEventListener("toggle", fillTable);
  model.on("change:svg", draw);
  model.on("change:table", fillTable);
  model.on("change:meaning change:mistake change:stale", showWords);
  model.on("change:report change:failed change:progress", showWords);
  draw();
  fillTable();
  showWords();
  // When a cell runs again, something in the page may still hold its old screen: empty that.
  return () => el.replaceChildren();
}

// Returns a function that says these words in the reader's language, with a name or several things in
// their gaps. What `labels` lacks is said in English.
function wordsOf(model) {
  return (english, inGaps = "") => {
    const words = model.get("labels")?.[english] ?? english;
    const gaps = typeof inGaps === "string" ? { name: inGaps } : inGaps;
    return words.replace(/\{(\w+)\}/g, (gap, name) => gaps[name] ?? gap);
  };
}

// Words on a scale have the scale's name as `data-scale`. Where they differ from those of the
// picture before, the scale has changed, and they are marked for a while: without that, bars could
// seem to have grown.
function followScales(picture) {
  const said = new Map(); // the words, by the scale's name
  const markedUntil = new Map();
  let timer;

  function mark() {
    clearTimeout(timer);
    const now = performance.now();
    let isAnyMarked = false;
    for (const node of picture.querySelectorAll("[data-scale]")) {
      const name = node.dataset.scale;
      const words = node.textContent;
      if (said.has(name) && said.get(name) !== words) markedUntil.set(name, now + MARKED_MS);
      said.set(name, words);
      const isMarked = markedUntil.get(name) > now;
      node.classList.toggle("changed", isMarked);
      isAnyMarked ||= isMarked;
    }
    if (isAnyMarked) timer = setTimeout(mark, MARKED_MS + 50);
  }

  return mark;
}

function buildScreen(el, say) {
  el.classList.add("course-screen");
  const add = (parent, name, role) => {
    const node = document.createElement("div");
    node.className = `course-${name}`;
    node.setAttribute("role", role);
    return parent.appendChild(node);
  };
  const mistake = add(el, "mistake", "alert"); // while there is one, it takes the meaning's place
  const meaning = add(el, "meaning", "status");
  const picture = add(el, "picture", "group");
  // These two are below the picture, so that it stays where it is when a job begins to report.
  const progress = el.appendChild(document.createElement("progress"));
  progress.setAttribute("aria-label", say("Progress"));
  progress.hidden = true;
  const report = add(el, "report", "status");
  const fold = el.appendChild(document.createElement("details"));
  fold.className = "course-numbers";
  fold.appendChild(document.createElement("summary")).textContent = say("All numbers");
  const frame = add(fold, "table", "group");
  frame.tabIndex = 0; // so that the keyboard can scroll it
  const table = frame.appendChild(document.createElement("table"));
  return { mistake, meaning, picture, progress, report, fold, frame, table };
}

// The table is filled only while it is unfolded, so that no movement waits for what nobody sees.
function showTable(rows, { fold, table }) {
  fold.hidden = !rows.length;
  if (!fold.open) return;
  table.replaceChildren();
  rows.forEach((cells, number) => {
    const row = table.insertRow();
    for (const words of cells) {
      const isHead = number === 0 && words; // an empty cell heads nothing
      const cell = row.appendChild(document.createElement(isHead ? "th" : "td"));
      cell.textContent = words;
    }
  });
}

// Returns two functions. `showWords` shows the model's present words and progress. A number that is
// half typed is no mistake yet, so while somebody types, the sentence on a mistake waits until they
// pause. `remark` shows a sentence of the page itself in the place of a mistake, until the reader
// does something else; without a sentence, it takes that away.
function wordsShower(model, el, { mistake, meaning, picture, progress, report }) {
  let timer;
  let remarked = "";

  function showNow() {
    meaning.textContent = model.get("meaning");
    mistake.textContent = model.get("mistake") || remarked;
    report.textContent = model.get("report");
    report.classList.toggle("failed", model.get("failed"));
    const wasHidden = progress.hidden;
    progress.hidden = model.get("progress") < 0;
    progress.value = Math.max(0, model.get("progress"));
    picture.classList.toggle("stale", model.get("stale") === true);
    if (progress.hidden !== wasHidden) bringUp(); // a job has begun or ended
  }

  // A job reports below the picture, and there the window may end. Whoever looks at the picture sees
  // the report, too. Whoever has scrolled on is left where they are.
  function bringUp() {
    const { bottom } = picture.getBoundingClientRect();
    const isInWindow = bottom > 0 && bottom <= window.innerHeight;
    if (isInWindow && report.textContent) report.scrollIntoView({ block: "nearest" });
  }

  function isTyping() {
    const focused = document.activeElement;
    return el.closest(".course-lab")?.contains(focused) && focused.matches("input[type=text]");
  }

  function showWords() {
    clearTimeout(timer);
    const isNewMistake = model.get("mistake") && !mistake.textContent;
    if (isNewMistake && isTyping()) timer = setTimeout(showNow, TYPING_PAUSE_MS);
    else showNow();
  }

  function remark(sentence) {
    if (remarked === sentence) return;
    remarked = sentence;
    showNow();
  }

  return { showWords, remark };
}

// Keys that are pressed together with one of these belong to the browser or to JupyterLab:
// Shift+Enter runs the cell.
function hasModifier({ shiftKey, ctrlKey, altKey, metaKey }) {
  return shiftKey || ctrlKey || altKey || metaKey;
}

// A key that had an effect here has no other.
function consume(event) {
  event.preventDefault();
  event.stopPropagation();
}

// Makes a part of the picture reachable by the keyboard. Without the second attribute, JupyterLab
// would take some keys for its commands.
function makeFocusable(node, tabIndex) {
  node.setAttribute("tabindex", tabIndex);
  node.setAttribute("data-lm-suppress-shortcuts", "true");
}

// Parts of the picture that can be clicked have a `data-key`, and are in rows by their `data-row`.
// The Tab key reaches one of them, and the arrow keys go on from there.
function followClicks(picture, model) {
  let currentKey = null; // of the part that the Tab key reaches

  const buttons = () => [...picture.querySelectorAll("[data-key]")];
  const buttonAt = (event) => event.target.closest("[data-key]");

  // To be called after each drawing. With `takesFocus`, the part that the Tab key reaches gets the
  // focus.
  function prepare(takesFocus) {
    const all = buttons();
    for (const button of all) makeFocusable(button, "-1");
    const current = all.find((button) => button.dataset.key === currentKey) ?? all[0];
    if (!current) return;
    currentKey = current.dataset.key;
    current.setAttribute("tabindex", "0");
    if (takesFocus) current.focus();
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
    currentKey = button.dataset.key;
  }

  // Returns the button next to another: left or right in its row, or the nearest one in the row
  // above or below. At an end it returns undefined.
  function beside(from, { across, down }) {
    const all = buttons();
    const rows = [...new Set(all.map((button) => button.dataset.row))];
    const row = rows[rows.indexOf(from.dataset.row) + down];
    const inRow = all.filter((button) => button.dataset.row === row);
    if (across) return inRow[inRow.indexOf(from) + across];
    const away = (button) => Math.abs(middle(button) - middle(from));
    return inRow.sort((a, b) => away(a) - away(b))[0];
  }

  // Where the middle of a button is, from left to right.
  function middle(button) {
    const box = button.getBoundingClientRect();
    return box.left + box.width / 2;
  }

  // A click counts when the button goes down: if the picture were drawn anew before it goes up,
  // the click would be lost.
  picture.addEventListener("pointerdown", (event) => {
    if (event.button === 0) press(buttonAt(event));
  });
  // A screen reader clicks without a pointer; such a click has no detail.
  picture.addEventListener("click", (event) => {
    if (event.detail === 0) press(buttonAt(event));
  });
  picture.addEventListener("mousedown", (event) => {
    if (buttonAt(event)) event.preventDefault(); // the focus stays where `press` has put it
  });
  picture.addEventListener("keydown", (event) => {
    const from = buttonAt(event);
    if (!from || hasModifier(event)) return;
    if (event.key === " " || event.key === "Enter") {
      if (!event.repeat) press(from);
    } else if (event.key in DIRECTIONS) {
      const to = beside(from, DIRECTIONS[event.key]);
      if (to) goTo(to);
    } else {
      return;
    }
    consume(event);
  });
  return { prepare };
}

// A guess that the reader draws: marks on tracks, which Python has put into the picture. A mark has
// its field's name and its number as `data-mark`, and its track's ends as `data-track`. The page
// moves a mark at once, and sends its level to Python.
function followDrawing(picture, model) {
  // By field, the levels that were sent, until Python has dealt with them. A picture that arrives
  // in the meantime has older levels, so its marks are moved again.
  const ahead = {};
  const send = latestOnly(model);

  const isFree = (mark) => mark.getAttribute("aria-disabled") !== "true";
  const isSet = (mark) => mark.classList.contains("set");
  const fieldOf = (mark) => mark.dataset.mark.split(" ")[0];
  const handleOf = (mark) => mark.querySelector(".mark");
  const levelOf = (mark) => Number(mark.getAttribute("aria-valuenow"));
  const highestOf = (mark) => Number(mark.getAttribute("aria-valuemax"));

  const allMarks = () => [...picture.querySelectorAll("[data-mark]")];
  const marksOf = (field) => allMarks().filter((mark) => fieldOf(mark) === field);

  // The begin of a mark's track, which is level 0, and from there the way to its end.
  function trackOf(mark) {
    const [x, y, toX, toY] = mark.dataset.track.split(" ").map(Number);
    return { x, y, dx: toX - x, dy: toY - y };
  }

  // To be called after each drawing. `markWithFocus` is the `data-mark` of the mark that had the
  // focus, if there was one.
  function prepare(markWithFocus) {
    for (const mark of allMarks()) {
      makeFocusable(mark, "0");
      if (mark.dataset.mark === markWithFocus) mark.focus({ preventScroll: true });
    }
    for (const [field, levels] of Object.entries(ahead)) {
      marksOf(field).forEach((mark, number) => {
        if (levels[number] !== null) move(mark, levels[number]);
      });
    }
  }

  // Moves a mark in the picture.
  function move(mark, level) {
    const { x, y, dx, dy } = trackOf(mark);
    const share = level / highestOf(mark);
    const handle = handleOf(mark);
    handle.setAttribute("cx", x + share * dx);
    handle.setAttribute("cy", y + share * dy);
    // The former level's words no longer hold; Python's next picture has the new ones.
    if (levelOf(mark) !== level || !isSet(mark)) mark.removeAttribute("aria-valuetext");
    mark.setAttribute("aria-valuenow", level);
    mark.classList.replace("unset", "set");
    drawThrough(fieldOf(mark));
  }

  // Draws the line through a field's marks, if it has one.
  function drawThrough(field) {
    const line = picture.querySelector(`[data-through="${field}"]`);
    if (!line) return;
    const handles = marksOf(field).filter(isSet).map(handleOf);
    const points = handles.map((one) => `${one.getAttribute("cx")},${one.getAttribute("cy")}`);
    line.setAttribute("points", points.join(" "));
  }

  // Moves a mark, and sends the levels of all marks of its field to Python.
  function set(mark, level) {
    const whole = Math.max(0, Math.min(highestOf(mark), Math.round(level)));
    if (isSet(mark) && levelOf(mark) === whole) return;
    move(mark, whole);
    const field = fieldOf(mark);
    ahead[field] = marksOf(field).map((one) => (isSet(one) ? levelOf(one) : null));
    send({ set: { [field]: ahead[field] } }, () => {
      delete ahead[field];
    });
  }

  // Arrow keys across go to the next mark, or move the only one. The other keys change the level.
  function moveByKey(event) {
    const mark = event.target.closest("[data-mark]");
    if (!mark || !isFree(mark) || hasModifier(event)) return;
    const level = levelOf(mark);
    const page = Math.max(1, Math.round(highestOf(mark) / 10));
    const levels = {
      ArrowUp: level + 1,
      ArrowDown: level - 1,
      PageUp: level + page,
      PageDown: level - page,
      Home: 0,
      End: highestOf(mark),
      Enter: level, // which sets a mark that was not set yet
      " ": level,
    };
    const marks = marksOf(fieldOf(mark));
    const across = DIRECTIONS[event.key]?.across;
    if (across && marks.length > 1) marks[marks.indexOf(mark) + across]?.focus();
    else if (across) set(mark, level + across);
    else if (levels[event.key] !== undefined) set(mark, levels[event.key]);
    else return;
    consume(event);
  }

  picture.addEventListener("keydown", moveByKey);
  followStrokes(picture, { allMarks, marksOf, fieldOf, isFree, highestOf, trackOf, set });
  return { prepare };
}

// A stroke of the pointer moves the marks whose tracks it passes.
function followStrokes(picture, { allMarks, marksOf, fieldOf, isFree, highestOf, trackOf, set }) {
  // While the pointer is down: the field that it draws in, the point where it was last, and what is
  // known of each mark that it has passed, by the mark's name.
  let stroke = null;

  // Where the pointer is, in the picture's own units.
  function inPicture({ clientX, clientY }) {
    const svg = picture.querySelector("svg");
    const toPicture = svg.getScreenCTM().inverse();
    return new DOMPoint(clientX, clientY).matrixTransform(toPicture);
  }

  // Returns how far a point is from a mark's track, and the level at the track's nearest point.
  function distance(mark, point) {
    const { x, y, dx, dy } = trackOf(mark);
    // The point is projected onto the track: 0 is the track's begin, and 1 its end.
    const along = ((point.x - x) * dx + (point.y - y) * dy) / (dx * dx + dy * dy);
    const share = Math.max(0, Math.min(1, along));
    const away = Math.hypot(point.x - x - share * dx, point.y - y - share * dy);
    return { mark, level: share * highestOf(mark), away };
  }

  // Returns `distance` for the mark whose track is nearest to the point.
  function nearest(marks, point) {
    const found = marks.filter(isFree).map((mark) => distance(mark, point));
    return found.sort((a, b) => a.away - b.away)[0];
  }

  // Returns how far from a track of this field a pointer may be: REACH, or half of the way to the
  // next track, where a stroke passes from one to the other, if that is less.
  function reach(field) {
    const tracks = marksOf(field).map(trackOf);
    let least = REACH;
    for (let number = 1; number < tracks.length; number += 1) {
      const { x, y } = tracks[number];
      const before = tracks[number - 1];
      least = Math.min(least, Math.hypot(x - before.x, y - before.y) / 2);
    }
    return least;
  }

  // Returns `distance` for the mark that the pointer takes hold of; null if the pointer is on none,
  // or on a part that can be clicked.
  function grabbed(event) {
    if (!allMarks().length || event.target.closest("[data-key]")) return null;
    const found = nearest(allMarks(), inPicture(event));
    return found && found.away <= reach(fieldOf(found.mark)) ? found : null;
  }

  function begin(event) {
    const found = event.button === 0 ? grabbed(event) : null;
    if (!found) return;
    stroke = { field: fieldOf(found.mark), last: inPicture(event), passed: new Map() };
    picture.setPointerCapture(event.pointerId);
    found.mark.focus({ preventScroll: true });
    pass(found);
    event.preventDefault();
  }

  // A quick stroke is reported at few points, so the way between two of them is filled in.
  function drag(event) {
    if (!stroke) return;
    const from = stroke.last;
    const to = inPicture(event);
    const isOnlyMark = marksOf(stroke.field).length === 1;
    const steps = Math.max(1, Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / LONGEST_STEP));
    for (let step = 1; step <= steps; step += 1) {
      const share = step / steps;
      const point = { x: from.x + share * (to.x - from.x), y: from.y + share * (to.y - from.y) };
      const found = nearest(marksOf(stroke.field), point);
      if (found && (isOnlyMark || found.away <= reach(stroke.field))) pass(found);
    }
    stroke.last = to;
  }

  // While a stroke has passed one mark only, that mark follows the pointer. When the stroke goes on
  // to others, each mark stays where the stroke came nearest to its track.
  function pass({ mark, level, away }) {
    const { passed } = stroke;
    const name = mark.dataset.mark;
    const before = passed.get(name);
    if (!before && passed.size === 1) {
      // The stroke has come to its second mark, so the first one goes back to its nearest point.
      const [[firstName, first]] = passed;
      set(picture.querySelector(`[data-mark="${firstName}"]`), first.level);
    }
    const isNearer = !before || away <= before.away + SLIP;
    if (isNearer) {
      const least = before ? Math.min(away, before.away) : away;
      passed.set(name, { level, away: least });
    }
    if (isNearer || passed.size === 1) set(mark, level);
  }

  function end() {
    stroke = null;
  }

  // A finger that draws neither scrolls nor goes back in the history.
  function stopScrolling(event) {
    const [{ clientX, clientY }, secondFinger] = event.touches;
    if (secondFinger) return; // two fingers zoom the page
    if (stroke || grabbed({ target: event.target, clientX, clientY })) event.preventDefault();
  }

  picture.addEventListener("pointerdown", begin);
  picture.addEventListener("pointermove", drag);
  picture.addEventListener("pointerup", end);
  picture.addEventListener("pointercancel", end);
  picture.addEventListener("touchstart", stopScrolling, { passive: false });
  picture.addEventListener("touchmove", stopScrolling, { passive: false });
}

// Returns a function that sends one message at a time. While the kernel works on a message, only
// the latest one after it is remembered, and sent next. `answered` is called when the kernel has
// done a message, unless a newer one waits.
function latestOnly(model) {
  let isWaiting = false; // for the kernel to have done a message
  let latest = null; // the message to be sent next

  function sendNext() {
    isWaiting = latest !== null;
    if (!isWaiting) return;
    const { content, answered } = latest;
    latest = null;
    const status = (message) => {
      if (message.content.execution_state !== "idle") return;
      if (!latest) answered();
      sendNext();
    };
    model.send(content, { iopub: { status } });
  }

  return function send(content, answered) {
    latest = { content, answered };
    if (!isWaiting) sendNext();
  };
}

// JupyterLab takes letters for commands where the focus is on no text field: "dd" on a button would
// delete the lab's cell. From the document on, it looks at each element on the way to the focus for
// the attribute that forbids this, so we set the attribute earlier, at the window. With a modifier,
// commands are allowed: Ctrl+S saves.
const FOCUSABLE = "button, select, summary, input[type=checkbox], .noUi-handle, .widget-readout";
const CONTROLS = `.course-lab :is(${FOCUSABLE})`;

function keepLetters(event) {
  const { target } = event;
  if (!target.matches?.(CONTROLS)) return;
  if (hasModifier(event)) target.removeAttribute("data-lm-suppress-shortcuts");
  else target.setAttribute("data-lm-suppress-shortcuts", "true");
}

if (!window.courseLabKeys) {
  window.courseLabKeys = keepLetters; // once for a page, however often this file is loaded
  window.addEventListener("keydown", keepLetters, true);
}

// JupyterLab shows the pictures of outputs without alternative text. Ours carry their words inside,
// as a PNG can.
const WITHOUT_WORDS = ".jp-RenderedImage img:not([alt], [data-wordless])";

function describePictures() {
  for (const image of document.querySelectorAll(WITHOUT_WORDS)) {
    const words = description(image.src);
    if (words) image.alt = words;
    else image.dataset.wordless = ""; // so that it is not looked at again
  }
}

// So many characters of a picture are decoded: the description comes before the pixels.
const MOST_BASE64 = 16384;
const SIGNATURE_BYTES = 8; // of a PNG, before its first chunk

// Returns the description inside a PNG; an empty text if it has none. A chunk of the file has its
// length in 4 bytes, its type in 4, its data, and a checksum in 4.
function description(address) {
  const [kind, base64] = address.split(",");
  if (kind !== "data:image/png;base64") return "";
  const binary = atob(base64.replace(/\s/g, "").slice(0, MOST_BASE64));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  let at = SIGNATURE_BYTES;
  while (at + 8 < bytes.length) {
    const length = view.getUint32(at);
    const type = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    const data = bytes.subarray(at + 8, at + 8 + length);
    at += 12 + length; // 12 bytes: length, type and checksum
    if (type !== "tEXt" && type !== "iTXt") continue;
    const text = new TextDecoder(type === "iTXt" ? "utf-8" : "latin1").decode(data);
    const [key, ...rest] = text.split("\0"); // in an iTXt chunk, the text is the last of several
    if (key === "Description") return rest.at(-1);
  }
  return "";
}

if (!window.courseDescriptions) {
  window.courseDescriptions = new MutationObserver(describePictures);
  window.courseDescriptions.observe(document.body, { childList: true, subtree: true });
  describePictures();
}

const TRIES = 40; // for two seconds
const RETRY_MS = 50;

// ipywidgets leaves some controls without a name that screen readers find: the handles of sliders,
// whose label only stands beside them, the buttons of Play, and text fields that only have a title.
// Controls may come after the screen, so this waits for them.
function nameTheControls(el, model, say, remark, tries = TRIES) {
  const lab = el.closest(".course-lab");
  if (lab) {
    lab.setAttribute("role", "group");
    lab.setAttribute("aria-label", model.get("name"));
    // What screen.css shows in place of the controls after a restart, as a text in CSS.
    const restarted = say("The kernel has been restarted. Run this cell again.");
    lab.style.setProperty("--course-restarted", JSON.stringify(restarted));
    // What stands over the cells below while the lab waits for a guess.
    lab.dataset.behind =
      say("Your guess above comes first. What follows comes up with Show, with your guess or without one.");
    for (const handle of lab.querySelectorAll(".noUi-handle")) nameSlider(handle, model, say, remark);
    for (const button of lab.querySelectorAll(".widget-play button")) namePlayButton(button, say);
    for (const field of lab.querySelectorAll("input[title]")) {
      field.setAttribute("aria-label", field.title);
    }
  }
  if (tries && !hasNamedSliders(lab)) {
    setTimeout(() => nameTheControls(el, model, say, remark, tries - 1), RETRY_MS);
  }
}

// Whether the lab is on the page, with as many named handles as it has sliders.
function hasNamedSliders(lab) {
  if (!lab) return false;
  const sliders = lab.querySelectorAll(".widget-slider");
  const named = lab.querySelectorAll(".noUi-handle[aria-label]");
  return sliders.length <= named.length;
}

// Gives one of the two buttons of Play its name. It has that of its slider in it, because a figure may
// have several pairs.
function namePlayButton(button, say) {
  const slider = button.closest(".widget-play").parentElement.querySelector(".widget-slider label");
  const of = slider ? slider.textContent : "";
  const isStop = button.querySelector(".fa-stop");
  const words = isStop ? say("{name}: back to the start", of) : say("Play {name}", of);
  button.setAttribute("aria-label", words);
  button.title = words;
}

// Gives a slider's handle, and the number beside it, the name that a reader sees in front.
function nameSlider(handle, model, say, remark) {
  const slider = handle.closest(".widget-slider");
  const name = slider.querySelector("label").textContent;
  const isNamed = handle.hasAttribute("aria-label");
  handle.setAttribute("aria-label", name);
  const readout = slider.querySelector(".widget-readout");
  if (!readout) return;
  if (!isNamed) sayWhatStandsBeside(handle, readout);
  const isChosen = handle.closest(".course-chosen") !== null;
  const options = model.get("options")?.[name] ?? [];
  if (isChosen && !(options.length && options.every(isNumber))) {
    readout.contentEditable = "false"; // it shows one of a few words, which nobody types
    // Whoever clicks it has the slider in hand, and not the notebook, whose commands are letters.
    if (!isNamed) readout.addEventListener("click", () => handle.focus());
    return;
  }
  readout.setAttribute("role", "textbox");
  readout.setAttribute("aria-label", say("{name}, typed", name));
  if (isNamed) return;
  readout.contentEditable = "true";
  const understand = isChosen ? nearestOption(name, options, model, say) : wholeNumber(handle, say);
  readWhatIsTyped(handle, readout, understand, remark);
  // ipywidgets reads a whole number itself. Of an option it would read nothing.
  if (isChosen) readout.addEventListener("keydown", leaveNoLine);
}

// Enter takes what was typed, and makes no second line.
function leaveNoLine(event) {
  if (event.key === "Enter" && !hasModifier(event)) consume(event);
}

const isNumber = (words) => !Number.isNaN(numberTyped(words));

// The number that was typed, such as 12, 65,536 or 2^16; NaN if it is none.
function numberTyped(words) {
  const power = /^(\d+) *(?:\^|\*\*) *(\d+)$/.exec(words);
  if (power) return Number(power[1]) ** Number(power[2]);
  return /^[-−+]?\d[\d,_]*(\.\d+)?$/.test(words)
    ? Number(words.replace(/[,_]/g, "").replace("−", "-"))
    : NaN;
}

// The next two return a function of what was typed and what stood there before. That returns what is
// taken, and a sentence if this is not what was typed.
function wholeNumber(handle, say) {
  const end = (name) => Number(handle.getAttribute(`aria-value${name}`));
  return (typed, shown) => {
    const [least, most] = [end("min"), end("max")];
    const number = numberTyped(typed);
    const taken = isNumber(typed) ? String(Math.round(Math.min(most, Math.max(least, number)))) : shown;
    if (Number(taken) === number) return [taken, ""];
    const name = handle.getAttribute("aria-label");
    const values = { name, least, most, typed: typed.slice(0, 40), taken };
    const inItsPlace =
      say("{name} is a whole number from {least} to {most}. In place of “{typed}”, {taken} was taken.", values);
    const none =
      say("{name} is a whole number from {least} to {most}. “{typed}” is none, so {taken} was kept.", values);
    return [taken, isNumber(typed) ? inItsPlace : none];
  };
}

const MOST_OPTIONS = 16; // that a sentence names

function nearestOption(label, options, model, say) {
  return (typed, shown) => {
    const number = numberTyped(typed);
    const away = (option) => Math.abs(numberTyped(option) - number);
    const taken = isNumber(typed) ? [...options].sort((a, b) => away(a) - away(b))[0] : shown;
    if (taken !== shown) model.send({ choose: [label, taken] });
    if (numberTyped(taken) === number) return [taken, ""];
    if (isNumber(typed) && options.length > MOST_OPTIONS) {
      const values = { label, value: typed.slice(0, 40), taken };
      return [taken, say("The slider of {label} has no {value}: {taken}, the nearest, was taken.", values)];
    }
    const few = options.length <= MOST_OPTIONS ? options : [...options.slice(0, 3), "…", options.at(-1)];
    const values = { label, options: few.join(", "), value: typed.slice(0, 40) };
    const refused = say("{label} is one of {options}; not {value}.", values);
    return [taken, `${refused} ${label} = ${taken}`];
  };
}

// What is typed beside a slider of whole numbers is read here first. ipywidgets alone would read 2^16
// as 2, and would take another number than was typed without a word.
function readWhatIsTyped(handle, readout, understand, remark) {
  const around = handle.closest(".widget-slider").parentElement;
  let shown = ""; // what stood there before

  function take() {
    const typed = readout.textContent.trim();
    if (typed === shown) return;
    const [taken, sentence] = understand(typed, shown);
    readout.textContent = taken;
    shown = taken;
    if (sentence) remark(sentence);
  }

  const isHere = ({ target }) => target === readout;
  around.addEventListener("focusin", (event) => {
    if (isHere(event)) shown = readout.textContent.trim();
  });
  // Before ipywidgets reads it.
  for (const kind of ["blur", "keydown"]) {
    around.addEventListener(kind, (event) => {
      const isDone = kind === "blur" || event.key === "Enter";
      if (isHere(event) && isDone) take();
    }, true);
  }
  // What the reader does next is about something else.
  for (const kind of ["keydown", "pointerdown"]) {
    handle.closest(".course-lab").addEventListener(kind, () => remark(""), true);
  }
}

// Of a slider, a screen reader says what stands beside it, such as 0.018. The slider itself would say
// the place in its list of options, such as 34, and says it anew with each move.
function sayWhatStandsBeside(handle, readout) {
  function say() {
    const words = readout.textContent;
    if (words && handle.getAttribute("aria-valuetext") !== words) {
      handle.setAttribute("aria-valuetext", words);
    }
  }
  new MutationObserver(say).observe(handle, { attributeFilter: ["aria-valuetext"] });
  const changes = { childList: true, characterData: true, subtree: true };
  new MutationObserver(say).observe(readout, changes);
  say();
}

export default { render };
