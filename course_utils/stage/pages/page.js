// The script of every page: it begins the guesses, unfolds what a link leads to, and unfolds
// everything.
import { begin } from "./guesses.js";

const folds = document.querySelectorAll("main details.fold");

for (const element of document.querySelectorAll("[data-ask]")) begin(element);

const everything = document.querySelector("[data-everything]");
if (everything) {
  everything.hidden = !folds.length;
  everything.addEventListener("click", () => {
    for (const fold of folds) fold.open = true;
    everything.hidden = true;
  });
}

// The name in the address, or "" if the address was cut off inside a letter.
function named() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

// Unfold everything around the element that the address names, and scroll to the element.
function arrive() {
  const anchor = document.getElementById(named());
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
