// The field of a guess: a line for each question, the button Show, and the space that keeps what
// follows out of the window until Show is pressed. What is typed is read by Python, which answers
// with how it was read, or with a sentence on what would make sense. The words of the page come from
// Python, too, as `labels`, because readers have several languages.

const AXIS = 1.2; // how long the axis of bars is, as a multiple of what they lead to
const PAUSE_MS = 300; // after the last key, for so long, a bar counts as at rest
const BUSY_MS = 500; // if Python has not read a text for so long, the field says so
const LATE = 0.7; // a bar that ends farther right than this share of the axis has its number left

// anywidget calls this for each view of a field: `el` is the view's element, and `model` has the
// state that Python has set.
function render({ model, el }) {
  // Each field loads this module anew, so a count would give all their radio buttons one name.
  const name = `course-ask-${Math.random().toString(36).slice(2)}`;
  const labels = model.get("labels");
  const field = buildField(el, name, model.get("lines").length, labels);
  const lines = model.get("lines").map((line) => addLine(field, line, model));
  const bars = model.get("between")?.length ? addBars(field, lines, model) : null;
  // The number of the line in which Enter was pressed, until the focus has gone on; else -1.
  let entered = -1;
  let isShown = false; // whether Show has settled the guess; Python may hear of it later
  let asked = 0; // when Show was pressed, until Python has read what was typed; else 0
  let isHeld = false; // whether Show was pressed with the texts that are there, and one is no answer

  // Shows the state that Python has sent.
  function draw() {
    const states = model.get("lines");
    const isClosed = isShown || model.get("is_closed");
    const isLost = !isClosed && hasLostItsKernel();
    lines.forEach((line, at) => line.draw(states[at], isClosed || isLost || asked > 0));
    bars?.draw(states, isClosed || isLost);
    const isGuessed = states.every(({ said, fault }) => said && !fault);
    const words = model.get("words") || hint(isGuessed, isClosed);
    field.words.textContent = isLost ? "" : words;
    field.failure.textContent = isLost ? labels.restarted : model.get("failure");
    field.show.hidden = isLost || !field.root.classList.contains("course-waits");
    field.show.classList.toggle("due", isGuessed);
    if (model.get("has_gone_on")) lift();
    goOn(states);
    if (asked && !isLost) settleIfRead();
  }

  // Whether the kernel that made the field is gone, so that nothing that is typed would arrive.
  // ipywidgets marks the view after a restart, and the workspace does so if the kernel has died.
  function hasLostItsKernel() {
    return el.classList.contains("jupyter-widgets-disconnected");
  }

  // The sentence beside the button, as long as Python has sent none.
  function hint(isGuessed, isClosed) {
    if (isClosed) return "";
    if (isHeld) return labels.again;
    if (asked && performance.now() - asked > BUSY_MS) return labels.busy;
    if (model.get("has_gone_on")) return isGuessed ? labels.canChange : "";
    return isGuessed ? labels.guessed : labels.open;
  }

  // After Enter, waits until Python has read what was typed: the kernel may be busy for a while. If
  // the reader has gone elsewhere by then, the focus stays there.
  function goOn(states) {
    if (entered < 0 || lines[entered].isPending()) return;
    const isHere = lines[entered].contains(document.activeElement);
    if (isHere && !states[entered].fault) goOnFrom(entered, states);
    entered = -1;
  }

  // The focus goes to the next line without a guess, or else to Show.
  function goOnFrom(at, states) {
    const isOpen = (number) => !states[number].said || states[number].fault;
    // The numbers of the lines behind this one, then those before it, then its own.
    const later = [...lines.keys()].map((number) => (at + 1 + number) % lines.length);
    const next = later.find(isOpen);
    if (next !== undefined) lines[next].focus();
    else if (!field.show.hidden) field.show.focus();
  }

  // Lets what follows into the window. The page does so itself, without waiting for Python, because
  // the kernel may be computing something else.
  function lift() {
    const hadFocus = field.show === document.activeElement;
    field.root.classList.remove("course-waits");
    field.show.hidden = true;
    if (hadFocus) field.root.focus(); // so that the next key still belongs to this cell
  }

  // What Show does: it settles the guess, but only if all texts are answers, or if it is pressed
  // again.
  function show() {
    bars?.send();
    for (const line of lines) line.send(); // on some phones, the text was not left by the tap on Show
    if (asked || isHeld) {
      settle();
      return;
    }
    asked = performance.now();
    setTimeout(draw, 2 * BUSY_MS);
    draw();
  }

  // Goes on with Show when Python has read the texts. One that is no answer stays, to be changed.
  function settleIfRead() {
    if (lines.some((line) => line.isUnread())) return;
    asked = 0;
    const refused = lines.find((line) => line.isRefused());
    if (!refused) {
      settle();
      return;
    }
    isHeld = true;
    draw();
    if (field.root.contains(document.activeElement)) refused.focus();
  }

  function settle() {
    asked = 0;
    // First what follows is unfolded, on a page, and then the space above it goes. The other way
    // round, the page would be too short for a moment, and the browser would scroll it up.
    for (const line of lines) line.goBack();
    isShown = true; // before the message: on a page, the answer comes at once
    model.send({ show: true });
    draw();
    lift();
    field.root.dispatchEvent(new Event("course-settled", { bubbles: true })); // for the workspace
  }

  // A sentence below the text that is left would move Show away between the press and its click, so
  // the text is left at the click.
  field.show.addEventListener("mousedown", (event) => event.preventDefault());
  field.show.addEventListener("click", ({ detail }) => {
    if (detail > 1) return; // the second half of a double click is no second press
    if (detail === 1) field.show.focus({ preventScroll: true });
    show();
  });
  field.root.addEventListener("input", () => {
    if (!isHeld) return;
    isHeld = false; // the text is another one now
    draw();
  });
  field.root.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.target === field.show) return;
    event.preventDefault();
    entered = lines.findIndex((line) => line.contains(event.target));
    // What was typed is sent as if the field had been left.
    if (entered >= 0 && !lines[entered].send()) draw();
  });
  model.on("change", draw);
  new MutationObserver(draw).observe(el, { attributeFilter: ["class"] });
  draw();
  return () => el.replaceChildren();
}

