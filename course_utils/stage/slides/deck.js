// Divides the deck's pieces into slides, and turns these. Without a script, the deck is one long
// page.
"use strict";
(() => {
  const WIDTH = 1280; // px of a slide
  const HEIGHT = 720;
  const GAP = 15; // px between two atoms: see `atoms`
  // Sizes of the type, as factors. A slide that is too full takes a smaller one before it is
  // divided. In the smallest, code is 16 px high.
  const TYPES = [1, 0.95, 0.9, 0.85, 0.8];
  const SMALLEST_TYPE = TYPES.at(-1);
  const LARGEST = 1.25; // on a slide that is half empty
  const SMALLEST_PICTURE = 0.65; // of the height that there is for it

  // The costs of a division into slides: the division with the least total is chosen.
  const COST = {
    slide: 10,
    heading: 4, // in the middle of a slide, where it saves a slide that would be rather empty
    empty: 8, // times the square of the empty share
    sparse: 12, // a slide that is less than a third full
    smallPicture: 80, // times the share by which pictures are smaller than in full size
    smallType: 80, // times the share by which the type is smaller
    overflow: 1000, // an atom that fits on no slide
  };

  // Sentences in the deck's language by their English, where it is another one.
  const { words = "{}" } = document.querySelector("#notes").dataset;
  const translations = JSON.parse(words);

  // The sentence in the deck's language, with the gaps filled in.
  function translated(english, gaps = {}) {
    const sentence = translations[english] ?? english;
    return sentence.replace(/\{(\w+)\}/g, (gap, name) => gaps[name] ?? gap);
  }

  const main = document.querySelector("main");
  const number = document.querySelector("output");
  const classes = document.documentElement.classList;

  const sum = (numbers) => numbers.reduce((total, value) => total + value, 0);

  const make = (tag, className, ...children) => {
    const node = document.createElement(tag);
    node.className = className;
    node.append(...children);
    return node;
  };

  // A div with the same content.
  function copyOf(node, className) {
    const copy = make("div", className);
    copy.innerHTML = node.innerHTML;
    return copy;
  }

  const levelOf = (node) => (/^h[1-3]$/.test(node.localName) ? Number(node.localName[1]) : 0);

  // The atoms of the deck, in order: headings, paragraphs, pictures, code. No slide divides an
  // atom. A heading with nothing below it only appears in small letters above the next heading, as
  // its kicker. A turn ends with its question. Its answer has a heading of its own, and what comes
  // after the answer has the section's heading again.
  function atoms() {
    const found = [];
    let section = null; // the last heading of level 2
    let asked = null; // the heading of the question that a folded answer belongs to

    function addHeading(node, level, isAnswer) {
      if (level < 3) section = null;
      const last = found.at(-1);
      if (last?.kind === "heading" && (last.node === section || last.again)) found.pop();
      const kicker = isAnswer ? asked : section;
      found.push({ kind: "heading", node, level, kicker: kicker?.cloneNode(true) });
      if (level === 2) section = node;
      if (!isAnswer) asked = node;
    }

    for (const cell of [...main.children]) {
      const { kind } = cell.dataset;
      const nodes = [...cell.children];
      for (const node of nodes) {
        const level = levelOf(node);
        if (level) {
          addHeading(node, level, kind === "folded");
        } else {
          const isPicture = node.localName === "img";
          found.push({ node, kind: isPicture ? "picture" : kind, begins: node === nodes[0] });
        }
      }
      if ((kind === "turn" || kind === "folded") && section) {
        found.push({ kind: "heading", node: section.cloneNode(true), level: 2, again: true });
      }
      cell.remove();
    }
    // A section's heading is repeated only if something follows that needs it.
    return found.filter(({ again }, at) => {
      const next = found[at + 1];
      return !again || (next && next.kind !== "heading");
    });
  }

  // A new slide under this heading, and its body. `again` says that the heading is repeated.
  function slide({ node, level, kicker }, again) {
    const made = make("section", level === 1 && !again ? "slide title" : "slide");
    const title = make("header", "");
    const body = make("div", "body");
    if (kicker) title.append(copyOf(kicker, "kicker"));
    title.append(again ? copyOf(node, "again") : node);
    made.append(title, body);
    main.append(made);
    return { made, body };
  }

  const asks = ({ kind }) => kind === "guess" || kind === "turn";

  // The cost of a new slide that begins with this atom, which adds to those of COST. It is least
  // where a text begins, and large between what belongs together.
  function breakBefore(atom, previous) {
    if (atom.kind === "heading") return 0;
    if (asks(atom)) return 600; // or its question would be on the slide before
    // What a colon announces stays with it, and so does a list with the sentence before it.
    const isAnnounced = previous.kind === "prose" && /:\s*$/.test(previous.node.textContent);
    const isListOrTable = /^([uo]l|table)$/.test(atom.node.localName);
    if (isAnnounced || (!atom.begins && isListOrTable)) return 40;
    if (atom.kind === "prose") return atom.begins ? 0 : 12;
    if (previous.kind === "prose") return atom.kind === "code" ? 14 : 16;
    if (previous.kind === "code") return atom.kind === "result" ? 60 : 8; // code and its result
    return 3;
  }

  // How well these atoms fill the height `space` of one slide: the cost, the largest type in which
  // they fit, and the share of their full height that pictures get.
  function fit(atoms, space) {
    const free = space - GAP * (atoms.length - 1);
    const pictures = atoms.filter(({ kind }) => kind === "picture");
    const others = atoms.filter(({ kind }) => kind !== "picture");
    const full = sum(pictures.map(({ heights }) => heights[0]));
    const least = Math.min(full, SMALLEST_PICTURE * space);
    for (const [place, type] of TYPES.entries()) { // from the largest
      const text = sum(others.map(({ heights }) => heights[place]));
      if (text + least > free) continue;
      const picture = full ? Math.min(1, (free - text) / full) : 1;
      const empty = (free - text - picture * full) / space;
      return { cost: costOf(atoms, type, picture, empty), type, picture };
    }
    return { cost: Infinity, type: SMALLEST_TYPE, picture: Math.min(1, free / full) };
  }

  // The cost of one slide with these atoms. `type` and `picture` are as in `fit`, and `empty` is the
  // share of the slide's height that is empty.
  function costOf(atoms, type, picture, empty) {
    const headings = atoms.slice(1).filter(({ kind }) => kind === "heading").length;
    let cost = COST.heading * headings;
    cost += COST.empty * empty ** 2;
    if (empty > 2 / 3) cost += COST.sparse;
    cost += COST.smallPicture * (1 - picture);
    cost += COST.smallType * (1 - type);
    return cost;
  }

  // The cheapest division of the atoms into pages, found from the last atom backwards. A heading
  // that begins a page is its title. For each atom, the result has the best page that begins with
  // it, where that page ends, and the cost of this page and all that follow.
  function parted(atoms) {
    const best = [];
    best[atoms.length] = { cost: 0 };
    for (let first = atoms.length - 1; first >= 0; first -= 1) {
      const isTitled = atoms[first].kind === "heading" && first + 1 < atoms.length;
      const body = isTitled ? first + 1 : first; // where the page's body begins
      for (let end = body + 1; end <= atoms.length; end += 1) {
        if (!mayGoOn(atoms, first, end)) break;
        const isHeadingLast = atoms[end - 1].kind === "heading" && end > first + 1;
        if (isHeadingLast && end < atoms.length) continue; // it stays with what it announces
        const page = fit(atoms.slice(body, end), atoms[first].space);
        const isAlone = end === body + 1; // then it gets a page even if it overflows
        if (page.cost === Infinity && !isAlone) break;
        const turn = first > 0 ? breakBefore(atoms[first], atoms[first - 1]) : 0;
        const own = page.cost === Infinity ? COST.overflow : page.cost;
        const cost = COST.slide + turn + own + best[end].cost;
        if (!best[first] || cost < best[first].cost) best[first] = { ...page, cost, end };
      }
    }
    return best;
  }

  // Whether a page that begins at `first` may end with the atom before `end`.
  function mayGoOn(atoms, first, end) {
    if (end === first + 1) return true;
    const last = atoms[end - 1];
    if (asks(atoms[end - 2]) && !asks(last)) return false; // what follows a question is its answer
    if (last.level === 1) return false;
    return first > 0 || last.kind !== "heading"; // the notebook's title stands alone
  }

  function setType(body, factor) {
    body.style.fontSize = `calc(var(--text) * ${factor})`;
  }

  // Give long lines of code a little smaller type, so that they are not broken.
  function keepLines(pre) {
    const computed = getComputedStyle(pre);
    const size = parseFloat(computed.fontSize);
    const padding = 2 * parseFloat(computed.paddingLeft);
    Object.assign(pre.style, { whiteSpace: "pre", width: "max-content" });
    const longest = pre.clientWidth - padding;
    Object.assign(pre.style, { whiteSpace: "", width: "" });
    const fitting = (size * (pre.clientWidth - padding - 2)) / longest;
    pre.style.setProperty("--fit", `${Math.max(SMALLEST_TYPE * size, fitting)}px`);
  }

  // Enlarge the type of a half empty page without a picture, if all of it still fits.
  function enlarge(body) {
    const used = sum([...body.children].map((node) => node.offsetHeight + GAP));
    if (used > 0.5 * body.clientHeight || body.querySelector("img")) return;
    setType(body, LARGEST);
    const isTooLarge = ({ scrollHeight, scrollWidth }) =>
      scrollHeight > body.clientHeight || scrollWidth > body.clientWidth;
    if ([body, ...body.querySelectorAll("table")].some(isTooLarge)) setType(body, 1);
  }

  // Divide the atoms into pages, and make a slide of each page.
  function lay(all) {
    measureSpace(all);
    measureHeights(all);
    const pages = parted(all);
    for (let first = 0; first < all.length; first = pages[first].end) {
      fill(all.slice(first, pages[first].end), pages[first]);
    }
  }

  // Give each atom the heading that it stands under, and the height that is free below the heading.
  function measureSpace(all) {
    let heading = null;
    for (const atom of all) {
      if (atom.kind === "heading") {
        heading = { ...atom, node: atom.node.cloneNode(true) };
        const { made, body } = slide(heading, false);
        heading.space = body.clientHeight;
        made.remove();
      }
      Object.assign(atom, { heading, space: heading.space });
    }
  }

  // Give each atom its height in each type, measured on a slide that has all of them.
  function measureHeights(all) {
    const { made, body } = slide({ node: make("h2", "") }, false);
    body.append(...all.map((atom) => atom.node));
    body.querySelectorAll("pre.code").forEach(keepLines);
    const heightOf = ({ kind, node, space }) => {
      if (kind !== "picture") return node.offsetHeight + 0.5; // which is a rounded height
      return Math.min(space, (body.clientWidth / node.naturalWidth) * node.naturalHeight);
    };
    for (const atom of all) atom.heights = [];
    for (const type of TYPES) {
      setType(body, type);
      for (const atom of all) atom.heights.push(heightOf(atom));
    }
    made.remove();
  }

  // Make the slide with these atoms.
  function fill(atoms, { type, picture }) {
    const [first] = atoms;
    const isTitled = first.kind === "heading";
    const { made, body } = isTitled ? slide(first, first.again) : slide(first.heading, true);
    setType(body, type);
    for (const atom of isTitled ? atoms.slice(1) : atoms) {
      if (atom.kind === "picture") {
        atom.node.style.height = `${Math.floor(atom.heights[0] * picture)}px`;
      }
      body.append(atom.again ? copyOf(atom.node, "again") : atom.node);
    }
    if (asks(atoms.at(-1))) made.classList.add("asks");
    if (type === 1) enlarge(body);
    if (body.scrollHeight > body.clientHeight) body.tabIndex = 0; // so that keys can scroll it
  }

  let slides = [];
  let now = 0;

  // Show the slide of this number, which counts from 0; beyond the ends, the first or the last. With
  // `record`, the address gets the number, counted from 1.
  function show(wanted, record = true) {
    now = Math.min(Math.max(wanted, 0), slides.length - 1);
    slides.forEach((each, place) => each.classList.toggle("now", place === now));
    number.textContent = `${now + 1} / ${slides.length}`;
    if (record) history.replaceState(null, "", `#${now + 1}`);
    if (classes.contains("overview")) slides[now].scrollIntoView({ block: "nearest" });
    updateNotes();
  }

  // The presenter's own window shows the next slide, the notes of INSTRUCTORS.md on this one, and
  // the time since the beginning.

  const template = document.querySelector("#notes");
  const planned = JSON.parse(template.dataset.minutes); // minutes by the section's title
  let notes = null; // the window
  let begun = 0;
  let inSection = null;
  let sectionBegun = 0;

  // Notes and minutes know a heading by its English, which a translated one carries.
  const englishOf = (node) => node.dataset.english ?? node.textContent;

  // Whether a note of that name is for that slide. A note has the name of a heading, or it is for
  // every guess, or for a lab.
  function concerns(name, slide) {
    if (name === "guesses aloud:") {
      const heading = slide.querySelector('[data-english="Your guess"]');
      return heading !== null || /Your guess/.test(slide.textContent);
    }
    const headings = [...slide.querySelectorAll("header > *, .body > :is(h2, h3, .again)")];
    const titles = headings.map((node) => englishOf(node).toLowerCase());
    const ofLab = /^moves(?:, )?(.*):$/.exec(name); // "moves:" or "moves, walk pictures:"
    if (!ofLab) return titles.some((title) => `${title} `.startsWith(`${name} `));
    return titles.some((title) => title.startsWith("explore") && title.endsWith(ofLab[1]));
  }

  const titleOf = (each) =>
    each?.querySelector("header").lastElementChild.textContent ?? translated("the end");

  // The planned section that a slide is in, which may have begun on an earlier one.
  function sectionOf(place) {
    for (const each of slides.slice(0, place + 1).reverse()) {
      const headings = [...each.querySelectorAll("header > *, .body > :is(h2, .again)")];
      const found = headings.find((node) => englishOf(node) in planned);
      if (found) return englishOf(found);
    }
    return "";
  }

  const minutesSince = (moment) => Math.floor((Date.now() - moment) / 60_000);

  // Bring the presenter's window up to date.
  function updateNotes() {
    if (!notes || notes.closed) return;
    const page = notes.document;
    updateTimes(page);
    const next = page.querySelector(".next");
    if (next.dataset.of !== String(now)) {
      const following = slides[now + 1];
      next.dataset.of = now;
      next.replaceChildren(following ? page.importNode(following, true) : translated("The end"));
    }
    for (const name of page.querySelectorAll("strong")) {
      const isHere = concerns(englishOf(name).toLowerCase(), slides[now]);
      name.classList.toggle("here", isHere);
    }
    for (const item of page.querySelectorAll("li")) {
      const names = [...item.querySelectorAll("strong")];
      const isPlan = names.some((name) => englishOf(name) === "Minutes:");
      item.classList.toggle("elsewhere", isPlan || !item.querySelector(".here"));
    }
    page.querySelector(".here")?.scrollIntoView({ block: "nearest" });
  }

  function updateTimes(page) {
    const section = sectionOf(now);
    if (section !== inSection) {
      inSection = section;
      sectionBegun = Date.now();
    }
    const write = (selector, words) => { page.querySelector(selector).textContent = words; };
    const place = `${now + 1} / ${slides.length}`;
    const next = titleOf(slides[now + 1]);
    const minutes = minutesSince(begun);
    write("output", translated("{place} · since {minutes} min · next: {next}", { place, minutes, next }));
    const spent = translated("{section}: {minutes} of {planned} min", {
      section,
      minutes: minutesSince(sectionBegun),
      planned: planned[section],
    });
    write(".section", section ? spent : "");
    write("time", new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }));
  }

  function openNotes() {
    notes = open("", "notes", "width=1100,height=760");
    begun = Date.now();
    inSection = null;
    const style = document.querySelector("style").textContent;
    const page = notes.document;
    page.head.innerHTML = `<title>${translated("Notes")}</title><style>${style}</style>`;
    page.body.className = "notes";
    page.body.innerHTML =
      '<header><time></time><output></output><span class="section"></span></header>' +
      `<div class="next" aria-label="${translated("The next slide")}"></div>` +
      `<div class="said">${template.innerHTML}</div>`;
    notes.onkeydown = press;
    updateNotes();
  }

  // Keys, clicks, and the window's size.

  const actions = {
    f: () => document.documentElement.requestFullscreen(),
    o: () => {
      classes.toggle("overview");
      show(now);
    },
    d: () => classes.toggle("dark"),
    n: openNotes,
    Enter: () => classes.remove("overview"),
    Escape: () => classes.remove("overview"),
  };
  const turns = {
    ArrowRight: 1,
    ArrowDown: 1,
    PageDown: 1,
    " ": 1,
    ArrowLeft: -1,
    ArrowUp: -1,
    PageUp: -1,
    Backspace: -1,
    Home: -Infinity,
    End: Infinity,
  };

  // Carry out what a key is for. A key with Ctrl, Alt or Meta is the browser's.
  function press(event) {
    const { key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (key in actions) {
      event.preventDefault();
      actions[key]();
    } else if (key in turns) {
      event.preventDefault();
      const isBackwards = key === " " && event.shiftKey;
      show(isBackwards ? now - 1 : now + turns[key]);
    }
  }

  // Turn back in the left third of the window, and on elsewhere; in the overview, choose a slide.
  function click(event) {
    if (event.target.closest("a") || String(getSelection())) return; // a link, or selected text
    const isLeft = event.clientX < innerWidth / 3;
    let chosen = isLeft ? now - 1 : now + 1;
    if (classes.contains("overview")) chosen = slides.indexOf(event.target.closest(".slide"));
    classes.remove("overview");
    show(chosen);
  }

  // Scale slides to the window, and put them into its middle.
  function scale() {
    const factor = Math.min(innerWidth / WIDTH, innerHeight / HEIGHT);
    const { style } = document.documentElement;
    style.setProperty("--scale", factor);
    style.setProperty("--left", `${(innerWidth - factor * WIDTH) / 2}px`);
    style.setProperty("--top", `${(innerHeight - factor * HEIGHT) / 2}px`);
  }

  // The slide's number, counted from 0, that an address like "#3" names; else the first.
  const numberInAddress = () => (parseInt(location.hash.slice(1), 10) || 1) - 1;

  async function begin() {
    classes.add("deck");
    scale();
    await Promise.all([...main.querySelectorAll("img")].map((img) => img.decode()));
    lay(atoms());
    slides = [...main.children];
    slides.forEach((each, place) => {
      each.setAttribute("role", "group");
      each.setAttribute("aria-roledescription", translated("slide"));
      const gaps = { number: place + 1, slides: slides.length };
      each.setAttribute("aria-label", translated("{number} of {slides}", gaps));
    });
    show(numberInAddress(), false);
    document.documentElement.dataset.slides = slides.length;

    addEventListener("resize", scale);
    addEventListener("hashchange", () => show(numberInAddress()));
    addEventListener("keydown", press);
    setInterval(updateNotes, 10_000);
    addEventListener("click", click);
  }
  begin();
})();
