// The page on which questions come back. What is asked, said and due is kept in this browser.
import { answeredOn, more, nextDay, three } from "./due.js";
import { ended, howFar, inASentence } from "./guesses.js";
import { forget, keep, kept, today } from "./met.js";
import { numberText, read, withUnit } from "./numbers.js";
import { atOnce, questions, words } from "./questions.js";
import { translated } from "./words.js";

const [SPOT_ON] = words;
const FAR = "far";
const MISSED = words.at(-1);
const IN_WORDS = { weekday: "long", day: "numeric", month: "long", timeZone: "UTC" };

// Where questions are taught, on the pages in another language: a title and a link by the name.
const SECTIONS = JSON.parse(document.querySelector("[data-sections]")?.textContent ?? "{}");

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
  document.querySelector("[data-forgotten]").textContent = translated("It is forgotten.");
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
  const items = answered.map((one, at) => answeredItem(one, placeOf(at + 1, count)));
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
    if (text) reply.append(node("p", { textContent: text, lang: "en" }));
  }
  const { section, link } = SECTIONS[name] ?? question;
  const where = translated("notebook {number}, {section}", { number: question.number, section });
  const [before, behind] = translated("Read it again in {where}").split("{where}");
  const toIt = node("a", { href: link, textContent: where });
  reply.append(node("p", { className: "small" }, before, toIt, behind));
  const saidWords = said === null
    ? translated("You gave no answer.")
    : translated("You said: {answer}", { answer: withUnit(said, drawn.unit) });
  return node(
    "li",
    {},
    node("h2", { className: "small", textContent: isExtra ? translated("{place} · extra", { place }) : place }),
    node("p", { className: "question", textContent: drawn.text, lang: "en" }),
    node("p", { className: "small", textContent: saidWords }),
    reply,
  );
}

// Ask the question: a field with its unit, and a button for whoever does not know.
function ask({ question, due }, place, count) {
  const isExtra = due > today();
  const draw = now.answers.filter((one) => one.name === question.name).length;
  const drawn = question.draws[draw % question.draws.length];
  const heading = isExtra
    ? translated("{place} · extra, due on {day}", { place: placeOf(place, count), day: dayInWords(due) })
    : placeOf(place, count);
  const field = node("input", { type: "text", autocomplete: "off", maxLength: 60 });
  field.setAttribute("aria-labelledby", "question");
  const refused = node("p", { className: "refused", id: "refused", role: "alert", hidden: true });
  const unknown = node("button", { type: "button", textContent: translated("I don't know") });
  const form = node(
    "form",
    {},
    node("p", {}, field, ` ${drawn.unit}`),
    refused,
    node("p", {}, node("button", { textContent: translated("Answer") }), " ", unknown),
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
    node("h2", { className: "small", textContent: heading }),
    node("p", { className: "question", id: "question", textContent: drawn.text, lang: "en" }),
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
  const day = following ? dayInWords(following) : "";
  const hasMore = more(now, today()).length > 0;
  const button = node("button", { type: "button" });
  button.addEventListener("click", () => {
    until = answered.length + atOnce;
    show();
  });
  const status = node("p", { role: "status" });
  if (answered.length) {
    status.textContent = thatIsAll(day, answered.some((one) => one.isExtra));
    button.textContent = translated("Three more");
  } else {
    status.textContent = following
      ? translated("Nothing is due today. The next question comes on {day}.", { day })
      : translated("Nothing is due today.");
    button.textContent = translated("Ask three all the same");
  }
  return hasMore ? [status, button] : [status];
}

// What is said when all questions of today are answered; `day` is that of the next one, or "".
function thatIsAll(day, hasExtra) {
  const text = day
    ? translated(
        "That is all for today. The next question comes on {day}. What you missed returns tomorrow; what was right stays away longer each time.",
        { day },
      )
    : translated(
        "That is all for today. What you missed returns tomorrow; what was right stays away longer each time.",
      );
  if (!hasExtra) return text;
  const sentence = translated(
    "An extra that was right comes on the day on which it would have come anyway.",
  );
  return translated("{text} {sentence}", { text, sentence });
}

function dayInWords(day) {
  const { lang } = document.documentElement;
  return new Date(day).toLocaleDateString(lang === "en" ? "en-GB" : lang, IN_WORDS);
}

// Where the question stands among those of today.
function placeOf(number, count) {
  return translated("{number} of {count}", { number, count });
}

// What is said of an answer, as stage/recall/reply.py says it; `said` is null if there is none.
export function replyTo(drawn, said) {
  if (said === null) return { isRight: false, word: MISSED, verdict: itIs(drawn), advice: "" };
  const word = wordFor(drawn, said);
  const isRight = judges(drawn, drawn, said);
  const isNearOnly = drawn.isExact && said !== drawn.answer && word === SPOT_ON;
  const words = isNearOnly
    ? translated("Near, but it has to be exact: {said} for {right}", {
        said: numberText(said),
        right: drawn.shown,
      })
    : inASentence(word, howFar(questionOf(drawn), said, word));
  const sentence = ended(words);
  if (isRight) {
    return { isRight, word, verdict: translated("Right. {sentence}", { sentence }), advice: "" };
  }
  const near = drawn.mistakes.filter((mistake) => judges(drawn, mistake, said));
  near.sort((a, b) => Math.abs(a.answer - said) - Math.abs(b.answer - said));
  const verdict = translated("It is {answer}. {sentence}", { answer: drawn.shown, sentence });
  return { isRight, word, verdict, advice: near[0]?.advice ?? "" };
}

function itIs({ shown }) {
  return translated("It is {answer}.", { answer: shown });
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
