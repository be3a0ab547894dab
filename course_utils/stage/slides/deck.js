// Parts the stream of cells into slides, and turns them. Without a script the deck is one long page.
"use strict";
(() => {
  const WIDTH = 1280, HEIGHT = 720;
  // Of the usual type, what a page may take before it is parted instead; code is then 16 pixels of 720 high.
  const TYPES = [1, 0.95, 0.9, 0.85, 0.8];
  const LARGEST = 1.25;
  const SMALLEST_PICTURE = 0.65; // of the space that there is for it
  const JOINED = 4; // what a heading in the middle of a slide costs: it is put there where slides would be rather empty
  const SPARSE = 12; // what a slide costs that is less than a third full
  const GAP = 15;
  const main = document.querySelector("main"), number = document.querySelector("output");

  const make = (tag, className, ...children) => {
    const node = document.createElement(tag);
    node.className = className;
    node.append(...children);
    return node;
  };

  // The stream of what stands on slides. A heading with nothing below it stands over the next one alone. A turn ends
  // with its question, and is answered under a heading of its own; what uses the answer stands under the heading above.
  function atoms() {
    const found = [];
    let above = null, asked = null; // headings: of level 2 that one of level 3 stands under, and of what an answer is to
    const goOn = () => above && found.push({ kind: "heading", node: above.cloneNode(true), level: 2, again: true });
    for (const cell of [...main.children]) {
      const kind = cell.dataset.kind;
      [...cell.children].forEach((node, place) => {
        const level = /^h[1-3]$/.test(node.localName) ? Number(node.localName[1]) : 0, last = found.at(-1);
        if (!level) return void found.push({ node, kind: node.localName === "img" ? "picture" : kind, begins: place === 0 });
        if (level < 3) above = null;
        if (last?.kind === "heading" && (last.node === above || last.again)) found.pop();
        found.push({ kind: "heading", node, level, kicker: (kind === "folded" ? asked : above)?.cloneNode(true) });
        if (level === 2) above = node;
        if (kind !== "folded") asked = node;
      });
      if (kind === "turn" || kind === "folded") goOn();
      cell.remove();
    }
    return found.filter(({ again }, at) => !again || (found[at + 1] && found[at + 1].kind !== "heading"));
  }

  function slide({ node, level, kicker }, again) {
    const made = make("section", level === 1 && !again ? "slide title" : "slide");
    const title = make("header", ""), body = make("div", "body");
    const copy = (one, className) => Object.assign(make("div", className), { innerHTML: one.innerHTML });
    if (kicker) title.append(copy(kicker, "kicker"));
    title.append(again ? copy(node, "again") : node);
    made.append(title, body);
    main.append(made);
    return { made, body };
  }

  const asks = ({ kind }) => kind === "guess" || kind === "turn";

  // What it costs to turn the page before this atom: least where the text begins anew.
  function breakBefore(atom, previous) {
    const announced = previous.kind === "prose" && /:\s*$/.test(previous.node.textContent);
    if (atom.kind === "heading") return 0;
    if (asks(atom)) return 600; // its question stands above it
    if (announced || (!atom.begins && /^([uo]l|table)$/.test(atom.node.localName))) return 40;
    if (atom.kind === "prose") return atom.begins ? 0 : 12;
    if (previous.kind === "prose") return atom.kind === "code" ? 14 : 16;
    if (previous.kind === "code") return atom.kind === "result" ? 60 : 8;
    return 3;
  }

  // How well these atoms fill one page: the cost, the type in which they fit, and the share of a picture's height.
  function fit(atoms, space) {
    const free = space - GAP * (atoms.length - 1);
    const pictures = atoms.filter((atom) => atom.kind === "picture").reduce((sum, atom) => sum + atom.heights[0], 0);
    const headings = atoms.filter(({ kind }, place) => place && kind === "heading").length;
    const least = Math.min(pictures, SMALLEST_PICTURE * space);
    for (const [place, type] of TYPES.entries()) {
      const text = atoms.reduce((sum, atom) => sum + (atom.kind === "picture" ? 0 : atom.heights[place]), 0);
      if (text + least > free) continue;
      const picture = pictures ? Math.min(1, (free - text) / pictures) : 1;
      const empty = (free - text - picture * pictures) / space;
      return { cost: JOINED * headings + 8 * empty ** 2 + SPARSE * (empty > 2 / 3) + 80 * (1 - picture) + 80 * (1 - type), type, picture };
    }
    return { cost: Infinity, type: TYPES.at(-1), picture: Math.min(1, free / pictures) };
  }

  // The cheapest way to part the atoms into pages, from the last one backwards. A heading that begins a page is its title.
  function parted(atoms) {
    const best = [];
    best[atoms.length] = { cost: 0 };
    for (let first = atoms.length - 1; first >= 0; first -= 1) {
      const titled = atoms[first].kind === "heading" && first + 1 < atoms.length ? 1 : 0;
      for (let end = first + 1 + titled; end <= atoms.length; end += 1) {
        if (end > first + 1 && asks(atoms[end - 2]) && !asks(atoms[end - 1])) break; // what follows is the answer
        if (end > first + 1 && atoms[end - 1].level === 1) break;
        if (!first && end > 1 && atoms[end - 1].kind === "heading") break; // the notebook's title stands alone
        if (end < atoms.length && atoms[end - 1].kind === "heading" && end > first + 1) continue; // with what it announces
        const page = fit(atoms.slice(first + titled, end), atoms[first].space);
        const alone = end === first + 1 + titled;
        if (page.cost === Infinity && !alone) break;
        const turn = first ? breakBefore(atoms[first], atoms[first - 1]) : 0;
        const cost = 10 + turn + (page.cost === Infinity ? 1000 : page.cost) + best[end].cost;
        if (!best[first] || cost < best[first].cost) best[first] = { ...page, cost, end };
      }
    }
    return best;
  }

  const setType = (body, factor) => void (body.style.fontSize = `calc(var(--text) * ${factor})`);

  // Code keeps its lines, in type that is a little smaller where they are long.
  function keepLines(pre) {
    const { fontSize, paddingLeft } = getComputedStyle(pre), size = parseFloat(fontSize), padding = parseFloat(paddingLeft);
    Object.assign(pre.style, { whiteSpace: "pre", width: "max-content" });
    const longest = pre.clientWidth - 2 * padding;
    Object.assign(pre.style, { whiteSpace: "", width: "" });
    const fitting = (size * (pre.clientWidth - 2 * padding - 2)) / longest;
    pre.style.setProperty("--fit", `${Math.max(TYPES.at(-1) * size, fitting)}px`);
  }

  // A page without a picture that is half empty is read more easily in larger type, if all still fits.
  function enlarge(body) {
    const used = [...body.children].reduce((sum, node) => sum + node.offsetHeight + GAP, 0);
    if (used > 0.5 * body.clientHeight || body.querySelector("img")) return;
    setType(body, LARGEST);
    const overflows = [body, ...body.querySelectorAll("table")].some((node) => node.scrollHeight > body.clientHeight || node.scrollWidth > body.clientWidth);
    if (overflows) setType(body, 1);
  }

  function lay(all) {
    let heading = null;
    for (const atom of all) {
      if (atom.kind === "heading") heading = { ...atom, node: atom.node.cloneNode(true) };
      if (atom.kind === "heading") {
        const { made, body } = slide(heading, false);
        heading.space = body.clientHeight;
        made.remove();
      }
      Object.assign(atom, { heading, space: heading.space });
    }
    const { made, body } = slide({ node: make("h2", "") }, false);
    body.append(...all.map((atom) => atom.node));
    body.querySelectorAll("pre.code").forEach(keepLines);
    const heightOf = ({ kind, node, space }) =>
      kind === "picture" ? Math.min(space, (body.clientWidth / node.naturalWidth) * node.naturalHeight) : node.offsetHeight + 0.5; // which is rounded
    for (const atom of all) atom.heights = [];
    for (const type of TYPES) {
      setType(body, type);
      for (const atom of all) atom.heights.push(heightOf(atom));
    }
    made.remove();
    const pages = parted(all);
    for (let first = 0; first < all.length; first = pages[first].end) {
      const { end, type, picture } = pages[first], titled = all[first].kind === "heading";
      const target = slide(titled ? all[first] : all[first].heading, !titled || all[first].again);
      setType(target.body, type);
      for (const atom of all.slice(first + titled, end)) {
        if (atom.kind === "picture") atom.node.style.height = `${Math.floor(atom.heights[0] * picture)}px`;
        target.body.append(atom.again ? Object.assign(make("div", "again"), { innerHTML: atom.node.innerHTML }) : atom.node);
      }
      if (asks(all[end - 1])) target.made.classList.add("asks");
      if (type === 1) enlarge(target.body);
      if (target.body.scrollHeight > target.body.clientHeight) target.body.tabIndex = 0;
    }
  }

  function show(wanted, record = true) {
    now = Math.min(Math.max(wanted, 0), slides.length - 1);
    slides.forEach((each, place) => each.classList.toggle("now", place === now));
    number.textContent = `${now + 1} / ${slides.length}`;
    if (record) history.replaceState(null, "", `#${now + 1}`);
    if (classes.contains("overview")) slides[now].scrollIntoView({ block: "nearest" });
    tell();
  }

  // The presenter's own window: the next slide, what INSTRUCTORS.md says of this one, and how long it has been. A note's
  // name is a heading's, or it is for every guess, or for a lab.
  function concerns(name, slide) {
    const titles = [...slide.querySelectorAll("header > *, .body > :is(h2, h3, .again)")].map((one) => one.textContent.toLowerCase());
    const [, lab] = /^moves(?:, )?(.*):$/.exec(name) ?? [];
    if (name === "guesses aloud:") return /Your guess/.test(slide.textContent);
    return titles.some((title) => (lab === undefined ? `${title} `.startsWith(`${name} `) : title.startsWith("explore") && title.endsWith(lab)));
  }

  const noted = document.querySelector("#notes"), planned = JSON.parse(noted.dataset.minutes);
  const titleOf = (each) => each?.querySelector("header").lastElementChild.textContent ?? "the end";
  const sectionOf = (place) => {
    for (; place >= 0; place -= 1) {
      const found = [...slides[place].querySelectorAll("header > *, .body > :is(h2, .again)")].find((one) => one.textContent in planned);
      if (found) return found.textContent;
    }
    return "";
  };
  const minutesSince = (moment) => Math.floor((Date.now() - moment) / 60_000);

  function tell() {
    if (!notes || notes.closed) return;
    const page = notes.document, find = (words) => page.querySelector(words);
    const section = sectionOf(now);
    if (section !== inSection) [inSection, sectionBegun] = [section, Date.now()];
    find("output").textContent = `${now + 1} / ${slides.length} · since ${minutesSince(begun)} min · next: ${titleOf(slides[now + 1])}`;
    find(".section").textContent = section ? `${section}: ${minutesSince(sectionBegun)} of ${planned[section]} min` : "";
    find("time").textContent = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    if (find(".next").dataset.of !== String(now)) {
      find(".next").dataset.of = now;
      find(".next").replaceChildren(slides[now + 1] ? page.importNode(slides[now + 1], true) : "The end");
    }
    for (const name of page.querySelectorAll("strong")) name.classList.toggle("here", concerns(name.textContent.toLowerCase(), slides[now]));
    for (const item of page.querySelectorAll("li")) item.classList.toggle("elsewhere", !item.querySelector(".here") || item.textContent.startsWith("Minutes:"));
    find(".here")?.scrollIntoView({ block: "nearest" });
  }
  function openNotes() {
    notes = open("", "notes", "width=1100,height=760");
    [begun, inSection] = [Date.now(), null];
    notes.document.head.innerHTML = `<title>Notes</title><style>${document.querySelector("style").textContent}</style>`;
    notes.document.body.className = "notes";
    notes.document.body.innerHTML = `<header><time></time><output></output><span class="section"></span></header>
      <div class="next" aria-label="The next slide"></div><div class="said">${noted.innerHTML}</div>`;
    notes.onkeydown = press;
    tell();
  }

  const classes = document.documentElement.classList;
  const actions = {
    f: () => document.documentElement.requestFullscreen(),
    o: () => {
      classes.toggle("overview");
      show(now);
    },
    d: () => classes.toggle("dark"),
    n: openNotes,
  };
  function press(event) {
    const { key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || !(key in actions || key in turns || key === "Enter" || key === "Escape")) return;
    event.preventDefault();
    if (key in actions) actions[key]();
    else if (key in turns) show(now + turns[key] * (key === " " && event.shiftKey ? -1 : 1));
    else classes.remove("overview");
  }

  function scale() {
    const factor = Math.min(innerWidth / WIDTH, innerHeight / HEIGHT), style = document.documentElement.style;
    style.setProperty("--scale", factor);
    style.setProperty("--left", `${(innerWidth - factor * WIDTH) / 2}px`);
    style.setProperty("--top", `${(innerHeight - factor * HEIGHT) / 2}px`);
  }

  const numberInAddress = () => (parseInt(location.hash.slice(1), 10) || 1) - 1;
  const turns = {
    ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1, Backspace: -1,
    Home: -Infinity, End: Infinity,
  };
  let slides = [], now = 0, notes = null, begun = 0, inSection = null, sectionBegun = 0;

  async function begin() {
    document.documentElement.classList.add("deck");
    scale();
    await Promise.all([...main.querySelectorAll("img")].map((img) => img.decode()));
    lay(atoms());
    slides = [...main.children];
    slides.forEach((each, place) => {
      each.setAttribute("role", "group");
      each.setAttribute("aria-roledescription", "slide");
      each.setAttribute("aria-label", `${place + 1} of ${slides.length}`);
    });
    show(numberInAddress(), false);
    document.documentElement.dataset.slides = slides.length;

    addEventListener("resize", scale);
    addEventListener("hashchange", () => show(numberInAddress()));
    addEventListener("keydown", press);
    setInterval(tell, 10_000);
    addEventListener("click", (event) => {
      if (event.target.closest("a") || String(getSelection())) return;
      const chosen = classes.contains("overview") ? slides.indexOf(event.target.closest(".slide")) : now + (event.clientX < innerWidth / 3 ? -1 : 1);
      classes.remove("overview");
      show(chosen);
    });
  }
  begin();
})();
