// Parts the stream of cells into slides, and turns them. Without a script the deck is one long page.
"use strict";
(() => {
  const WIDTH = 1280, HEIGHT = 720;
  // Of the usual type, what a page may take before it is parted instead; code is then 16 pixels of 720 high.
  const TYPES = [1, 0.95, 0.9, 0.85, 0.8];
  const LARGEST = 1.25;
  const SMALLEST_PICTURE = 0.65; // of the room that there is for it
  const GAP = 15;
  const main = document.querySelector("main"), number = document.querySelector("output");

  const make = (tag, className, ...children) => {
    const node = document.createElement(tag);
    node.className = className;
    node.append(...children);
    return node;
  };

  // A section is a heading and what stands below it; a heading with nothing below it stands over the next one alone.
  // A turn ends with its question: what it uses of the answer stands under the heading above, on other slides.
  function sections() {
    const found = [];
    let above = null; // the heading of level 2 that one of level 3 stands under
    for (const cell of [...main.children]) {
      [...cell.children].forEach((node, place) => {
        const atom = { node, kind: node.localName === "img" ? "picture" : cell.dataset.kind, begins: place === 0 };
        const level = /^h[1-3]$/.test(node.localName) ? Number(node.localName[1]) : 0;
        const last = found.at(-1);
        if (!level) {
          last.atoms.push(atom);
          if (atom.kind === "turn" && above) found.push({ heading: above.cloneNode(true), level: 2, again: true, atoms: [] });
          return;
        }
        if (level < 3) above = null;
        if (last && !last.atoms.length && (last.heading === above || last.again)) found.pop();
        found.push({ heading: node, level, kicker: above?.cloneNode(true), atoms: [] });
        if (level === 2) above = node;
      });
      cell.remove();
    }
    return found.filter(({ again, atoms }) => atoms.length || !again);
  }

  function slide({ heading, level, kicker }, again) {
    const made = make("section", level === 1 && !again ? "slide title" : "slide");
    const title = make("header", "");
    const copy = (node) => (again || !node.matches("h1, h2, h3") ? Object.assign(make("div", node.className), { innerHTML: node.innerHTML }) : node);
    if (kicker) {
      kicker.classList.add("kicker");
      title.append(copy(kicker));
    }
    title.append(again ? Object.assign(copy(heading), { className: "again" }) : heading);
    const body = make("div", "body");
    made.append(title, body);
    main.append(made);
    return { made, body };
  }

  const asks = ({ kind }) => kind === "guess" || kind === "turn";

  // What it costs to turn the page before this atom: least where the text begins anew.
  function breakBefore(atom, previous) {
    const announced = previous.kind === "prose" && /:\s*$/.test(previous.node.textContent);
    if (asks(atom)) return 600; // its question stands above it
    if (announced || (!atom.begins && /^([uo]l|table)$/.test(atom.node.localName))) return 40;
    if (atom.kind === "prose") return atom.begins ? 0 : 12;
    if (previous.kind === "prose") return atom.kind === "code" ? 14 : 16;
    if (previous.kind === "code") return atom.kind === "result" ? 60 : 8;
    return 3;
  }

  // How well these atoms fill one page: the cost, the type in which they fit, and the share of a picture's height.
  function fit(atoms, room) {
    const free = room - GAP * (atoms.length - 1);
    const pictures = atoms.filter((atom) => atom.kind === "picture").reduce((sum, atom) => sum + atom.heights[0], 0);
    const least = Math.min(pictures, SMALLEST_PICTURE * room);
    for (const [place, type] of TYPES.entries()) {
      const text = atoms.reduce((sum, atom) => sum + (atom.kind === "picture" ? 0 : atom.heights[place]), 0);
      if (text + least > free) continue;
      const picture = pictures ? Math.min(1, (free - text) / pictures) : 1;
      const empty = (free - text - picture * pictures) / room;
      return { cost: 8 * empty ** 2 + 80 * (1 - picture) + 80 * (1 - type), type, picture };
    }
    return { cost: Infinity, type: TYPES.at(-1), picture: Math.min(1, free / pictures) };
  }

  // The cheapest way to part the atoms into pages, from the last one backwards.
  function parted(atoms, room) {
    const best = [];
    best[atoms.length] = { cost: 0 };
    for (let first = atoms.length - 1; first >= 0; first -= 1) {
      for (let end = first + 1; end <= atoms.length; end += 1) {
        if (end > first + 1 && asks(atoms[end - 2]) && !asks(atoms[end - 1])) break; // what follows is the answer
        const page = fit(atoms.slice(first, end), room);
        const alone = end === first + 1;
        if (page.cost === Infinity && !alone) break;
        const turn = first ? breakBefore(atoms[first], atoms[first - 1]) : 0;
        const cost = 6 + turn + (page.cost === Infinity ? 1000 : page.cost) + best[end].cost;
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

  // A page of text alone that is half empty is read more easily in larger type, if all still fits.
  function enlarge(body) {
    const used = [...body.children].reduce((sum, node) => sum + node.offsetHeight + GAP, 0);
    if (used > 0.5 * body.clientHeight || body.querySelector("img, pre")) return;
    setType(body, LARGEST);
    const overflows = [body, ...body.querySelectorAll("table")].some((node) => node.scrollHeight > body.clientHeight || node.scrollWidth > body.clientWidth);
    if (overflows) setType(body, 1);
  }

  function lay(section) {
    const { made, body } = slide(section, section.again);
    body.append(...section.atoms.map((atom) => atom.node));
    body.querySelectorAll("pre.code").forEach(keepLines);
    const room = body.clientHeight;
    const heightOf = ({ kind, node }) =>
      kind === "picture" ? Math.min(room, (body.clientWidth / node.naturalWidth) * node.naturalHeight) : node.offsetHeight;
    for (const atom of section.atoms) atom.heights = [];
    for (const type of TYPES) {
      setType(body, type);
      for (const atom of section.atoms) atom.heights.push(heightOf(atom));
    }
    setType(body, 1);
    const pages = parted(section.atoms, room);
    let target = { made, body };
    for (let first = 0; first < section.atoms.length; first = pages[first].end) {
      const { end, type, picture } = pages[first];
      if (first) target = slide(section, true);
      setType(target.body, type);
      for (const atom of section.atoms.slice(first, end)) {
        if (atom.kind === "picture") atom.node.style.height = `${Math.floor(atom.heights[0] * picture)}px`;
        target.body.append(atom.node);
      }
      if (type === 1) enlarge(target.body);
      if (target.body.scrollHeight > target.body.clientHeight) target.body.tabIndex = 0;
    }
  }

  function show(wanted, record = true) {
    now = Math.min(Math.max(wanted, 0), slides.length - 1);
    slides.forEach((each, place) => each.classList.toggle("now", place === now));
    number.textContent = `${now + 1} / ${slides.length}`;
    if (record) history.replaceState(null, "", `#${now + 1}`);
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
  let slides = [], now = 0;

  async function begin() {
    document.documentElement.classList.add("deck");
    scale();
    await Promise.all([...main.querySelectorAll("img")].map((img) => img.decode()));
    sections().forEach(lay);
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
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "f") return void document.documentElement.requestFullscreen();
      if (!(event.key in turns)) return;
      event.preventDefault();
      show(now + turns[event.key] * (event.key === " " && event.shiftKey ? -1 : 1));
    });
    addEventListener("click", (event) => {
      if (event.target.closest("a") || String(getSelection())) return;
      show(now + (event.clientX < innerWidth / 3 ? -1 : 1));
    });
  }
  begin();
})();
