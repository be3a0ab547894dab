// The guesses of a page: the same field as in the notebook, what was typed kept in this browser,
// and at the answer the picture that the page has for the guess.
import field from "./field.js";
import { asRead, factorText, inWords, numberText, read, threeDigits } from "./numbers.js";
import { noteMet } from "./met.js";
import tables from "./tables.js";
import { template, translated } from "./words.js";

// The same in each language: "01_floats.zh_CN.html" is the page "01_floats.html".
const PAGE = location.pathname.replace(/\.[a-z]{2,3}(_[A-Z]{2})?\.html$/, ".html");
const KEPT = `guesses on ${PAGE}`;
const KEPT_SHOWN = `shown on ${PAGE}`;
const CLOSED = template("Your guess stays as it was when Show was pressed.");
const CLOSED_WITHOUT = template("Show was pressed before there was a guess.");
const NO_ANSWER = template(
  "What you typed could not be taken as an answer, so it does not count as a guess.",
);
const CAN_CHANGE = template("You can change it, and the answer below changes with it.");
// The words of field.js, which are English in the table.
const LABELS = Object.fromEntries(
  Object.entries(tables.labels).map(([name, english]) => [name, translated(english)]),
);
const WITH_A_PREFIX = ["GB", "TFLOP/s"];
const MOST_LETTERS = 10; // of a number with its unit at a mark
const LEFT = 6; // the ends of an axis without 0 and infinity, in percent of the width
const RIGHT = 94;
// How many times off a guess in a wrong unit is: percent for a share, kB or KiB for bytes.
const FACTORS_OF_UNITS = [100];
for (const power of [1, 2, 3, 4]) FACTORS_OF_UNITS.push(1000 ** power, 1024 ** power);

const typed = { ...keptUnder(KEPT) }; // by the guess, and by the name of the question
const BELOW_ZERO = /^\s*[-−]([^-−+]+)$/; // a minus sign, and one number
const shown = { ...keptUnder(KEPT_SHOWN) }; // by the guess, whether Show was pressed below it
const said = {}; // the numbers or options that were typed, in the same way

// A private window may keep nothing, and something else may have been written there.
function keptUnder(key) {
  try {
    return JSON.parse(localStorage.getItem(key));
  } catch {
    return null;
  }
}

function keep() {
  try {
    localStorage.setItem(KEPT, JSON.stringify(typed));
    localStorage.setItem(KEPT_SHOWN, JSON.stringify(shown));
  } catch {
    // The guess then lasts until the page is closed.
  }
}