// Fills in the gaps of a sentence: fill("{n} left", { n: 3 }) is "3 left".
function fill(sentence, gaps) {
  return sentence.replace(/\{(\w+)\}/g, (_, name) => gaps[name]);
}

// Makes the field's elements, still without its lines. `number` is how many lines there will be.
function buildField(el, name, number, labels) {
  const root = add(el, "div", "course-ask course-waits");
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", labels.yourGuess);
  root.tabIndex = -1;
  // For the workspace, which covers the cells below.
  root.dataset.behind = labels.behind;
  root.dataset.ahead = labels.ahead;
  const card = add(root, "div", "course-ask-card");
  const lines = add(card, "div", "course-ask-lines");
  lines.classList.toggle("course-ask-several", number > 1);
  const foot = add(card, "div", "course-ask-foot");
  const show = add(foot, "button", "course-ask-show");
  show.type = "button";
  show.textContent = labels.show;
  const words = add(foot, "span", "course-ask-words");
  const failure = add(card, "div", "course-ask-fault");
  failure.setAttribute("role", "alert");
  return { root, card, lines, foot, show, words, failure, name };
}

// Adds a line for one question. Returns functions: `draw` shows its state; `send` sends what was
// typed, if that is new, and returns whether it was; `write` puts a number there, and `say` also
// sends it; `focus` moves the focus to it; `contains` returns whether an element is part of it;
// `isPending` returns whether Python still has to read what was sent, and `isUnread` whether that
// may be no answer; `isRefused` returns whether a text is none. `node` is the line itself.
function addLine(field, { name, options }, model) {
  const line = add(field.lines, "div", "course-ask-line");
  const isAlone = model.get("lines").length === 1;
  const labels = model.get("labels");
  const label = isAlone ? labels.yourGuess : name;
  // What is shown behind a field in place of a unit's name.
  const units = { share: labels.share, percent: "%" };
  const unit = units[model.get("unit")] ?? model.get("unit");
  const input = options.length
    ? addOptions(line, label, options, `${field.name}-${field.lines.childElementCount}`)
    : addText(line, label, unit, isAlone ? name : "");
  const note = add(line, "span", "course-ask-note");
  note.setAttribute("role", "status");
  note.id = `${field.name}-${field.lines.childElementCount}-note`;
  input.node.setAttribute("aria-describedby", note.id);
  let has = ""; // the text that Python has
  let sent = ""; // the text that was sent last, or that Python has
  let isWrong = false; // whether the text is no answer
  let wentBack = false; // whether it was none when Show was pressed, so that the one before was kept

  function send() {
    const typed = input.value();
    if (typed === sent) return false;
    say(typed);
    return true;
  }

  function say(typed) {
    write(typed);
    sent = typed; // before the message: on a page, the answer comes at once
    model.send({ say: { name, typed } });
  }

  function write(typed) {
    input.node.value = typed;
  }

  function isPending() {
    return has !== sent;
  }

  function goBack() {
    wentBack = isWrong || isPending();
  }

  const isUnread = () => isPending() && options.length === 0;
  const isRefused = () => isWrong && input.value() !== "";

  function draw({ said, typed, fault }, isClosed) {
    // Two quick answers bring two states. The first must not undo the second on the screen.
    const isOutdated = isPending() && typed !== sent && !model.get("is_closed");
    has = typed;
    input.close(isClosed);
    if (isOutdated) return;
    // How it was read, where that is not to be seen in the field. Bytes are always said, since
    // whoever means GB may type 44.
    const isTyped = said === typed || (unit !== "bytes" && said === `${typed} ${unit}`);
    const hasUnit = said !== "" && fault === "" && /[\p{L}%]$/u.test(typed);
    const reading = said && !isTyped ? `= ${said}` : "";
    note.textContent = said ? withKept(said, fault) || reading : fault;
    isWrong = fault !== "";
    note.classList.toggle("course-ask-fault", isWrong);
    input.draw(typed, { isWrong, hasUnit, isNew: typed !== sent });
    sent = typed;
  }

  // The sentence on a text that is no answer, and on the guess that is kept in its place.
  function withKept(said, fault) {
    const kept = fill(labels.kept, { said });
    return fault ? `${fault} ${kept}` : wentBack ? kept : "";
  }

  input.node.addEventListener("change", send);
  const contains = (node) => line.contains(node);
  const { focus } = input;
  const asks = { isPending, isUnread, isRefused, contains };
  return { draw, send, say, write, focus, goBack, ...asks, node: line };
}

