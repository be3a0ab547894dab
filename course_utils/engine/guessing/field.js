// The field of a guess: a line for each question, the button Show, and the space that keeps what
// follows out of the window until Show is pressed. What is typed is read by Python, which answers
// with how it was read, or with a sentence on what would make sense.

// What is shown behind a field in place of a unit's name.
const UNITS = { share: "from 0 to 1, or in %", percent: "%" };

// anywidget calls this for each view of a field: `el` is the view's element, and `model` has the
// state that Python has set.
function render({ model, el }) {
  // Each field loads this module anew, so a count would give all their radio buttons one name.
  const name = `course-ask-${Math.random().toString(36).slice(2)}`;
  const field = buildField(el, name, model.get("lines").length);
  const lines = model.get("lines").map((line) => addLine(field, line, model));
  // The number of the line in which Enter was pressed, until the focus has gone on; else -1.
  let entered = -1;

  // Shows the state that Python has sent.
  function draw() {
    const states = model.get("lines");
    const isClosed = model.get("is_closed");
    lines.forEach((line, at) => line.draw(states[at], isClosed));
    const isGuessed = states.every(({ said, fault }) => said && !fault);
    field.words.textContent = model.get("words") || hint(isGuessed, model.get("has_gone_on"));
    field.failure.textContent = model.get("failure");
    field.show.classList.toggle("due", isGuessed);
    if (model.get("has_gone_on")) lift();
    if (entered >= 0 && !states[entered].fault) goOnFrom(entered, states);
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

  field.show.addEventListener("click", () => {
    lift();
    model.send({ show: true });
  });
  field.root.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.target === field.show) return;
    event.preventDefault();
    entered = lines.findIndex((line) => line.contains(event.target));
    // What was typed is sent as if the field had been left.
    if (entered >= 0 && !lines[entered].send()) draw();
  });
  model.on("change", draw);
  draw();
  return () => el.replaceChildren();
}

// The sentence beside the button while the guess is not closed.
function hint(isGuessed, hasGoneOn) {
  if (hasGoneOn) return isGuessed ? "You can change it until the answer is shown." : "";
  return isGuessed
    ? "You can change it. What follows comes up with Show."
    : "What follows comes up with Show, with your guess or without one.";
}

// Makes the field's elements, still without its lines. `number` is how many lines there will be.
function buildField(el, name, number) {
  const root = add(el, "div", "course-ask course-waits");
  root.setAttribute("role", "group");
  root.setAttribute("aria-label", "Your guess");
  root.tabIndex = -1;
  const card = add(root, "div", "course-ask-card");
  const lines = add(card, "div", "course-ask-lines");
  lines.classList.toggle("course-ask-several", number > 1);
  const foot = add(card, "div", "course-ask-foot");
  const show = add(foot, "button", "course-ask-show");
  show.type = "button";
  show.textContent = "Show";
  const words = add(foot, "span", "course-ask-words");
  const failure = add(card, "div", "course-ask-fault");
  failure.setAttribute("role", "alert");
  return { root, card, lines, foot, show, words, failure, name };
}

// Adds a line for one question. Returns functions: `draw` shows its state; `send` sends what was
// typed, if that is new, and returns whether it was; `focus` moves the focus to it; `contains`
// returns whether an element is part of it.
function addLine(field, { name, options }, model) {
  const line = add(field.lines, "div", "course-ask-line");
  const isAlone = model.get("lines").length === 1;
  const label = isAlone ? "Your guess" : name;
  const unit = UNITS[model.get("unit")] ?? model.get("unit");
  const input = options.length
    ? addOptions(line, label, options, `${field.name}-${field.lines.childElementCount}`)
    : addText(line, label, unit, isAlone ? name : "");
  const note = add(line, "span", "course-ask-note");
  note.setAttribute("role", "status");
  note.id = `${field.name}-${field.lines.childElementCount}-note`;
  input.node.setAttribute("aria-describedby", note.id);
  let sent = ""; // the text that Python has

  function send() {
    const typed = input.value();
    if (typed === sent) return false;
    sent = typed;
    model.send({ say: { name, typed } });
    return true;
  }

  function draw({ said, typed, fault }, isClosed) {
    // How it was read, where that is not to be seen in the field.
    const isTyped = said === typed || said === `${typed} ${unit}`;
    note.textContent = fault || (said && !isTyped ? `= ${said}` : "");
    note.classList.toggle("course-ask-fault", fault !== "");
    input.draw(typed, { isClosed, isWrong: fault !== "", isNew: typed !== sent });
    sent = typed;
  }

  input.node.addEventListener("change", send);
  return { draw, send, focus: input.focus, contains: (node) => line.contains(node) };
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
  add(title, "span", "course-ask-unit").textContent = unit;
  const value = () => node.value.trim();

  function draw(typed, { isClosed, isWrong, isNew }) {
    // A text that somebody is typing at the moment is not replaced.
    if (isNew && (document.activeElement !== node || node.value === "")) node.value = typed;
    node.disabled = isClosed;
    node.setAttribute("aria-invalid", String(isWrong));
  }
  return { node, value, draw, focus: () => node.focus() };
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

  function draw(typed, { isClosed }) {
    for (const button of buttons) {
      button.checked = button.value === typed;
      button.disabled = isClosed;
    }
  }
  return { node, value, draw, focus: () => (chosen() ?? buttons[0]).focus() };
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
const CONTROLS = ".course-ask, button, input[type=radio]";

function keepKeys({ target, shiftKey, ctrlKey, altKey, metaKey }) {
  const field = target.closest?.(".course-ask");
  if (!field) return;
  field.removeAttribute(FORBIDS); // which it got if the last key was pressed on the field itself
  const isCommand = shiftKey || ctrlKey || altKey || metaKey;
  target.toggleAttribute(FORBIDS, target.matches(CONTROLS) && !isCommand);
}

if (!window.courseAskKeys) {
  window.courseAskKeys = keepKeys; // once for a page, however often this file is loaded
  window.addEventListener("keydown", keepKeys, true);
}

export default { render };
