// What a lab's controls hold, in the page's address, so that a link to it can be sent.

import { translated } from "./words.js";

// Returns what the address holds, or {} if it holds nothing that can be read.
export function linked() {
  try {
    const held = JSON.parse(decodeURIComponent(location.hash.slice(1)));
    return held && typeof held === "object" && !Array.isArray(held) ? held : {};
  } catch {
    return {}; // no address of this lab, such as one that was cut off
  }
}

// Returns a function that puts into the address those values that differ from `first`.
export function linker(first) {
  return (values) => {
    const changed = Object.entries(values).filter(([name, value]) => {
      return JSON.stringify(value) !== JSON.stringify(first[name]);
    });
    const hash = changed.length ? `#${encodeURIComponent(JSON.stringify(Object.fromEntries(changed)))}` : "";
    history.replaceState(null, "", location.pathname + location.search + hash);
  };
}

// Makes the button that copies the address work, if the page has one.
export function offerToCopy() {
  const button = document.querySelector("[data-copy-link]");
  if (!button || !navigator.clipboard) return;
  const said = document.querySelector("[data-copied]");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.href);
      said.textContent = translated("Copied.");
    } catch {
      said.textContent = translated(
        "The browser did not allow that. Copy the page's address instead.",
      );
    }
  });
}
