// What the room guessed, drawn for the wall, the start page and the page after the lecture. Words of questions and
// guesses become text, never markup.
"use strict";
(() => {
const POLL_MS = 500, ARRIVED_MS = 700, SURE_MS = 5000, ALONE_MS = 1500, FEW = 5, MOST_BINS = 30, MOST_DECADES = 8, NEAR = 0.005;
const at = (id) => document.getElementById(id);

// Numbers and words.

function number(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e7 || size < 1e-3)) {
    const [digits, power] = value.toExponential(2).split("e");
    const raised = [...String(Number(power))].map((one) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(one)]).join("");
    return Number(digits) === 1 ? `10${raised}` : `${Number(digits)} · 10${raised}`;
  }
  return value.toLocaleString("en", { maximumSignificantDigits: size >= 100 ? 7 : 3 });
}

const total = (round) => round.reduce((sum, [, count]) => sum + count, 0);
const isNumbers = (state) => state.choices.length === 0;
const percent = (part, all) => `${Math.round((100 * part) / all)} %`;
const counted = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

// What counts as right: of numbers, one or two bands of the answer's own, each with the words for it.
const hasAnswer = (state) => state.measured !== null && state.measured !== undefined;
const bandsOf = (state) => (isNumbers(state) ? state.bands ?? [] : [[null, null, "Right"]]);
const isIn = (state, [low, high], value) => (isNumbers(state) ? value >= low && value <= high : value === state.measured);

function shares(state, band) {
  return state.rounds.map((round) => {
    const all = total(round), good = total(round.filter(([value]) => isIn(state, band, value)));
    return all ? percent(good, all) : null;
  });
}

function sentence(state) {
  if (!state.rounds.some(total)) return "Nobody guessed.";
  if (!hasAnswer(state)) return "";
  return bandsOf(state).map((band, n) => {
    const [first, second] = shares(state, band).filter((one) => one !== null);
    return `${band[2]}: ${first}${n ? "" : " of the room"}${second ? `, then ${second}` : ""}`;
  }).join(" · ");
}

// The sentence that asks, and as much before it as a short one needs: the text above has left the wall.
function shortened(words) {
  const sentences = words.split(/(?<=[.?!][)"]?)\s+/), last = sentences.findLastIndex((one) => /\?[)"]?$/.test(one));
  let [from, said] = [last, sentences.at(last)];
  while (from > 0 && said.length < 90 && said.length + sentences[from - 1].length < 200) said = `${sentences[--from]} ${said}`;
  const which = words.split("\n\n").at(-1);  // of several, or how to write it
  if (!/[?.:;!][)"]?$/.test(which) && !said.includes(which)) said += ` (${which})`;
  return said.replace(/\s+/g, " ");
}

function median(round) {
  const ordered = round.filter(([value]) => typeof value === "number").sort(([a], [b]) => a - b);
  const middle = (total(ordered) - 1) / 2;
  const valueAt = (rank) => {
    let before = 0;
    for (const [value, count] of ordered) if ((before += count) > rank) return value;
    return NaN;
  };
  return valueAt(Math.floor(middle)) / 2 + valueAt(Math.ceil(middle)) / 2;
}

// Drawing, in thousandths of the width.

function node(name, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== "") made.textContent = text;
  return made;
}

function drawing(state, height) {
  const svg = node("svg", { viewBox: `0 0 1000 ${height}`, role: "img" });
  svg.setAttribute("aria-label", described(state));
  (isNumbers(state) ? drawNumbers : drawChoices)(svg, state, height);
  return svg;
}

// As the table calls the number: measured, reported, calculated.
const answered = (state) => `${state.how ?? "measured"}: ${state.shown}`;

function described(state) {
  const rounds = state.rounds.map((round, n) =>
    `${n ? "second" : "first"} round: ${round.map(([value, count]) => `${value} ${count} times`).join(", ")}`);
  return `${rounds.join("; ")}. ${hasAnswer(state) ? `${answered(state)}. ${sentence(state)}` : ""}`;
}

// The class of a round: if there is one alone, it has the strong colour.
const kind = (state, n) => (n === state.rounds.length - 1 ? "second" : "first");