// Adds a text field. Its visible name is `label`; for screen readers, `name` follows, if it is not
// empty.
function addText(line, label, unit, name) {
  const title = add(line, "label", "course-ask-label");
  add(title, "span", "course-ask-name").textContent = label;
  const node = add(title, "input", "course-ask-input");
  node.type = "text";
  node.autocomplete = "off";
  node.spellcheck = false;
  node.inputMode = "text"; // not "decimal": 2^31 and 12 % are answers, too
  node.setAttribute("aria-label", [label, name, unit].filter(Boolean).join(", "));
  const behind = add(title, "span", "course-ask-unit");
  behind.textContent = unit;
  node.addEventListener("input", () => showUnit(true));
  const value = () => node.value.trim();

  function close(isClosed) {
    node.disabled = isClosed;
  }

  // Behind "16 MB" no other unit is read. Its place stays, so that nothing moves.
  function showUnit(isShown) {
    behind.style.visibility = isShown ? "" : "hidden";
  }

  function draw(typed, { isWrong, hasUnit, isNew }) {
    // A text that somebody is typing at the moment is not replaced.
    if (isNew && (document.activeElement !== node || node.value === "")) node.value = typed;
    node.setAttribute("aria-invalid", String(isWrong));
    showUnit(!hasUnit);
  }
  return { node, value, draw, close, focus: () => node.focus() };
}

