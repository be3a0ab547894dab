// The page on which questions come back. What is asked, said and due is kept in this browser.
import { answeredOn, more, nextDay, three } from "./due.js";
import { capital, howFar } from "./guesses.js";
import { forget, keep, kept, today } from "./met.js";
import { numberText, read, withUnit } from "./numbers.js";
import { atOnce, questions, words } from "./questions.js";

const [SPOT_ON] = words;
const FAR = "far";
const MISSED = words.at(-1);
const IN_WORDS = { weekday: "long", day: "numeric", month: "long", timeZone: "UTC" };

const page = document.querySelector("[data-recall]");
const answeredList = node("ol", { ariaLive: "polite" });
const below = node("div");
let now = kept();
let until = 0; // how many answers of today there shall be, if the reader wants more than the three

document.querySelector("[data-needs]").remove();
page.append(answeredList, below);
const forgets = document.querySelector("[data-forget]");
forgets.addEventListener("click", () => {
  forget();
  now = kept();
  until = 0;
  document.querySelector("[data-forgotten]").textContent = "It is forgotten.";
  show();
});
show();

// An element with these properties and children.
function node(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// Show what was answered today, and then the next question or that nothing is left.
function show() {
  const answered = answeredOn(now, today());
  const waiting = waitingNow(answered.length);
  const count = answered.length + waiting.length;
  const items = answered.map((one, at) => answeredItem(one, `${at + 1} of ${count}`));
  answeredList.replaceChildren(...items);
  const hasMet = answered.length || waiting.length || nextDay(now, today());
  document.querySelector("[data-intro]").hidden = Boolean(hasMet);
  forgets.hidden = !hasMet;
  if (waiting.length) ask(waiting[0], answered.length + 1, count);
  else below.replaceChildren(...end(answered));
}

// The standings of the questions to ask now: those of today, or else more until so many answers.
function waitingNow(answered) {
  const left = more(now, today());
  const ofToday = three(now, today());
  if (!ofToday.length) return left.slice(0, Math.max(0, until - answered));
  return ofToday.map((one) => left.find(({ question }) => question.name === one.name));
}

// What is shown of an answer that was given today.
function answeredItem({ name, draw, said, isExtra }, place) {
  const question = questions.find((one) => one.name === name);
  const drawn = question.draws[draw % question.draws.length];
  const { isRight, verdict, advice } = replyTo(drawn, said);
  const reply = node("div", { className: isRight ? "reply right" : "reply" });
  reply.append(node("p", {}, node("strong", { textContent: verdict })));
  for (const text of [advice, drawn.derivation]) {
    if (text) reply.append(node("p", { textContent: text }));
  }
  const where = `notebook ${question.number}, ${question.section}`;
  const link = node("a", { href: question.link, textContent: where });
  reply.append(node("p", { className: "small" }, "Read it again in ", link));
  const saidWords = said === null ? "You gave no answer." : `You said: ${withUnit(said, drawn.unit)}`;
  return node(
    "li",
    {},
    node("h2", { className: "small", textContent: isExtra ? `${place} · extra` : place }),
    node("p", { className: "question", textContent: drawn.text }),
    node("p", { className: "small", textContent: saidWords }),
    reply,
  );
}

// Ask the question: a field with its unit, and a button for whoever does not know.
function ask({ question, due }, place, count) {
  const isExtra = due > today();
  const draw = now.answers.filter((one) => one.name === question.name).length;
  const drawn = question.draws[draw % question.draws.length];
  const extra = isExtra ? ` · extra, due on ${dayInWords(due)}` : "";
  const field = node("input", { type: "text", autocomplete: "off", maxLength: 60 });
  field.setAttribute("aria-labelledby", "question");
  const refused = node("p", { className: "refused", id: "refused", role: "alert", hidden: true });
  const unknown = node("button", { type: "button", textContent: "I don't know" });
  const form = node(
    "form",
    {},
    node("p", {}, field, ` ${drawn.unit}`),
    refused,
    node("p", {}, node("button", { textContent: "Answer" }), " ", unknown),
  );
  const answer = (said) => note(question, draw, drawn, said, isExtra);
  unknown.addEventListener("click", () => answer(null));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    try {
      answer(read(field.value, drawn.unit));
    } catch (error) {
      refused.textContent = error.message;
      refused.hidden = false;
      field.setAttribute("aria-invalid", "true");
      field.setAttribute("aria-describedby", "refused");
      field.focus();
    }
  });
  below.replaceChildren(
    node("h2", { className: "small", textContent: `${place} of ${count}${extra}` }),
    node("p", { className: "question", id: "question", textContent: drawn.text }),
    form,
  );
  field.focus();
}