function scale(state) {
  const logs = [];
  for (const round of state.rounds) {
    for (const [value, count] of round) if (value > 0) for (let n = 0; n < count; n++) logs.push(Math.log10(value));
  }
  logs.sort((a, b) => a - b);
  const right = hasAnswer(state) && state.measured > 0 ? [Math.log10(state.measured)] : [];
  if (!logs.length && !right.length) return { low: 0, step: 0.1, bins: 10 };
  let [low, high] = [Infinity, -Infinity];
  if (logs.length) {
    const quantile = (q) => logs[Math.round(q * (logs.length - 1))];
    const [lower, middle, upper] = [0.1, 0.5, 0.9].map(quantile), reach = Math.max(1.5 * (upper - lower), 1.5);
    // In a small room one joker is more than a tenth.
    const inside = logs.filter((one) => one >= lower - reach && one <= upper + reach && Math.abs(one - middle) <= MOST_DECADES);
    [low, high] = [inside[0], inside[inside.length - 1]];
  }
  low = Math.min(low, ...right) - 0.2;
  high = Math.max(high, ...right) + 0.2;
  const step = [0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10, 20].find((one) => (high - low) / one <= MOST_BINS) ?? 50;
  // A bar stands over 1, 2, 4, 5, 8 and 10, not beside them; and once there is an answer, one stands over that.
  const over = right.length ? right[0] - Math.floor(right[0] / step) * step : 0;
  low = (Math.floor((low - over) / step) - 0.5) * step + over;
  return { low, step, bins: Math.max(Math.ceil((high - low) / step), 1) };
}

// The numbers that are written below the axis: few enough to have room.
function ticks({ low, step, bins }) {
  const high = low + step * bins, decades = high - low;
  const every = Math.max(1, Math.ceil(decades / 8)), found = [];
  for (let power = Math.ceil(low / every) * every; power <= high + 1e-9; power += every) found.push(10 ** power);
  if (decades <= 3.2) {
    for (let power = Math.floor(low); power <= high; power++) {
      for (const digit of decades < 0.9 ? [1.5, 2, 3, 4, 5, 7] : [2, 5]) {
        const log = power + Math.log10(digit);
        if (log >= low && log <= high) found.push(digit * 10 ** power);
      }
    }
  }
  return found.sort((a, b) => a - b);
}

function drawNumbers(svg, state, height) {
  const sized = scale(state), { low, step, bins } = sized;
  const isLow = (value) => !(value > 0);
  const hasLow = state.rounds.some((round) => round.some(([value]) => isLow(value))) || (hasAnswer(state) && state.measured <= 0);
  const left = hasLow ? 130 : 25, right = 975, base = height - 62, top = hasAnswer(state) ? 60 : 26;
  const width = (right - left) / bins, x = (value) => left + ((Math.log10(value) - low) / step) * width;
  const outside = [0, 0];
  const alone = new Array(bins + 1).fill(null);  // the one value of a bar that has no other: it stands over that
  const columns = state.rounds.map((round) => {
    const column = new Array(bins).fill(0);
    let low_ones = 0;
    for (const [value, count] of round) {
      if (isLow(value)) { low_ones += count; continue; }
      const bin = Math.floor((Math.log10(value) - low) / step + 1e-9);
      if (bin < 0) outside[0] += count;
      if (bin >= bins) outside[1] += count;
      const shown = Math.min(Math.max(bin, 0), bins - 1);
      column[shown] += count;
      alone[shown + 1] = bin !== shown || (alone[shown + 1] ?? value) !== value ? NaN : value;
    }
    return [low_ones, ...column];
  });
  const most = Math.max(1, ...columns.flat()), unit = (base - top) / most;
  const middleOf = (bin) => (!bin ? 60 : alone[bin] ? x(alone[bin]) : left + (bin - 0.5) * width);
  if (hasAnswer(state) && state.measured > 0) {
    for (const [from, to] of bandsOf(state)) {
      const start = Math.max(from > 0 ? x(from) : left, left), end = Math.min(x(to), right);
      svg.append(node("rect", { class: "band", x: start, width: Math.max(end - start, 0), y: top, height: base - top }));
    }
  }
  columns.forEach((column, n) => {
    column.forEach((count, bin) => {
      if (!count) return;
      const thin = n > 0 ? 0.52 : 0.86, whole = bin ? width : 70;
      svg.append(node("rect", {
        class: kind(state, n), x: middleOf(bin) - (whole * thin) / 2, width: whole * thin,
        y: base - count * unit, height: count * unit, rx: Math.min(4, whole / 6),
      }));
    });
  });
  svg.append(node("line", { class: "axis", x1: left, x2: right, y1: base, y2: base }));
  let last = -Infinity;
  for (const tick of ticks(sized)) {
    const words = number(tick), half = words.length * 5.6;
    svg.append(node("line", { class: "axis", x1: x(tick), x2: x(tick), y1: base, y2: base + 7 }));
    if (x(tick) - half < Math.max(last + 12, left - 25) || x(tick) + half > 1000) continue;
    last = x(tick) + half;
    svg.append(node("text", { x: x(tick), y: base + 28, "font-size": 20, "text-anchor": "middle" }, words));
  }
  if (hasLow) {
    svg.append(node("line", { class: "axis", x1: 15, x2: 105, y1: base, y2: base }));
    svg.append(node("text", { x: 60, y: base + 28, "font-size": 20, "text-anchor": "middle" }, "0 or less"));
  }
  const beyond = [outside[0] && `${outside[0]} further left`, outside[1] && `${outside[1]} further right`].filter(Boolean);
  svg.append(node("text", { class: "quiet", x: (left + right) / 2, y: height - 8, "font-size": 20, "text-anchor": "middle" },
    [state.unit, beyond.length ? `(at the edge: ${beyond.join(", ")})` : ""].filter(Boolean).join("  ")));
  if (hasAnswer(state)) {
    const there = state.measured > 0 ? x(state.measured) : 60;
    svg.append(node("line", { class: "measured", x1: there, x2: there, y1: 28, y2: base }));
    const anchor = there < 250 ? "start" : there > 750 ? "end" : "middle";
    svg.append(node("text", { class: "measured halo", x: there, y: 21, "font-size": 22, "text-anchor": anchor }, answered(state)));
  }
  const tallest = columns.map((column) => Math.max(0, ...column));
  columns.forEach((column, n) => {
    const bin = column.indexOf(tallest[n]);
    if (tallest[n] && n === columns.length - 1) {
      svg.append(node("text", { class: "halo", x: middleOf(bin), y: base - tallest[n] * unit - 5, "font-size": 20, "text-anchor": "middle" }, tallest[n]));
    }
  });
}