// Adds bars beside the lines, where the guesses are parts of a sum: each begins where the one above it
// ends, and its end is a slider. The first bar is given, and the last is what the parts leave.
function addBars(field, lines, model) {
  const [[before, first], [leadTo, whole]] = model.get("between");
  const unit = model.get("unit");
  const labels = model.get("labels");
  const axis = { end: AXIS * whole, whole, step: 10 ** Math.floor(Math.log10(whole / 100)), unit };
  field.lines.classList.add("course-ask-bars");
  const given = addGiven(field.lines, before, first, axis);
  field.lines.prepend(given.line);
  const bars = lines.map(({ node }) => addBar(node, axis));
  const rest = addGiven(field.lines, labels.rest, 0, axis);
  rest.line.classList.add("course-ask-rest");
  const sum = add(field.lines, "div", "course-ask-sum");
  sum.setAttribute("role", "status");
  const ahead = new Map(); // the numbers to which bars were moved, until Python has them
  let said = []; // the numbers that Python has
  let isClosed = false;
  let timer;

  bars.forEach((bar, at) => {
    const { name } = model.get("lines")[at];
    bar.slider = addSlider(bar.track, fill(labels.bar, { name, unit }));
    bar.slider.addEventListener("input", () => {
      ahead.set(at, { number: Number(bar.slider.value), isSent: false });
      lines[at].write(bar.slider.value);
      place();
    });
    // Of many keys that are pressed in a row, the last one counts.
    bar.slider.addEventListener("change", () => {
      clearTimeout(timer);
      timer = setTimeout(send, PAUSE_MS);
    });
    bar.slider.addEventListener("blur", send);
  });

  function send() {
    clearTimeout(timer);
    for (const [at, moved] of ahead) {
      if (moved.isSent) continue;
      moved.isSent = true;
      lines[at].say(String(moved.number));
    }
  }

  function place() {
    let begin = first;
    bars.forEach((bar, at) => {
      const number = ahead.get(at)?.number ?? said[at];
      bar.place(begin, number);
      placeSlider(bar.slider, begin, number, axis, isClosed, labels);
      begin += number ?? 0;
    });
    const left = Math.round(1000 * (whole - begin)) / 1000;
    rest.say(Math.max(0, left), Math.min(begin, whole));
    const gaps = { sum: Math.round(1000 * begin) / 1000, whole, unit, goal: leadTo };
    const beyond = fill(labels.beyond, { ...gaps, beyond: -left });
    sum.textContent = left < 0 ? beyond : fill(labels.left, { ...gaps, left });
  }

  function draw(states, closed) {
    isClosed = closed;
    said = states.map(({ number }) => number);
    for (const [at, { number, isSent }] of ahead) {
      if (closed || (isSent && number === said[at])) ahead.delete(at);
      else lines[at].write(String(number)); // what Python has is older
    }
    place();
  }
  return { draw, send };
}

// A line whose number is not asked for.
function addGiven(lines, name, number, axis) {
  const line = add(lines, "div", "course-ask-line");
  const label = add(line, "span", "course-ask-label course-ask-given");
  add(label, "span", "course-ask-name").textContent = name;
  const words = add(label, "span", "course-ask-number");
  add(label, "span", "course-ask-unit").textContent = axis.unit;
  const bar = addBar(line, axis);
  bar.words.hidden = true; // the number stands in the line already
  const say = (now, begin) => {
    words.textContent = now;
    bar.place(begin, now);
  };
  say(number, 0);
  return { line, say };
}