// Make the field of a guess, in the element that has its name, unit and lines. A line is a question.
export function begin(element) {
  const { name, unit, between, lines } = JSON.parse(element.dataset.ask);
  const fold = foldBelow(element);
  typed[name] = { ...typed[name] };
  said[name] = {};
  const states = lines.map((line) => stateOf(line, String(typed[name][line.name] ?? "")));
  // Show settles a guess. Whoever had none can make one when the page is loaded again.
  let isClosed = Boolean(shown[name]) && isGuessed();
  if (isClosed) fold.open = true;
  const listeners = [];
  const model = { get: (what) => values()[what], on: (_, call) => listeners.push(call), send };

  // What field.js shows, as Python has it in the notebook.
  function values() {
    const words = sentenceBelow();
    const now = { has_gone_on: fold.open, is_closed: isClosed, words, failure: "" };
    return { lines: states, unit, between, labels: LABELS, ...now };
  }

  function sentenceBelow() {
    if (isClosed && isGuessed()) return translated(CLOSED);
    // The fault of a text that is no guess says more.
    if (isClosed) return states.some(({ fault }) => fault) ? "" : translated(CLOSED_WITHOUT);
    // A fold can also be opened by a link to what is in it.
    return fold.open && isGuessed() ? translated(CAN_CHANGE) : "";
  }

  function isGuessed() {
    return lines.some((line) => line.name in said[name]);
  }

  // The state of a line with this text in it. A text that makes sense is noted as the guess.
  function stateOf(line, text) {
    const state = { ...line, typed: text, said: "", number: null, fault: "" };
    try {
      if (text) {
        said[name][line.name] = line.options.length ? optionOf(line, text) : numberOf(text);
        typed[name][line.name] = text;
      }
    } catch (error) {
      state.fault = error.message;
    }
    const number = said[name][line.name];
    if (number === undefined) return state;
    state.said = line.options.length ? number : asRead(number, unit, typed[name][line.name]);
    state.number = line.options.length ? null : number;
    return state;
  }

  // A part of a sum can be below 0; see OpenParts in engine/guessing/bars.py.
  function numberOf(text) {
    const below = between && BELOW_ZERO.exec(text);
    try {
      return read(text, unit);
    } catch (error) {
      if (!below) throw error;
    }
    return -read(below[1], unit);
  }

  // What the field sends: a text that was typed into a line, or that Show was pressed.
  function send({ say, show }) {
    if (show) settle();
    if (say && !isClosed) {
      const at = lines.findIndex((line) => line.name === say.name);
      if (!say.typed) forget(say.name);
      states[at] = stateOf(lines[at], say.typed);
      keep();
      showAnswers(name);
    }
    if (fold.open) noteAllMet();
    for (const listener of listeners) listener();
  }

  // What Show does. A text that was refused gives way to the guess before it. Without one, the text
  // stays, and a sentence says that it does not count.
  function settle() {
    lines.forEach((line, at) => {
      if (!states[at].fault) return;
      if (line.name in said[name]) states[at] = stateOf(line, String(typed[name][line.name]));
      else states[at].fault = translated(NO_ANSWER);
    });
    fold.open = true;
    isClosed = true;
    shown[name] = true;
    keep();
    requestAnimationFrame(leadToAnswer); // when the space below the field is gone
  }

  // Bring the answer into the window, unless it is so far down that the field would leave it.
  function leadToAnswer() {
    const answer = document.querySelector(`[data-answers~="${name}"] .answer`);
    if (!answer?.checkVisibility()) return;
    const { top } = element.getBoundingClientRect();
    const { bottom } = answer.getBoundingClientRect();
    if (bottom - top <= innerHeight) answer.scrollIntoView({ block: "nearest" });
  }

  // Whoever sees the answer has met what was asked, and it comes back on another day.
  function noteAllMet() {
    for (const line of lines) {
      const guess = said[name][line.name];
      const word = guess === undefined ? "" : wordOf(name, line.name, guess);
      if (word) noteMet(line.name, word);
    }
  }

  // An emptied field is no guess.
  function forget(question) {
    delete said[name][question];
    delete typed[name][question];
  }

  fold.addEventListener("toggle", () => send({}));
  fold.classList.add("has-field"); // whose button Show is in place of the fold's own
  element.replaceChildren();
  field.render({ model, el: element });
  showAnswers(name);
}

// What was kept may be an option of an earlier version.
function optionOf({ options }, text) {
  if (options.includes(text)) return text;
  throw new Error(translated("Choose one of these: {options}.", { options: options.join(", ") }));
}

// The fold after the element. `render.py` puts one behind each guess.
function foldBelow(element) {
  let below = element.nextElementSibling;
  while (!below.matches(".fold")) below = below.nextElementSibling;
  return below;
}

// Show the pictures of the answers to that guess, and fold their tables; or the tables alone. Of a
// single question, the picture has one row only, so a table with more rows stays open.
function showAnswers(name) {
  for (const answer of document.querySelectorAll(`[data-answers~="${name}"] .answer`)) {
    const questions = JSON.parse(answer.dataset.questions);
    const guesses = questions.map((question) => said[question.guess]?.[question.name]);
    const isGuessed = guesses.some((guess) => guess !== undefined);
    const seen = answer.querySelector(".seen");
    const numbers = answer.querySelector(".numbers");
    const hasMore = questions.length === 1 && numbers.querySelectorAll("tr").length > 2;
    if (seen.hidden === isGuessed) numbers.open = !isGuessed || hasMore;
    numbers.querySelector("summary").hidden = !isGuessed;
    seen.hidden = !isGuessed;
    seen.replaceChildren();
    if (isGuessed) seen.append(...pictureOf(answer, questions, guesses));
  }
}

// The nodes of the picture that fits the guesses: that of the chosen option, or the one whose axis
// has a place for most of the numbers. Below the picture of one guess stands a sentence on it.
function pictureOf(answer, questions, guesses) {
  const templates = [...answer.querySelectorAll("template")];
  if ("option" in templates[0].dataset) {
    const ofOption = templates.find((template) => template.dataset.option === guesses[0]);
    return [ofOption.content.cloneNode(true)];
  }
  const axes = templates.map((template) => JSON.parse(template.dataset.axis));
  const numbers = guesses.filter((guess) => guess !== undefined);
  const placesOn = axes.map((axis) => numbers.filter((number) => hasPlace(axis, number)).length);
  const at = placesOn.indexOf(Math.max(...placesOn)); // the first picture with the most guesses
  const picture = templates[at].content.cloneNode(true);
  const sentences = questions.map((question, nth) => {
    const parts = partsOf(picture, nth);
    if (guesses[nth] === undefined) return leaveOut(parts, question);
    return fillIn(parts, question, guesses[nth], axes[at]);
  });
  if (questions.length > 1) return [picture];
  const below = document.createElement("p");
  below.textContent = sentences[0];
  return [picture, below];
}