function drawChoices(svg, state, height) {
  const row = Math.min(height / state.choices.length, 70), size = Math.min(22, row * 0.5);
  const longest = Math.max(...state.choices.map((one) => one.length)) + (hasAnswer(state) ? 9 : 0);
  const left = Math.min(Math.max(longest * size * 0.56, 90) + 20, 480), room = 900 - left;
  const counts = state.rounds.map((round) => state.choices.map((one) => total(round.filter(([value]) => value === one))));
  const most = Math.max(1, ...counts.flat());
  state.choices.forEach((choice, at_row) => {
    const middle = (at_row + 0.5) * row, isRight = hasAnswer(state) && choice === state.measured;
    const words = node("text", { x: left - 12, y: middle + size * 0.35, "font-size": size, "text-anchor": "end", class: isRight ? "measured" : "" },
      isRight ? `answer: ${choice}` : choice);
    svg.append(words, node("line", { class: "axis", x1: left, x2: left, y1: middle - row / 2, y2: middle + row / 2 }));
    let furthest = left;
    counts.forEach((count, n) => {
      const thin = n > 0 ? 0.42 : 0.76, length = (count[at_row] / most) * room;
      furthest = Math.max(furthest, left + length);
      if (length) svg.append(node("rect", { class: kind(state, n), x: left, y: middle - (row * thin) / 2, width: length, height: row * thin, rx: 3 }));
    });
    const said = counts.map((count) => count[at_row]).join(" → ");
    svg.append(node("text", { x: furthest + 10, y: middle + size * 0.35, "font-size": size }, said));
  });
}

// The pages.

async function talk(path, body) {
  const options = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const answer = await fetch(path, { cache: "no-store", ...options });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(said.error ?? String(answer.status));
  return said;
}

// JupyterLab's theme, which only the page around the frame knows. Where it does not answer, the browser's holds.
const tell = (what) => window.parent !== window && window.parent.postMessage(`course-wall: ${what}`, "*");
function followTheme() {
  tell("theme");
}
addEventListener("message", ({ data, source }) => {
  if (source !== window.parent || !["true", "false"].includes(data)) return;
  document.documentElement.dataset.theme = data === "true" ? "light" : "dark";
});