// A bar, with its number behind it, or before it where there is no room behind it.
function addBar(line, { end, whole, unit }) {
  const track = add(line, "div", "course-ask-track");
  line.insertBefore(track, line.querySelector(".course-ask-note"));
  const goal = add(track, "div", "course-ask-goal");
  goal.style.setProperty("--from", whole / end);
  const bar = add(track, "div", "course-ask-bar");
  const words = add(track, "span", "course-ask-words");
  words.setAttribute("aria-hidden", "true"); // the slider says it

  function place(begin, number) {
    const ends = [begin, begin + (number ?? 0)]; // a part below 0 goes back from its begin
    const [from, to] = [Math.min(...ends), Math.max(...ends)].map((at) => within(at / end));
    track.style.setProperty("--from", from);
    track.style.setProperty("--to", to);
    words.textContent = number === null ? "" : `${number} ${unit}`;
    words.classList.toggle("late", to > LATE);
  }
  return { track, words, place };
}

function addSlider(track, name) {
  const slider = add(track, "input", "course-ask-slider");
  slider.type = "range";
  slider.setAttribute("aria-label", name);
  return slider;
}

const within = (share) => Math.min(1, Math.max(0, share));

// The middle of the slider's handle goes from the bar's begin to the end of the axis. With a number
// below 0, which can only be typed, it goes from that number on.
function placeSlider(slider, begin, number, { end, step, unit }, isClosed, labels) {
  slider.step = step;
  slider.min = Math.min(0, number ?? 0);
  slider.style.setProperty("--from", within((begin + Math.min(0, number ?? 0)) / end));
  slider.max = Math.max(step, end - begin);
  slider.value = number ?? 0;
  slider.disabled = isClosed;
  slider.classList.toggle("unset", number === null);
  slider.setAttribute("aria-valuetext", number === null ? labels.noGuess : `${number} ${unit}`);
}

// Adds radio buttons. `group` is the name that they share, and no others on the page have.
function addOptions(line, label, options, group) {
  const node = add(line, "fieldset", "course-ask-options");
  add(node, "legend", "course-ask-label").textContent = label;
  const buttons = options.map((option) => {
    const choice = add(node, "label", "course-ask-option");
    const button = add(choice, "input", "");
    button.type = "radio";
    button.name = group;
    button.value = option;
    add(choice, "span", "").textContent = option;
    return button;
  });
  const chosen = () => buttons.find((button) => button.checked);
  const value = () => chosen()?.value ?? "";

  function close(isClosed) {
    for (const button of buttons) button.disabled = isClosed;
  }

  function draw(typed) {
    for (const button of buttons) button.checked = button.value === typed;
  }
  return { node, value, draw, close, focus: () => (chosen() ?? buttons[0]).focus() };
}

function add(parent, tag, className) {
  const node = document.createElement(tag);
  node.className = className;
  return parent.appendChild(node);
}

// JupyterLab takes letters and arrows for commands where the focus is on no text field: on Show,
// "dd" would delete the cell. From the document on, it looks at each element on the way to the
// focus for the attribute that forbids this, so the attribute is set earlier, at the window. With a
// modifier, commands are allowed: Ctrl+S saves.
const FORBIDS = "data-lm-suppress-shortcuts";
const CONTROLS = ".course-ask, button, input[type=radio], input[type=range]";

function keepKeys({ target, shiftKey, ctrlKey, altKey, metaKey }) {
  const field = target.closest?.(".course-ask");
  if (!field) return;
  field.removeAttribute(FORBIDS); // which it got if the last key was pressed on the field itself
  const isCommand = shiftKey || ctrlKey || altKey || metaKey;
  target.toggleAttribute(FORBIDS, target.matches(CONTROLS) && !isCommand);
}

// Whoever saves or reloads the page has not left the field, so that no change was noticed. What was
// typed counts all the same.
function sendWhatIsTyped() {
  const node = document.activeElement;
  if (node?.matches(".course-ask-input")) node.dispatchEvent(new Event("change"));
}

function sendOnSaving({ key, ctrlKey, metaKey }) {
  if (key.toLowerCase() === "s" && (ctrlKey || metaKey)) sendWhatIsTyped();
}

if (!window.courseAskKeys) {
  window.courseAskKeys = keepKeys; // once for a page, however often this file is loaded
  window.addEventListener("keydown", keepKeys, true);
  window.addEventListener("keydown", sendOnSaving, true);
  window.addEventListener("pagehide", sendWhatIsTyped);
}

export default { render };