// Keep the answer, and show what comes next.
function note({ name }, draw, drawn, said, isExtra) {
  const { isRight, word } = replyTo(drawn, said);
  now = kept(); // which another tab may have changed
  now.answers.push({ day: today(), name, draw, said, isRight, word, isExtra });
  keep(now);
  show();
}

// What stands below the answers when nothing is left to ask.
function end(answered) {
  const following = nextDay(now, today());
  if (!answered.length && !following) return [];
  const comes = following ? ` The next question comes on ${dayInWords(following)}.` : "";
  const hasMore = more(now, today()).length > 0;
  const button = node("button", { type: "button" });
  button.addEventListener("click", () => {
    until = answered.length + atOnce;
    show();
  });
  const status = node("p", { role: "status" });
  if (answered.length) {
    status.textContent = `That is all for today.${comes} What you missed returns tomorrow; what was right stays away longer each time.`;
    if (answered.some((one) => one.isExtra)) {
      status.textContent += " An extra that was right comes on the day on which it would have come anyway.";
    }
    button.textContent = "Three more";
  } else {
    status.textContent = `Nothing is due today.${comes}`;
    button.textContent = "Ask three all the same";
  }
  return hasMore ? [status, button] : [status];
}

function dayInWords(day) {
  return new Date(day).toLocaleDateString("en-GB", IN_WORDS);
}

// What is said of an answer, as stage/recall/reply.py says it; `said` is null if there is none.
export function replyTo(drawn, said) {
  if (said === null) return { isRight: false, word: MISSED, verdict: `It is ${drawn.shown}.`, advice: "" };
  const word = wordFor(drawn, said);
  const isRight = judges(drawn, drawn, said);
  const isNearOnly = drawn.isExact && said !== drawn.answer && word === SPOT_ON;
  const words = isNearOnly
    ? `Near, but it has to be exact: ${numberText(said)} for ${drawn.shown}`
    : `${capital(word)}: ${howFar(questionOf(drawn), said, word)}`;
  const sentence = words.endsWith("?") ? words : `${words}.`;
  if (isRight) return { isRight, word, verdict: `Right. ${sentence}`, advice: "" };
  const near = drawn.mistakes.filter((mistake) => judges(drawn, mistake, said));
  near.sort((a, b) => Math.abs(a.answer - said) - Math.abs(b.answer - said));
  const verdict = `It is ${drawn.shown}. ${sentence}`;
  return { isRight, word, verdict, advice: near[0]?.advice ?? "" };
}

// Whether the answer counts as this one: the right one, or that of a mistake.
function judges({ isExact, tolerance }, one, said) {
  if (isExact) return said === one.answer;
  const isNear = Math.abs(said - one.answer) <= tolerance * Math.abs(one.answer);
  return isNear || wordFor(one, said) === SPOT_ON;
}

// The word for how close the answer is: that of the first bounds which it is within.
function wordFor({ answer, bounds }, said) {
  if (said === answer) return SPOT_ON;
  const found = bounds.find(([low, high]) => low <= said && said <= high);
  return found ? found[2] : FAR;
}

// The draw as guesses.js knows the question of a guess.
function questionOf({ answer, shown, unit, whole }) {
  return { measured: answer, words: shown, unit, whole, kind: "calculated" };
}