// The parts of the picture that depend on the guess at the nth question. The number of the guess is
// in a label if there is one question, else behind the measured number, with how far off it is.
function partsOf(picture, nth) {
  const part = (name) => picture.querySelectorAll(`[data-guess="${name}"]`)[nth];
  const line = picture.querySelectorAll("svg[role=img]")[nth];
  const [word, mark, label, said, how] = ["word", "mark", "label", "said", "how"].map(part);
  return { line, word, mark, label, said, how };
}

// Hide the parts of a question without a guess.
function leaveOut({ line, word, mark, label, said: number, how }, question) {
  const gaps = { name: question.name, words: question.words };
  line.setAttribute("aria-label", translated("{name}: {words}", gaps));
  for (const part of [word, mark, label, number, how]) if (part) part.style.display = "none";
  return "";
}

// Put the guess into the parts of its picture; returns a sentence on how close it is.
function fillIn({ line, word, mark, label, said: number, how }, asked, guess, axis) {
  const question = onAxis(asked, axis);
  const closeness = wordFor(question, guess);
  word.textContent = translated(closeness);
  word.style.background = tables.colours[closeness];
  const place = placeOf(axis, guess);
  mark.setAttribute("cx", `${place}%`);
  if (label) placeLabel(label, place, guess, question.unit);
  const said = inWords(guess, question.unit);
  if (number) number.textContent = translated(", your guess {said}", { said });
  if (how) how.textContent = differenceOf(question, guess, closeness);
  const words = inASentence(closeness, howFar(question, guess, closeness));
  line.setAttribute("aria-label", spoken(question, said, words));
  return ended(words);
}

// The question with the unit of the picture's numbers; see Axis.unit_for in core/say/axis.py.
function onAxis(question, { lowest, highest }) {
  const isNear = lowest >= -3 && highest >= 0 && highest - lowest <= 4;
  if (!isNear || !WITH_A_PREFIX.includes(question.unit)) return question;
  return { ...question, ...question.kept, unit: `${question.unit} ` };
}

// What a screen reader says of the picture; see core/say/spoken.py.
function spoken({ name, kind, words: measured, first, predicted }, said, words) {
  const gaps = { asked: name, said, kind: translated(kind), measured, words };
  if (first === kind) {
    return translated("{asked}: your guess {said}, {kind} {measured}. {words}", gaps);
  }
  return translated("{asked}: your guess {said}, {first} {predicted}, {kind} {measured}. {words}", {
    ...gaps,
    first: translated(first),
    predicted,
  });
}

// The word for a guess in the answer to it; empty if the page has no answer to that question.
function wordOf(name, item, guess) {
  for (const answer of document.querySelectorAll(`[data-answers~="${name}"] .answer`)) {
    const asked = JSON.parse(answer.dataset.questions);
    const question = asked.find((one) => one.guess === name && one.name === item);
    if (question) return wordFor(question, guess);
  }
  return "";
}

// The word for a guess: that of the first bounds which it is within, or whether an option is right.
function wordFor({ bounds, right }, guess) {
  if (bounds === undefined) return guess === right ? "spot on" : "missed";
  const found = bounds.find(([low, high]) => low <= guess && guess <= high);
  return found ? found[2] : "far";
}

// How far off a guess is, in words; both numbers where no difference says it.
export function howFar(question, guess, closeness) {
  return differenceOf(question, guess, closeness) || bothNumbers(question, guess, closeness);
}

const capital = (words) => words[0].toUpperCase() + words.slice(1);

// The word for a guess, and how far off it is.
export function inASentence(closeness, howFarOff) {
  const word = capital(translated(closeness));
  return translated("{word}: {how_far}", { word, how_far: howFarOff });
}

// The words with a full stop, unless they end in a question mark; "？" is that of Chinese.
export const ended = (words) => (/[?？]$/.test(words) ? words : translated("{words}.", { words }));

// Write the guess at its mark. Words that are too long stand there without the unit.
function placeLabel(label, place, guess, unit) {
  const words = inWords(guess, unit);
  label.lastElementChild.textContent = words.length <= MOST_LETTERS ? words : inWords(guess, "");
  label.setAttribute("x", `${place}%`);
  // Within the picture, also on a phone.
  const anchor = place < 33 ? "start" : place > 67 ? "end" : "middle";
  label.setAttribute("text-anchor", anchor);
}

