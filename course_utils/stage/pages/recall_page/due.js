// Which questions come back on a day, as stage/recall/due.py says it for a reader's record. A day is
// a text such as "2026-01-31". What is kept has, in `met`, the day and the word of each guess by its
// name, and in `answers` a line for each answer, in their order.
import { atOnce, intervals, questions, words } from "./questions.js";

const DAY_MS = 86_400_000;

// The day so many days later.
export function later(day, days) {
  return new Date(Date.parse(day) + days * DAY_MS).toISOString().slice(0, 10);
}

// The questions to ask on that day, at most three, less those answered on it already.
export function three(kept, day) {
  const answered = answeredOn(kept, day).filter((one) => !one.isExtra).map((one) => one.name);
  const chosen = questions.filter((question) => answered.includes(question.name));
  const before = chosen.length;
  const waiting = due(kept, day);
  while (waiting.length && chosen.length < atOnce) {
    const next = nextOf(chosen, waiting);
    chosen.push(next);
    waiting.splice(waiting.indexOf(next), 1);
  }
  return chosen.slice(before);
}

// All questions that are due on that day, the farthest off first.
export function due(kept, day) {
  const waiting = standings(kept).filter((standing) => standing.due <= day);
  waiting.sort((a, b) => farther(a, b) || order(a.due, b.due));
  return waiting.map((standing) => standing.question);
}

// How the questions stand that can be asked besides the three, those first that come due first.
export function more(kept, day) {
  const answered = answeredOn(kept, day).map((one) => one.name);
  const left = standings(kept).filter(({ question }) => !answered.includes(question.name));
  return left.sort((a, b) => order(a.due, b.due) || farther(a, b));
}

// The first later day on which a question is due, or nothing.
export function nextDay(kept, day) {
  const tomorrow = later(day, 1);
  const days = standings(kept).map((standing) => (standing.due > day ? standing.due : tomorrow));
  return days.sort()[0];
}

// The first answer of that day to each question.
export function answeredOn(kept, day) {
  const first = new Map();
  for (const one of kept.answers) {
    const isKnown = questions.some((question) => question.name === one.name);
    if (one.day === day && isKnown && !first.has(one.name)) first.set(one.name, one);
  }
  return [...first.values()];
}

// How each question stands that the reader has met: when it comes due, and how far off they were.
function standings(kept) {
  const found = [];
  for (const question of questions) {
    const ofIt = kept.answers.filter((one) => one.name === question.name);
    const counted = ofIt.filter((one) => !(one.isExtra && one.isRight));
    const met = question.met.map((name) => kept.met[name]).filter(Boolean);
    if (counted.length) {
      found.push(byAnswers(question, counted));
    } else if (met.length) {
      const first = met.map((one) => one.day).sort()[0];
      const word = met.map((one) => one.word).reduce(worse);
      found.push({ question, due: later(first, intervals[0]), word });
    }
  }
  return found;
}

// The standing of a question that has come back before.
function byAnswers(question, answers) {
  let rights = 0; // right answers in a row
  for (const one of answers) rights = one.isRight ? rights + 1 : 0;
  const days = intervals[Math.min(rights, intervals.length - 1)];
  const last = answers.at(-1);
  return { question, due: later(last.day, days), word: last.isRight ? words[0] : last.word };
}

// The first of the waiting questions. The last place goes to another notebook, if the questions
// before it are all of one.
function nextOf(chosen, waiting) {
  const chapters = new Set(chosen.map((question) => question.chapter));
  if (chosen.length === atOnce - 1 && chapters.size === 1) {
    return waiting.find((question) => !chapters.has(question.chapter)) ?? waiting[0];
  }
  return waiting[0];
}

const worse = (a, b) => (words.indexOf(a) >= words.indexOf(b) ? a : b);
const farther = (a, b) => words.indexOf(b.word) - words.indexOf(a.word);
const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
