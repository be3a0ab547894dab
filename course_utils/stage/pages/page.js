// The script of every page: it shows how far off a guess was, unfolds what a link leads to, and
// unfolds everything.

const NUMBER = /^-?[\d,]*\.?\d+(e[-+]?\d+)?$/i;
const RIGHT = "Your guess is right.";

function number(words) {
  return NUMBER.test(words.trim()) ? Number(words.replaceAll(",", "")) : NaN;
}

// The table that answers the guess, and the text of the measured value in the guess's row; null if
// the page has no such table.
function measured(field) {
  const table = document.querySelector(`[data-answers~="${field.dataset.guess}"] table`);
  if (!table) return null;
  const [head, ...rows] = table.rows;
  const hasRatio = head.lastElementChild.textContent.includes(" / ");
  const column = head.cells.length - (hasRatio ? 2 : 1); // the measured one stands before the ratio
  const named = rows.find((row) => row.cells[0].textContent === field.dataset.row);
  const row = named ?? rows[0];
  return { table, words: row.cells[column].textContent };
}

function judge(field) {
  const guess = field.value.trim();
  const answer = measured(field);
  if (!answer) return;
  const around = answer.table.parentElement;
  const line = around.querySelector(".yours") ?? around.appendChild(document.createElement("p"));
  line.className = "yours";
  line.textContent = guess ? verdict(guess, answer.words) : "";
}

function verdict(guess, measured) {
  const answer = number(measured);
  if (Number.isNaN(answer)) {
    const isRight = guess.toLowerCase() === measured.toLowerCase();
    return isRight ? RIGHT : `Your guess is ${guess}: not what was measured.`;
  }
  const ratio = number(guess) / answer;
  if (ratio === 1) return RIGHT;
  if (!(ratio > 0)) return "A guess is a plain number above 0, without a unit."; // NaN, too
  const times = Number(ratio.toPrecision(3)).toLocaleString("en");
  return `Your guess is ${times} times what was measured.`;
}

const folds = document.querySelectorAll("main details.fold");

for (const field of document.querySelectorAll("[data-guess]")) {
  field.addEventListener("input", () => judge(field));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter") field.closest("p").nextElementSibling.open = true;
  });
}

const everything = document.querySelector("[data-everything]");
if (everything) {
  everything.hidden = !folds.length;
  everything.addEventListener("click", () => {
    for (const fold of folds) fold.open = true;
    everything.hidden = true;
  });
}

// Unfold everything around the element that the address names, and scroll to the element.
function arrive() {
  const anchor = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!anchor) return;
  let fold = anchor.closest(".fold");
  while (fold) {
    fold.open = true;
    fold = fold.parentElement.closest(".fold");
  }
  anchor.scrollIntoView();
}
addEventListener("hashchange", arrive);
arrive();