function wall() {
  const all = [].concat(JSON.parse(decodeURIComponent(location.hash.slice(1) || "[]")));
  const isReveal = all.some((one) => "measured" in one);
  let asks = all, number_of = 0, state = null, drawn = "", ends = 0, busy = false, isNew = false;

  // A page that is only loaded again does not ask again.
  async function told({ run, ...ask }) {
    const memory = `${isReveal ? "revealed" : "asked"} ${ask.key} ${run}`;
    let known = false;
    try { known = sessionStorage.getItem(memory) !== null; } catch { /* not allowed */ }
    const before = known ? await talk(`state?key=${encodeURIComponent(ask.key)}`).catch(() => null) : null;
    isNew ||= !known;
    const now = before ?? await talk(isReveal ? "reveal" : "ask", ask);
    try { sessionStorage.setItem(memory, "1"); } catch { /* not allowed */ }
    return now;
  }

  // All answers are told at once. What was never asked is left out.
  async function begin() {
    if (isReveal) {
      const rounds = (await Promise.all(asks.map(told))).map((one) => one.rounds.length);
      asks = asks.filter((_, n) => rounds[n]);
    }
    state = asks.length ? await told(asks[number_of]) : null;
    show();
    if (isReveal && isNew && state) setTimeout(() => tell("answer"), ARRIVED_MS);
    isNew = false;
  }

  function show() {
    followTheme();
    document.querySelector("main").hidden = !state;
    if (!state) return;
    const isShown = state.rounds.length > 0 && state.phase !== "asking";
    document.body.classList.toggle("shown", isShown);
    const count = state.count.toLocaleString("en");
    if (at("count").textContent !== count) at("count").textContent = count;
    at("counted-words").textContent = `guessed${state.round > 1 ? " again" : ""}, of ${counted(state.phones, "phone")}`;
    at("item").textContent = all.length > 1 ? `${number_of + 1} of ${asks.length}: ${asks[number_of].item}`
      : isReveal ? "" : shortened(state.words);
    const move = { asking: "Show", shown: state.round < 2 ? "Guess again" : "" }[state.phase] ?? "";
    at("move").hidden = !move;
    at("move").textContent = move || "Show";
    at("next").hidden = number_of + 1 >= asks.length || state.phase === "asking";
    at("minute").hidden = state.phase === "revealed";
    at("anew").hidden = isReveal || !(state.count || state.left_out || state.rounds.length);
    showCrowd();
    if (state.phase === "revealed") { ends = 0; at("clock").textContent = ""; }
    at("said").textContent = isShown ? sentence(state) : "";
    if (!isShown) {
      at("picture").replaceChildren();
      drawn = "";
    }
    const box = at("picture").getBoundingClientRect();
    const now = JSON.stringify([state.rounds, state.shown, state.phase, Math.round(box.width), Math.round(box.height)]);
    if (isShown && now !== drawn && box.height > 20) {
      const empty = !hasAnswer(state) && !state.rounds.some(total);
      at("picture").replaceChildren(empty ? "" : drawing(state, (1000 * box.height) / box.width));
      drawn = now;
    }
  }

  // Many guesses of one address may be half of a class behind one router, or one joker's script: whoever stands there knows.
  function showCrowd() {
    const { crowd, left_out: out, count } = state;
    at("crowd").hidden = !crowd && !out;
    at("crowd").firstElementChild.textContent = out
      ? `${out} ${out === 1 ? "guess" : "guesses"} of one address left out.`
      : `${crowd} of ${count} guesses came from one address.`;
    at("crowd").lastElementChild.textContent = out ? "Count them again" : "Leave them out";
  }

  async function poll() {
    if (!busy && state?.rounds && !(isReveal && !state.rounds.length) && !document.hidden) {
      try {
        state = await talk(`state?key=${encodeURIComponent(asks[number_of].key)}`);
        show();
      } catch { at("said").textContent = "No connection to the room's process. Was it stopped?"; }
    }
    setTimeout(poll, POLL_MS);
  }

  // After a click by mouse, or Escape, the keys are the presentation's again; after a button's key the focus stays.
  const pressed = (work) => async (event) => {
    busy = true;
    try { await work(); } catch (error) { at("said").textContent = error.message; }
    busy = false;
    if (event.detail > 0) leave();
  };
  const leave = () => { document.activeElement.blur(); window.parent.focus(); tell("keys"); };
  addEventListener("keydown", (event) => { if (event.key === "Escape") leave(); });
  at("move").addEventListener("click", pressed(async () => {
    state = await talk("move", { key: state.key, move: state.phase === "asking" ? "show" : "again" });
    ends = 0;
    at("clock").textContent = "";
    show();
  }));
  at("crowd").lastElementChild.addEventListener("click", pressed(async () => {
    state = await talk("move", { key: state.key, move: state.left_out ? "count all" : "leave out" });
    show();
  }));
  // Guesses that are gone do not come back, so it asks once more.
  const ask_anew = (sure) => {
    at("anew").classList.toggle("sure", sure);
    at("anew").textContent = sure ? "Drop all guesses?" : "Begin anew";
  };
  at("anew").addEventListener("click", pressed(async () => {
    if (!at("anew").classList.contains("sure")) {
      ask_anew(true);
      setTimeout(() => ask_anew(false), SURE_MS);
      return;
    }
    ask_anew(false);
    state = await talk("move", { key: state.key, move: "anew" });
    ends = 0;
    at("clock").textContent = "";
    drawn = "";
    show();
  }));
  at("next").addEventListener("click", pressed(async () => { number_of += 1; drawn = ""; await begin(); }));
  at("minute").addEventListener("click", pressed(async () => { ends = Date.now() + 60_000; tick(); }));
  function tick() {
    if (ends) at("clock").textContent = `${Math.max(0, Math.ceil((ends - Date.now()) / 1000))} s`;
  }
  setInterval(tick, 200);
  addEventListener("resize", () => { drawn = ""; show(); });
  // JupyterLab's page says when; where there is none around this one, or another, it begins by itself.
  let has_begun = false;
  const once = () => {
    if (has_begun) return;
    has_begun = true;
    begin().catch(() => { at("said").textContent = "No connection to the room's process."; }).then(poll);
  };
  document.querySelector("main").hidden = true;
  if (!asks.length) return;
  addEventListener("message", ({ data, source }) => { if (source === window.parent && data === "begin") once(); });
  tell("begin");
  setTimeout(once, window.parent === window ? 0 : ALONE_MS);
}

