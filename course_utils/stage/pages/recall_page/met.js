// What this browser keeps for the questions that come back: which guesses the reader has met, and
// what they have answered. It is one text for all pages of the site.
const FOLDER = location.pathname.replace(/[^/]*$/, "");
const KEPT = `recall on ${FOLDER}`;
// Of a page, in any language: "01_floats.html" and "01_floats.zh_CN.html" are the same guesses.
const ENDING = /(\.[a-z]{2,3}(_[A-Z]{2})?)?\.html$/;
const DAY = /^\d{4}-\d\d-\d\d$/;
const WORDS = ["spot on", "close", "right power of ten", "far", "missed"];

// Today, by the reader's own clock.
export function today() {
  const now = new Date();
  const parts = [now.getFullYear(), now.getMonth() + 1, now.getDate()];
  return parts.map((part) => String(part).padStart(2, "0")).join("-");
}

// What is kept. A private window may keep nothing, and something else may have been written there:
// what makes no sense is left out.
export function kept() {
  const found = { met: {}, answers: [] };
  try {
    const { met, answers } = JSON.parse(localStorage.getItem(KEPT));
    for (const [name, one] of Object.entries(met)) if (isDated(one)) found.met[name] = one;
    found.answers = answers.filter(isAnswer);
  } catch {
    // There is nothing, or it ends in the middle.
  }
  return found;
}

const isDay = (text) => typeof text === "string" && DAY.test(text) && !isNaN(Date.parse(text));
const isDated = (one) => isDay(one?.day) && WORDS.includes(one.word);

function isAnswer(one) {
  const isSaid = one?.said === null || Number.isFinite(one?.said);
  const isNamed = typeof one?.name === "string" && Number.isInteger(one.draw) && one.draw >= 0;
  return isDated(one) && isSaid && isNamed && typeof one.isRight === "boolean";
}

export function keep(changed) {
  try {
    localStorage.setItem(KEPT, JSON.stringify(changed));
  } catch {
    // It then lasts until the page is closed.
  }
}

export function forget() {
  try {
    localStorage.removeItem(KEPT);
  } catch {
    // Nothing was kept.
  }
}

// Note that the reader has seen the answer to a guess on this page, with the word for the guess. The
// first time counts, because later guesses know the answer.
export function noteMet(name, word) {
  const page = decodeURI(location.pathname).split("/").at(-1).replace(ENDING, "");
  const now = kept();
  if (now.met[`${page} ${name}`]) return;
  now.met[`${page} ${name}`] = { day: today(), word };
  keep(now);
}