// The place of a number between the left and the right end, in percent; see Axis in picture.py.
function placeOf(axis, number) {
  if (!axis.is_linear && number <= 0) return number === 0 ? LEFT : LEFT / 2;
  const at = axis.is_linear ? number : Math.log10(number);
  const share = (at - axis.lowest) / (axis.highest - axis.lowest);
  const within = Math.min(1, Math.max(0, share));
  return Math.round(100 * (axis.left + (axis.right - axis.left) * within)) / 100;
}

// Whether the number is within the axis. On a logarithmic one, 0 has a place only at a left end of
// its own.
function hasPlace(axis, number) {
  if (!axis.is_linear && number <= 0) return axis.left > LEFT;
  const at = axis.is_linear ? number : Math.log10(number);
  return axis.lowest <= at && at <= axis.highest;
}

// Whether the other number is called by how it was found, such as "measured", or with other words,
// such as "with a step".
const isParticiple = ({ kind }) => /(ed|found)$/.test(kind);

// Both numbers, for a guess that is spot on, or where no other words say how far off it is.
function bothNumbers(question, guess, closeness) {
  const { unit } = question;
  const said = inWords(guess, unit);
  const by = judgedBy(question, guess);
  const measured = by.measured === question.measured ? question.words : inWords(by.measured, unit);
  const kind = translated(by.kind);
  if (closeness === "spot on") {
    return said === measured ? measured : translated("{said} for {measured}", { said, measured });
  }
  const gaps = { said, kind, measured };
  return isParticiple(by)
    ? translated("you said {said}, and what was {kind} is {measured}", gaps)
    : translated("you said {said}, and the number {kind} is {measured}", gaps);
}

// How far off the guess is, in the words that fit its unit, or nothing; see Guess in
// core/say/guesses.py.
function differenceOf(question, guess, closeness) {
  const { whole } = question;
  const { measured, kind } = judgedBy(question, guess);
  if (measured === null || closeness === "spot on") return "";
  const apart = guess - measured;
  const isHigh = apart > 0;
  if (whole === 1 || whole === 100) {
    const points = threeDigits((Math.abs(apart) * 100) / whole);
    return isHigh
      ? translated("{points} points too high", { points })
      : translated("{points} points too low", { points });
  }
  if (question.counted && closeness !== "far" && Number.isInteger(apart)) {
    const number = inWords(Math.abs(apart), question.unit);
    return isHigh
      ? translated("{number} too many", { number })
      : translated("{number} too few", { number });
  }
  if (whole || (closeness === "close" && Math.abs(apart) === 1)) {
    const number = threeDigits(Math.abs(apart));
    return isHigh
      ? translated("{number} too high", { number })
      : translated("{number} too low", { number });
  }
  const ratio = guess / measured;
  if (!(ratio > 0 && ratio < Infinity)) return "";
  const off = Math.max(ratio, 1 / ratio);
  if (off === Infinity) return "";
  // "0.333 times" would have to be turned round by the reader; "0.9 times" reads well.
  return `${closeness === "close" ? times({ kind }, ratio) : factor(off, isHigh)}${hint(off)}`;
}

// The number by which a guess is judged, with its name: between two estimates, it is right.
function judgedBy({ measured, other, kind, first }, guess) {
  if (typeof other !== "number") return { measured, kind };
  const least = Math.min(measured, other);
  const nearest = Math.min(Math.max(guess, least), Math.max(measured, other));
  return { measured: nearest, kind: nearest === measured ? kind : first };
}

// The ratio of a guess that is not far off.
function times(question, ratio) {
  const words = translated("{ratio} times", { ratio: threeDigits(ratio) });
  const gaps = { times: words, kind: translated(question.kind) };
  return isParticiple(question)
    ? translated("{times} what was {kind}", gaps)
    : translated("{times} the number {kind}", gaps);
}

// The ratio of a guess that is far off.
function factor(off, isHigh) {
  const gaps = { factor: factorText(off) };
  return isHigh
    ? translated("a factor of {factor} too large", gaps)
    : translated("a factor of {factor} too small", gaps);
}

// A question about the unit, if the guess is off by about as much as one unit is from another.
function hint(off) {
  const mayBeAnotherUnit = FACTORS_OF_UNITS.some((size) => Math.abs(off / size - 1) < 0.12);
  return mayBeAnotherUnit ? translated(". Is it in the unit that was asked for?") : "";
}