async function start() {
  try {
    const { phones } = await talk("phones");
    at("phones").textContent = phones ? `${counted(phones, "phone")} here` : "Nobody here yet";
  } catch { at("phones").textContent = "No connection to the room's process."; }
  setTimeout(start, 2 * POLL_MS);
}

function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function tempted(state, rounds) {
  const same = (value, wrong) => value === wrong || (typeof wrong === "number" && Math.abs(value / wrong - 1) <= NEAR);
  return (state.tempting ?? []).map(([wrong, advice]) => {
    const given = rounds.map((round) => (total(round) < FEW ? "–" : total(round.filter(([value]) => same(value, wrong)))));
    return [typeof wrong === "number" ? number(wrong) : String(wrong), ...given, advice];
  });
}

function table(rows) {
  const made = document.createElement("table");
  rows.forEach((row, n) => {
    const line = made.insertRow();
    for (const one of row) line.append(one instanceof Node ? one : element(n ? "td" : "th", one));
  });
  return made;
}

function question(state) {
  const section = document.createElement("section"), title = element("h2", state.words);
  title.append(element("span", `  ${state.key}`, "key"));
  section.append(title);
  const rounds = state.rounds, enough = rounds.map((round) => total(round) >= FEW);
  if (!rounds.length) section.append(element("p", "It was never shown.", "quiet"));
  if (enough.some(Boolean)) {
    const seen = { ...state, rounds: rounds.map((round, n) => (enough[n] ? round : [])) };
    section.append(drawing(seen, isNumbers(state) ? 300 : 40 * state.choices.length));
  } else if (hasAnswer(state)) section.append(element("p", answered(state)));
  const right = hasAnswer(state) ? bandsOf(state) : [];
  const rows = [["", "guesses", ...(isNumbers(state) ? ["median"] : []), ...right.map(([, , words]) => words.toLowerCase())]];
  rounds.forEach((round, n) => {
    const name = element("td", n ? "second round" : "first round");
    name.prepend(element("span", "", `swatch ${kind(state, n)}`));
    if (!enough[n]) {
      const few = element("td", "fewer than five guessed");
      few.colSpan = rows[0].length - 1;
      rows.push([name, few]);
    }
    else rows.push([name, total(round), ...(isNumbers(state) ? [`${number(median(round))} ${state.unit}`] : []), ...right.map((band) => shares(state, band)[n])]);
  });
  if (rounds.length) section.append(table(rows));
  const wrong = enough.some(Boolean) ? tempted(state, rounds) : [];
  if (wrong.length) section.append(table([["tempting answer", ...rounds.map((_, n) => (n ? "second" : "first")), "what speaks against it"], ...wrong]));
  return section;
}

function kept() {
  const states = JSON.parse(at("data").textContent);
  at("questions").replaceChildren(...states.map(question));
  if (!states.length) at("questions").append(element("p", "Nothing was asked yet."));
  if (!location.pathname.endsWith("/kept.html")) return;
  at("keep").hidden = states.length === 0;
  at("keep").querySelector("button").addEventListener("click", async () => {
    const said = at("keep").querySelector("span");
    try { said.textContent = `Saved: rooms/${(await talk("keep", {})).saved}, and the same as .csv`; } catch (error) { said.textContent = error.message; }
  });
}

({ wall, start, kept })[document.body.dataset.page]();
})();
