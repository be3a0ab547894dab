// What the room guessed: the wall, the start page and the page after the lecture, with the picture
// that they share. Words of questions and guesses become text, never markup.
//
// A state comes from the room's process. It has the question's words, unit and choices; its rounds,
// each a list of [value, count]; and, once it is revealed, the answer with its bands.
"use strict";
(() => {
const POLL_MS = 500;
const ARRIVED_MS = 700;  // from the answer on the wall to the message to the presenter's page
const SURE_MS = 5000;  // within which a second click on "Begin anew" confirms the first
const ALONE_MS = 1500;  // a wall that gets no message to begin does so by itself after that
const MINUTE_MS = 60_000;
const FEW = 5;  // a round of fewer guesses is not shown after the lecture
const MOST_BINS = 30;
const MOST_DECADES = 8;  // a guess further from the median is not on the axis
const NEAR = 0.005;  // a guess counts as the tempting answer if it is off by a smaller share

const byId = (id) => document.getElementById(id);

// Numbers and words.

const ASCII_DIGITS = "-0123456789";
const RAISED_DIGITS = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹";

// The power in raised digits: -3 becomes ⁻³.
function raised(power) {
  const digits = [...String(power)];
  return digits.map((digit) => RAISED_DIGITS[ASCII_DIGITS.indexOf(digit)]).join("");
}

// The number as the wall shows it: 1,234 and 0.5; very large and very small ones as 1.2 · 10⁹.
function number(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) {
    const [digits, power] = value.toExponential(2).split("e");
    const factor = Number(digits);
    const powerOfTen = `10${raised(Number(power))}`;
    return factor === 1 ? powerOfTen : `${factor} · ${powerOfTen}`;
  }
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 100 ? 7 : 3 });
}

function percent(part, all) {
  return `${Math.round((100 * part) / all)} %`;
}

// As in "1 phone" and "2 phones".
function counted(count, what) {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}

// How many guesses a round has.
function total(round) {
  let sum = 0;
  for (const [, count] of round) sum += count;
  return sum;
}

function isNumbers(state) {
  return state.choices.length === 0;
}

function hasAnswer(state) {
  return state.measured !== null && state.measured !== undefined;
}

// The bands that count as right: for numbers one or two, as [lowest, highest, words]; for choices
// one that has only words.
function bandsOf(state) {
  if (isNumbers(state)) return state.bands ?? [];
  return [[null, null, "Right"]];
}

function isIn(state, [low, high], value) {
  if (isNumbers(state)) return value >= low && value <= high;
  return value === state.measured;
}

// For each round, the percentage of guesses in the band; null where nobody guessed.
function shares(state, band) {
  return state.rounds.map((round) => {
    const all = total(round);
    const right = total(round.filter(([value]) => isIn(state, band, value)));
    return all ? percent(right, all) : null;
  });
}

// The sentence below the picture, as in "Within 2 times: 40 % of the room, then 60 %". It has no
// rounds in which nobody guessed.
function sentence(state) {
  if (!state.rounds.some(total)) return "Nobody guessed.";
  if (!hasAnswer(state)) return "";
  const parts = bandsOf(state).map((band, n) => {
    const [, , words] = band;
    const [first, second] = shares(state, band).filter((share) => share !== null);
    const ofRoom = n === 0 ? " of the room" : "";
    const then = second ? `, then ${second}` : "";
    return `${words}: ${first}${ofRoom}${then}`;
  });
  return parts.join(" · ");
}

