// What a page does by itself: says how far off a guess was, opens what a link leads to, and unfolds everything.

const NUMBER = /^-?[\d,]*\.?\d+(e[-+]?\d+)?$/i;
const number = (words) => (NUMBER.test(words.trim()) ? Number(words.replaceAll(",", "")) : NaN);

// The table that answers the guess, and in it what was measured of the row that was asked for.
function measured(field) {
  const table = document.querySelector(`[data-answers~="${field.dataset.guess}"] table`);
  if (!table) return null;
  const [head, ...rows] = table.rows;
  const column = head.cells.length - (head.lastElementChild.textContent.includes(" / ") ? 2 : 1); // before the ratio, if there is one
  const row = rows.find((one) => one.cells[0].textContent === field.dataset.row) ?? rows[0];
  return { table, words: row.cells[column].textContent };
}

function judge(field) {
  const said = field.value.trim(), answer = measured(field);
  if (!answer) return;
  const line = answer.table.parentElement.querySelector(".yours") ?? answer.table.parentElement.appendChild(document.createElement("p"));
  line.className = "yours";
  line.textContent = said && verdict(said, answer.words);
}

function verdict(said, measured) {
  if (Number.isNaN(number(measured))) return said.toLowerCase() === measured.toLowerCase() ? "Your guess is right." : `Your guess is ${said}: not what was measured.`;
  const ratio = number(said) / number(measured);
  if (ratio === 1) return "Your guess is right.";
  if (!(ratio > 0)) return "A guess is a plain number above 0, without a unit.";
  return `Your guess is ${Number(ratio.toPrecision(3)).toLocaleString("en")} times what was measured.`;
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
  everything.addEventListener("click", () => { for (const fold of folds) fold.open = true; everything.hidden = true; });
}

function arrive() {
  const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!place) return;
  for (let fold = place.closest(".fold"); fold; fold = fold.parentElement.closest(".fold")) fold.open = true;
  place.scrollIntoView();
}
addEventListener("hashchange", arrive);
arrive();