// The last question among the sentences, and some of those before it if it is short: the notebook's
// own text is out of view.
function shortened(words) {
  const sentences = words.split(/(?<=[.?!][)"]?)\s+/);
  // Two short sentences stay whole: the first may have a number that the question needs.
  if (sentences.length <= 2 && words.length < 240) return words.replace(/\s+/g, " ");
  const asks = sentences.findLastIndex((text) => /\?[)"]?$/.test(text));
  let from = asks;
  let kept = sentences.at(asks);
  while (from > 0 && kept.length < 90 && kept.length + sentences[from - 1].length < 200) {
    from -= 1;
    kept = `${sentences[from]} ${kept}`;
  }
  // The last paragraph may say which of several is asked, or how to write it.
  const last = words.split("\n\n").at(-1);
  if (!/[?.:;!][)"]?$/.test(last) && !kept.includes(last)) kept += ` (${last})`;
  return kept.replace(/\s+/g, " ");
}

// The median of a round's numbers: the middle guess, or the mean of the two in the middle.
function median(round) {
  const numbers = round.filter(([value]) => typeof value === "number");
  numbers.sort(([a], [b]) => a - b);
  const middle = (total(numbers) - 1) / 2;
  const lower = valueAt(numbers, Math.floor(middle));
  const upper = valueAt(numbers, Math.ceil(middle));
  return lower / 2 + upper / 2;  // the sum of two very large numbers would be Infinity
}

// The value of that rank among the guesses, which are ordered and counted from 0.
function valueAt(ordered, rank) {
  let before = 0;
  for (const [value, count] of ordered) {
    before += count;
    if (before > rank) return value;
  }
  return NaN;
}

// The picture, in thousandths of its width.

// An element of SVG.
function node(name, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== "") made.textContent = text;
  return made;
}

// The picture of a question's guesses, and of the answer once there is one.
function drawing(state, height) {
  const svg = node("svg", { viewBox: `0 0 1000 ${height}`, role: "img" });
  svg.setAttribute("aria-label", described(state));
  if (isNumbers(state)) {
    drawNumbers(svg, state, height);
  } else {
    drawChoices(svg, state, height);
  }
  return svg;
}

// The answer, behind the word of the notebook's table for it: measured, reported, calculated.
function answered(state) {
  return `${state.how ?? "measured"}: ${state.shown}`;
}

// The picture in words, for a screen reader.
function described(state) {
  const rounds = state.rounds.map((round, n) => {
    const name = n ? "second" : "first";
    const guesses = round.map(([value, count]) => `${value} ${count} times`);
    return `${name} round: ${guesses.join(", ")}`;
  });
  const answer = hasAnswer(state) ? `${answered(state)}. ${sentence(state)}` : "";
  return `${rounds.join("; ")}. ${answer}`;
}

// The class of a round's bars: the last round has the strong colour, even if it is the only one.
function roundClass(state, n) {
  return n === state.rounds.length - 1 ? "second" : "first";
}

// Numbers: bars over a logarithmic axis.

// The logarithms of all guesses above 0, in order.
function logarithms(state) {
  const logs = [];
  for (const round of state.rounds) {
    for (const [value, count] of round) {
      if (value > 0) {
        for (let n = 0; n < count; n++) logs.push(Math.log10(value));
      }
    }
  }
  return logs.sort((a, b) => a - b);
}

// The lowest and the highest logarithm, without guesses that are far from all others: those are
// mostly jokes.
function withoutJokers(logs) {
  const quantile = (share) => logs[Math.round(share * (logs.length - 1))];
  const lower = quantile(0.1);
  const middle = quantile(0.5);
  const upper = quantile(0.9);
  const reach = Math.max(1.5 * (upper - lower), 1.5);
  const inside = logs.filter((log) => {
    // In a small room one joke is more than a tenth of the guesses, so the distance to the median
    // counts, too.
    const isNearMiddle = Math.abs(log - middle) <= MOST_DECADES;
    return log >= lower - reach && log <= upper + reach && isNearMiddle;
  });
  return [inside[0], inside[inside.length - 1]];
}

// The axis: `low` is the logarithm at its left end, `step` a bar's width, and `bins` the number of
// bars.
function scale(state) {
  const logs = logarithms(state);
  const answer = hasAnswer(state) && state.measured > 0 ? Math.log10(state.measured) : null;
  if (!logs.length && answer === null) return { low: 0, step: 0.1, bins: 10 };
  let [low, high] = logs.length ? withoutJokers(logs) : [answer, answer];
  if (answer !== null) {
    low = Math.min(low, answer);
    high = Math.max(high, answer);
  }
  // Some space at both ends; and the narrowest bars of which there are not too many.
  low -= 0.2;
  high += 0.2;
  const steps = [0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20];
  const step = steps.find((width) => (high - low) / width <= MOST_BINS) ?? 50;
  // A bar's middle is over 1, 2, 4, 5, 8 and 10, not beside them; and once there is an answer, the
  // middle of one is over the answer.
  const shift = answer === null ? 0 : answer - Math.floor(answer / step) * step;
  low = (Math.floor((low - shift) / step) - 0.5) * step + shift;
  return { low, step, bins: Math.max(Math.ceil((high - low) / step), 1) };
}

// The numbers that are written below the axis: few enough to have room.
function ticks({ low, step, bins }) {
  const high = low + step * bins;
  const decades = high - low;
  const every = Math.max(1, Math.ceil(decades / 8));
  const found = [];
  for (let power = Math.ceil(low / every) * every; power <= high + 1e-9; power += every) {
    found.push(10 ** power);
  }
  if (decades <= 3.2) {
    const digits = decades < 0.9 ? [1.5, 2, 3, 4, 5, 7] : [2, 5];
    for (let power = Math.floor(low); power <= high; power++) {
      for (const digit of digits) {
        const log = power + Math.log10(digit);
        if (log >= low && log <= high) found.push(digit * 10 ** power);
      }
    }
  }
  return found.sort((a, b) => a - b);
}

const LOW_X = 60;  // the middle of the bar of guesses that a logarithmic axis does not have
const LOW_WIDTH = 70;

// Whether a logarithmic axis has no place for the value.
function isLow(value) {
  return !(value > 0);
}

// The geometry of the picture of numbers; `x` is a function from a number to its place.
function planned(state, height) {
  const { low, step, bins } = scale(state);
  const isGuessedLow = state.rounds.some((round) => round.some(([value]) => isLow(value)));
  const hasLow = isGuessedLow || (hasAnswer(state) && state.measured <= 0);
  const left = hasLow ? 130 : 25;
  const right = 975;
  const width = (right - left) / bins;  // of a bar
  const x = (value) => left + ((Math.log10(value) - low) / step) * width;
  const top = hasAnswer(state) ? 60 : 26;
  const base = height - 62;
  return { low, step, bins, hasLow, left, right, width, x, top, base, height };
}

// `columns` has for each round the number of guesses in each bar; the first bar has those of 0 or
// less. `alone` has for each bar the value that all its guesses share, NaN if they differ, and null
// if it has none. `outside` has how many guesses are beyond each end of the axis.
function binned(state, { low, step, bins }) {
  const alone = new Array(bins + 1).fill(null);
  const outside = [0, 0];
  const columns = state.rounds.map((round) => {
    const column = new Array(bins + 1).fill(0);
    for (const [value, count] of round) {
      if (isLow(value)) {
        column[0] += count;
        continue;
      }
      // The 1e-9 keeps a guess on the border of two bars in the upper one, whatever is rounded.
      const bin = Math.floor((Math.log10(value) - low) / step + 1e-9);
      // A guess beyond an end of the axis is counted in the bar at that end.
      if (bin < 0) outside[0] += count;
      if (bin >= bins) outside[1] += count;
      const shown = Math.min(Math.max(bin, 0), bins - 1) + 1;
      column[shown] += count;
      const isOther = alone[shown] !== null && alone[shown] !== value;
      // A guess that is beyond the axis is not at the place of its bar, so it counts as different.
      alone[shown] = bin + 1 !== shown || isOther ? NaN : value;
    }
    return column;
  });
  return { columns, alone, outside };
}

function drawNumbers(svg, state, height) {
  const picture = planned(state, height);
  const { columns, alone, outside } = binned(state, picture);
  const most = Math.max(1, ...columns.flat());
  const unit = (picture.base - picture.top) / most;
  const heightOf = (count) => count * unit;
  // A bar of equal guesses is drawn over their number, any other in the middle of its bin.
  const middleOf = (bin) => {
    if (bin === 0) return LOW_X;
    return alone[bin] ? picture.x(alone[bin]) : picture.left + (bin - 0.5) * picture.width;
  };
  drawBands(svg, state, picture);
  columns.forEach((column, n) => {
    const share = n > 0 ? 0.52 : 0.86;  // the second round's bars stand in those of the first
    column.forEach((count, bin) => {
      if (!count) return;
      const whole = bin ? picture.width : LOW_WIDTH;
      svg.append(node("rect", {
        class: roundClass(state, n),
        x: middleOf(bin) - (whole * share) / 2,
        width: whole * share,
        y: picture.base - heightOf(count),
        height: heightOf(count),
        rx: Math.min(4, whole / 6),
      }));
    });
  });
  drawAxis(svg, picture);
  drawUnit(svg, state, picture, outside);
  if (hasAnswer(state)) drawAnswer(svg, state, picture);
  const last = columns.at(-1) ?? [];
  const tallest = Math.max(0, ...last);
  if (tallest) {
    svg.append(node("text", {
      class: "halo",
      x: middleOf(last.indexOf(tallest)),
      y: picture.base - heightOf(tallest) - 5,
      "font-size": 20,
      "text-anchor": "middle",
    }, tallest));
  }
}

// The bands that count as right, behind the bars, as far as the axis has them.
function drawBands(svg, state, picture) {
  if (!hasAnswer(state) || isLow(state.measured)) return;
  for (const [from, to] of bandsOf(state)) {
    const start = Math.max(from > 0 ? picture.x(from) : picture.left, picture.left);
    const end = Math.min(picture.x(to), picture.right);
    svg.append(node("rect", {
      class: "band",
      x: start,
      width: Math.max(end - start, 0),
      y: picture.top,
      height: picture.base - picture.top,
    }));
  }
}

// The axis, with a label at each tick that has room for one.
function drawAxis(svg, picture) {
  const { base } = picture;
  const line = (x1, x2, y2) => node("line", { class: "axis", x1, x2, y1: base, y2 });
  const label = (x, words) =>
    node("text", { x, y: base + 28, "font-size": 20, "text-anchor": "middle" }, words);
  svg.append(line(picture.left, picture.right, base));
  let end = -Infinity;  // the right end of the label that was written last
  for (const tick of ticks(picture)) {
    const x = picture.x(tick);
    const words = number(tick);
    const half = words.length * 5.6;  // half the label's width, at about 11 for each character
    svg.append(line(x, x, base + 7));
    const isTooFarLeft = x - half < Math.max(end + 12, picture.left - 25);
    if (isTooFarLeft || x + half > 1000) continue;
    end = x + half;
    svg.append(label(x, words));
  }
  if (picture.hasLow) {
    svg.append(line(15, 105, base));
    svg.append(label(LOW_X, "0 or less"));
  }
}

// Below the axis: the unit, and how many guesses are beyond its ends.
function drawUnit(svg, state, picture, [toTheLeft, toTheRight]) {
  const beyond = [];
  if (toTheLeft) beyond.push(`${toTheLeft} further left`);
  if (toTheRight) beyond.push(`${toTheRight} further right`);
  const words = [];
  if (state.unit) words.push(state.unit);
  if (beyond.length) words.push(`(at the edge: ${beyond.join(", ")})`);
  svg.append(node("text", {
    class: "quiet",
    x: (picture.left + picture.right) / 2,
    y: picture.height - 8,
    "font-size": 20,
    "text-anchor": "middle",
  }, words.join("  ")));
}

// A line at the answer, and its words on the side where there is room.
function drawAnswer(svg, state, picture) {
  const x = isLow(state.measured) ? LOW_X : picture.x(state.measured);
  let anchor = "middle";
  if (x < 250) anchor = "start";
  if (x > 750) anchor = "end";
  svg.append(node("line", { class: "measured", x1: x, x2: x, y1: 28, y2: picture.base }));
  svg.append(node("text", {
    class: "measured halo",
    x,
    y: 21,
    "font-size": 22,
    "text-anchor": anchor,
  }, answered(state)));
}

// Choices: a row for each, with its words to the left.

function drawChoices(svg, state, height) {
  const row = Math.min(height / state.choices.length, 70);
  const size = Math.min(22, row * 0.5);
  const longest = Math.max(...state.choices.map((choice) => choice.length));
  // A character is about 0.56 times as wide as the font's size.
  const letters = longest + (hasAnswer(state) ? "answer: ".length + 1 : 0);
  const left = Math.min(Math.max(letters * size * 0.56, 90) + 20, 480);
  const room = 900 - left;
  const counts = state.rounds.map((round) =>
    state.choices.map((choice) => total(round.filter(([value]) => value === choice))));
  const most = Math.max(1, ...counts.flat());
  state.choices.forEach((choice, n) => {
    const middle = (n + 0.5) * row;
    const isRight = hasAnswer(state) && choice === state.measured;
    svg.append(node("text", {
      x: left - 12,
      y: middle + size * 0.35,
      "font-size": size,
      "text-anchor": "end",
      class: isRight ? "measured" : "",
    }, isRight ? `answer: ${choice}` : choice));
    svg.append(node("line", {
      class: "axis",
      x1: left,
      x2: left,
      y1: middle - row / 2,
      y2: middle + row / 2,
    }));
    let furthest = left;
    counts.forEach((ofRound, round) => {
      const share = round > 0 ? 0.42 : 0.76;
      const length = (ofRound[n] / most) * room;
      furthest = Math.max(furthest, left + length);
      if (!length) return;
      svg.append(node("rect", {
        class: roundClass(state, round),
        x: left,
        y: middle - (row * share) / 2,
        width: length,
        height: row * share,
        rx: 3,
      }));
    });
    const ofRounds = counts.map((ofRound) => ofRound[n]).join(" → ");
    svg.append(node("text", {
      x: furthest + 10,
      y: middle + size * 0.35,
      "font-size": size,
    }, ofRounds));
  });
}

// What all pages need.

// Send a request to the room's process: by POST if there is a body. Returns its reply.
async function request(path, body) {
  const options = { cache: "no-store" };
  if (body) {
    options.method = "POST";
    options.headers = { "Content-Type": "application/json" };
    options.body = JSON.stringify(body);
  }
  const response = await fetch(path, options);
  const reply = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(reply.error ?? String(response.status));
  return reply;
}

// Send a message to the page around this frame, which is JupyterLab's, if there is one.
function sendToPresenter(what) {
  if (window.parent !== window) window.parent.postMessage(`course-wall: ${what}`, "*");
}

// Ask the page around this frame for JupyterLab's theme. Without a reply, the browser's theme
// holds.
function followTheme() {
  sendToPresenter("theme");
}
addEventListener("message", ({ data, source }) => {
  if (source !== window.parent || !["true", "false"].includes(data)) return;
  document.documentElement.dataset.theme = data === "true" ? "light" : "dark";
});

// Whether this browser tab has remembered the key; it may not be allowed to remember anything.
function isRemembered(key) {
  try {
    return sessionStorage.getItem(key) !== null;
  } catch {
    return false;
  }
}

function remember(key) {
  try {
    sessionStorage.setItem(key, "1");
  } catch { /* not allowed */ }
}

// The wall.

function wall() {
  const all = [].concat(JSON.parse(decodeURIComponent(location.hash.slice(1) || "[]")));
  const isReveal = all.some((ask) => "measured" in ask);
  let asks = all;  // the questions; at a reveal, only those that the room was asked
  let current = 0;  // which of them is on the wall
  let state = null;
  let drawn = "";  // what the picture shows; it is drawn again only if that changes
  let minuteEnds = 0;
  let isBusy = false;
  let isNew = false;  // whether something is asked or revealed for the first time

  // The state of a question, which is asked or revealed now, unless the page is only loaded again.
  async function stateOf({ run, ...ask }) {
    const key = `${isReveal ? "revealed" : "asked"} ${ask.key} ${run}`;
    let now = null;
    if (isRemembered(key)) {
      now = await fetchState(ask).catch(() => null);
    } else {
      isNew = true;
    }
    now ??= await request(isReveal ? "reveal" : "ask", ask);
    remember(key);
    return now;
  }

  function fetchState(ask) {
    return request(`state?key=${encodeURIComponent(ask.key)}`);
  }

  // All answers are revealed at once. What the room was never asked is left out.
  async function begin() {
    if (isReveal) {
      const states = await Promise.all(asks.map(stateOf));
      asks = asks.filter((_, n) => states[n].rounds.length);
    }
    state = asks.length ? await stateOf(asks[current]) : null;
    show();
    if (isReveal && isNew && state) setTimeout(() => sendToPresenter("answer"), ARRIVED_MS);
    isNew = false;
  }

  function show() {
    followTheme();
    document.querySelector("main").hidden = !state;
    if (!state) return;
    const isShown = state.rounds.length > 0 && state.phase !== "asking";
    document.body.classList.toggle("shown", isShown);
    showCount();
    byId("item").textContent = itemWords();
    showButtons();
    showCrowd();
    if (state.phase === "revealed") stopMinute();
    byId("said").textContent = isShown ? sentence(state) : "";
    if (isShown) {
      showPicture();
    } else {
      byId("picture").replaceChildren();
      drawn = "";
    }
  }

  function showCount() {
    const count = state.count.toLocaleString("en");
    // A screen reader reads a text out again that is set again.
    if (byId("count").textContent !== count) byId("count").textContent = count;
    const again = state.round > 1 ? " again" : "";
    byId("counted-words").textContent = `guessed${again}, of ${counted(state.phones, "phone")}`;
  }

  function itemWords() {
    if (all.length > 1) return `${current + 1} of ${asks.length}: ${asks[current].item}`;
    return isReveal ? "" : shortened(state.words);
  }

  function nextMove() {
    if (state.phase === "asking") return "Show";
    if (state.phase === "shown" && state.round < 2) return "Guess again";
    return "";
  }

  function showButtons() {
    const label = nextMove();
    byId("move").hidden = !label;
    byId("move").textContent = label || "Show";
    byId("next").hidden = current + 1 >= asks.length || state.phase === "asking";
    byId("minute").hidden = state.phase === "revealed";
    const hasGuesses = state.count || state.left_out || state.rounds.length;
    byId("anew").hidden = isReveal || !hasGuesses;
  }

  // Many guesses from one address may be half of a class behind one router, or the script of one
  // person: the presenter knows, and decides.
  function showCrowd() {
    const { crowd, left_out: leftOut, count } = state;
    byId("crowd").hidden = !crowd && !leftOut;
    const guesses = leftOut === 1 ? "guess" : "guesses";
    byId("crowd").firstElementChild.textContent = leftOut
      ? `${leftOut} ${guesses} of one address left out.`
      : `${crowd} of ${count} guesses came from one address.`;
    byId("crowd").lastElementChild.textContent = leftOut ? "Count them again" : "Leave them out";
  }

  function showPicture() {
    const { width, height } = byId("picture").getBoundingClientRect();
    const size = [Math.round(width), Math.round(height)];
    const now = JSON.stringify([state.rounds, state.shown, state.phase, ...size]);
    if (now === drawn || height <= 20) return;
    const isEmpty = !hasAnswer(state) && !state.rounds.some(total);
    byId("picture").replaceChildren(isEmpty ? "" : drawing(state, (1000 * height) / width));
    drawn = now;
  }

  async function poll() {
    const wasNeverAsked = isReveal && !state?.rounds?.length;
    if (!isBusy && state?.rounds && !wasNeverAsked && !document.hidden) {
      try {
        state = await fetchState(asks[current]);
        show();
      } catch {
        byId("said").textContent = "No connection to the room's process. Was it stopped?";
      }
    }
    setTimeout(poll, POLL_MS);
  }

  // Let a button do this work. After a click by mouse, the presentation gets the keys again; if the
  // button was pressed by a key, the focus stays on it.
  function onClick(button, work) {
    button.addEventListener("click", async (event) => {
      isBusy = true;
      try {
        await work();
      } catch (error) {
        byId("said").textContent = error.message;
      }
      isBusy = false;
      const isByMouse = event.detail > 0;
      if (isByMouse) leave();
    });
  }

  // Give the focus, and so the keys, back to the presentation.
  function leave() {
    document.activeElement.blur();
    window.parent.focus();
    sendToPresenter("keys");
  }

  async function move(name) {
    state = await request("move", { key: state.key, move: name });
  }

  function startMinute() {
    minuteEnds = Date.now() + MINUTE_MS;
    tick();
  }

  function tick() {
    if (!minuteEnds) return;
    const seconds = Math.ceil((minuteEnds - Date.now()) / 1000);
    byId("clock").textContent = `${Math.max(0, seconds)} s`;
  }

  function stopMinute() {
    minuteEnds = 0;
    byId("clock").textContent = "";
  }

  // Dropped guesses do not come back, so the button asks once more.
  function askWhetherSure(isAsking) {
    byId("anew").classList.toggle("sure", isAsking);
    byId("anew").textContent = isAsking ? "Drop all guesses?" : "Begin anew";
  }

  async function beginAnew() {
    if (!byId("anew").classList.contains("sure")) {
      askWhetherSure(true);
      setTimeout(() => askWhetherSure(false), SURE_MS);
      return;
    }
    askWhetherSure(false);
    await move("anew");
    stopMinute();
    drawn = "";
    show();
  }

  onClick(byId("move"), async () => {
    await move(state.phase === "asking" ? "show" : "again");
    stopMinute();
    show();
  });
  onClick(byId("crowd").lastElementChild, async () => {
    await move(state.left_out ? "count all" : "leave out");
    show();
  });
  onClick(byId("anew"), beginAnew);
  onClick(byId("next"), async () => {
    current += 1;
    drawn = "";
    await begin();
  });
  onClick(byId("minute"), startMinute);
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") leave();
  });
  addEventListener("resize", () => {
    drawn = "";
    show();
  });
  setInterval(tick, 200);

  let hasBegun = false;
  async function beginOnce() {
    if (hasBegun) return;
    hasBegun = true;
    try {
      await begin();
    } catch {
      byId("said").textContent = "No connection to the room's process.";
    }
    poll();
  }

  document.querySelector("main").hidden = true;
  if (!asks.length) return;
  // JupyterLab's page sends a message when to begin. Where no page is around this one, or another
  // one that sends nothing, the wall begins by itself.
  addEventListener("message", ({ data, source }) => {
    if (source === window.parent && data === "begin") beginOnce();
  });
  sendToPresenter("begin");
  setTimeout(beginOnce, window.parent === window ? 0 : ALONE_MS);
}

// The start page.

async function start() {
  try {
    const { phones } = await request("phones");
    byId("phones").textContent = phones ? `${counted(phones, "phone")} here` : "Nobody here yet";
  } catch {
    byId("phones").textContent = "No connection to the room's process.";
  }
  setTimeout(start, 2 * POLL_MS);
}

// The page after the lecture.

function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

// A table of HTML from rows of texts or of elements; the first row is the head. An empty cell there
// is no heading, or a screen reader would announce a column without a name.
function table(rows) {
  const made = document.createElement("table");
  rows.forEach((row, n) => {
    const line = made.insertRow();
    for (const cell of row) {
      const tag = n === 0 && cell !== "" ? "th" : "td";
      line.append(cell instanceof Node ? cell : element(tag, cell));
    }
  });
  return made;
}

// Whether a guess counts as that wrong answer.
function isNear(value, wrong) {
  if (value === wrong) return true;
  return typeof wrong === "number" && Math.abs(value / wrong - 1) <= NEAR;
}

// For each tempting answer: the answer, how many gave it in each round, and what speaks against it.
function tempted(state) {
  const rows = [];
  for (const [wrong, advice] of state.tempting ?? []) {
    const given = state.rounds.map((round) => {
      if (total(round) < FEW) return "–";
      return total(round.filter(([value]) => isNear(value, wrong)));
    });
    const name = typeof wrong === "number" ? number(wrong) : String(wrong);
    rows.push([name, ...given, advice]);
  }
  return rows;
}

// A row for each round: how many guessed, the median, and how many percent are in each band.
function roundRows(state) {
  const bands = hasAnswer(state) ? bandsOf(state) : [];
  const head = ["", "guesses"];
  if (isNumbers(state)) head.push("median");
  for (const [, , words] of bands) head.push(words.toLowerCase());
  const rows = state.rounds.map((round, n) => {
    const name = element("td", n ? "second round" : "first round");
    name.prepend(element("span", "", `swatch ${roundClass(state, n)}`));
    if (total(round) < FEW) {
      const few = element("td", "fewer than five guessed");
      few.colSpan = head.length - 1;
      return [name, few];
    }
    const row = [name, total(round)];
    if (isNumbers(state)) row.push(`${number(median(round))} ${state.unit}`);
    for (const band of bands) row.push(shares(state, band)[n]);
    return row;
  });
  return [head, ...rows];
}

// The section of a question on the page after the lecture.
function question(state) {
  const section = document.createElement("section");
  const title = element("h2", state.words);
  title.append(element("span", `  ${state.key}`, "key"));
  section.append(title);
  if (!state.rounds.length) section.append(element("p", "It was never shown.", "quiet"));
  const hasEnough = (round) => total(round) >= FEW;
  const isSeen = state.rounds.some(hasEnough);
  if (isSeen) {
    const seen = { ...state, rounds: state.rounds.map((round) => (hasEnough(round) ? round : [])) };
    section.append(drawing(seen, isNumbers(state) ? 300 : 40 * state.choices.length));
  } else if (hasAnswer(state)) {
    section.append(element("p", answered(state)));
  }
  if (state.rounds.length) section.append(table(roundRows(state)));
  const wrong = isSeen ? tempted(state) : [];
  if (wrong.length) {
    const rounds = state.rounds.map((_, n) => (n ? "second" : "first"));
    section.append(table([["tempting answer", ...rounds, "what speaks against it"], ...wrong]));
  }
  return section;
}

function kept() {
  const states = JSON.parse(byId("data").textContent);
  byId("questions").replaceChildren(...states.map(question));
  if (!states.length) byId("questions").append(element("p", "Nothing was asked yet."));
  const isServed = location.pathname.endsWith("/kept.html");
  if (!isServed) return;  // a page that was saved is a file, and has no server to save it again
  byId("keep").hidden = states.length === 0;
  byId("keep").querySelector("button").addEventListener("click", keep);
}

async function keep() {
  const message = byId("keep").querySelector("span");
  try {
    const { saved } = await request("keep", {});
    message.textContent = `Saved: rooms/${saved}, and the same as .csv`;
  } catch (error) {
    message.textContent = error.message;
  }
}

const pages = { wall, start, kept };
pages[document.body.dataset.page]();
})();
