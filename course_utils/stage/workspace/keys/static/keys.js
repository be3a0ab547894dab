// An extension of JupyterLab, written by hand. After Shift+Enter, a cell's lab is in the window with its controls, and
// what follows a guess is not, until the reader has guessed or goes on. JupyterLab alone brings the next cell into view.
//
// A guess in a picture waits until *Show* is pressed: the lab's own space keeps the rest away, and running the next cell
// leads back to it. A guess that is typed waits for a value in place of its dots, or until the next cell is run.

(() => {
  const GOES_ON = "notebook:run-cell-and-select-next", STAYS = "notebook:run-cell";
  const MARGIN = 6; // px, between what is brought into view and the window's edge
  const HINT = 44; // px, for the words below a guess
  const QUIET_MS = 1500; // without a change, after which what was shown is complete
  const SOON_MS = 20_000; // within which a lab that was made is drawn, on a slow machine
  const WIDGET = "application/vnd.jupyter.widget-view+json";
  const HELD = "course-held", TYPED = "course-typed"; // a window's height below a cell, and words there
  const STYLE = `
    .jp-Notebook .course-waits { min-height: 100vh; align-content: flex-start; }
    .jp-Cell.${HELD}::after, .course-waits::after {
      content: ""; display: block; box-sizing: border-box; overflow: hidden; flex: none; width: 100%;
      color: var(--jp-ui-font-color2); font-family: var(--jp-content-font-family); font-size: var(--jp-content-font-size1);
    }
    .jp-Cell.${HELD}::after { height: 100vh; padding: 12px 0 0 calc(var(--jp-cell-prompt-width) + 8px); }
    .jp-Cell.${TYPED}::after { content: "Your guess first, in place of the dots: what follows comes up then. To go on without one, press Shift+Enter once more."; }
    .course-waits::after { content: "What follows comes up with Show."; padding-top: 4px; }`;

  const sourceOf = (cell) => cell.model.sharedModel.getSource();
  const isCode = (cell) => cell.model.type === "code";
  const isDrawn = (source) => /labs\.figure\([^)]*"shown"/.test(source);

  // As course_utils.stage.notebook.code says it in Python: all that the cell does is to set names to dots.
  function isOpen(source) {
    const code = source.replace(/#.*$/gm, ""), item = String.raw`\s*("[^"]*"|'[^']*')\s*:\s*\.\.\.\s*`;
    const dots = String.raw`(\.\.\.|\{${item}(,${item})*,?\s*\})`;
    return new RegExp(String.raw`^(\s*\w+\s*=\s*${dots}[^\S\n]*(\n|$))+\s*$`).test(code);
  }
  function isTyped(notebook, at) {
    const below = notebook.widgets.slice(at + 1).find(isCode);
    return isOpen(sourceOf(notebook.widgets[at])) && !(below && sourceOf(below).includes("check."));
  }

  const scrollerOf = (notebook) => notebook.node.querySelector(".jp-WindowedPanel-outer");
  const waitingLab = (node) => node.querySelector(".course-waits:not(.jupyter-widgets-disconnected)");

  // What has to be seen of a cell: its lab with its controls, or else its code, and of an answer all of it. The space
  // that keeps the rest away is no part of that.
  function boxOf({ node }) {
    const lab = node.querySelector(".course-lab"), input = node.querySelector(".jp-Cell-inputWrapper");
    const { top } = (lab ?? node).getBoundingClientRect(), asks = node.classList.contains(HELD);
    const parts = lab ? [...lab.querySelectorAll(".course-screen > *")] : [asks ? node.querySelector(".course-wall") ?? input : node];
    const bottom = Math.max(top, ...parts.map((one) => one.getBoundingClientRect().bottom));
    return { top, bottom: bottom + (asks || (lab && waitingLab(node)) ? HINT : 0) };
  }

  // Whether a good part of it is in the window.
  function isSeen(scroller, cell) {
    const seen = scroller.getBoundingClientRect(), whole = cell.node.getBoundingClientRect();
    if (whole.bottom < seen.top || whole.top > seen.bottom) return false; // to look into what is out of the window takes long
    const { top, bottom } = boxOf(cell);
    return Math.min(bottom, seen.bottom) - Math.max(top, seen.top) >= Math.min(seen.height, bottom - top) / 2;
  }

  // Where it was, or as near to that as lets all of it be seen.
  function bringIntoView(scroller, cell, was = cell.node.getBoundingClientRect().top) {
    const seen = scroller.getBoundingClientRect(), { top, bottom } = boxOf(cell), back = cell.node.getBoundingClientRect().top - was;
    const above = top - back - MARGIN - seen.top, below = bottom - back + MARGIN - seen.bottom;
    const by = back + (above < 0 ? above : Math.min(above, Math.max(0, below)));
    if (Math.abs(by) >= 1) scroller.scrollTop += by;
  }

  // Before an audience, what asks is at the top at once, where the presentation's style brings it as well.
  function bringToTheTop(scroller, { node }) {
    const shown = node.querySelector(".course-lab") ? node.querySelector(".jp-Cell-outputWrapper") : node;
    const by = shown.getBoundingClientRect().top - scroller.getBoundingClientRect().top;
    if (Math.abs(by) >= 1) scroller.scrollTop += by;
  }

  function showsWidget({ model: { outputs } }) {
    return Array.from({ length: outputs?.length ?? 0 }, (_, at) => outputs.get(at)).some(({ data }) => WIDGET in data);
  }

  let watched = 0; // of all that was ever kept in view, which one is
  const leave = () => { watched += 1; };

  // Keep the cell's lab in view while it is drawn, and where it `always` matters, the cell; until the reader does something.
  function keep(scroller, cell, ends, { always, moves, was, former }) {
    const mine = (watched += 1), { node } = cell;
    let ended = false, changed = performance.now(), last = "";
    ends.catch(() => {}).then(() => { ended = true; changed = performance.now(); });
    const look = () => {
      if (!node.isConnected) return;
      const lab = node.querySelector(".course-lab"), now = performance.now();
      const isDrawn = lab !== null && lab !== former && lab.querySelector(".course-picture svg") !== null;
      const patience = !isDrawn && ended && showsWidget(cell) ? SOON_MS : QUIET_MS, isQuiet = ended && now - changed > patience;
      if ((isDrawn || isQuiet) && !node.classList.contains(TYPED)) node.classList.remove(HELD); // from here on the lab's own space does it
      const asks = node.classList.contains(HELD) || waitingLab(node) !== null;
      if (mine === watched && moves && (always || lab)) bringIntoView(scroller, cell, was);
      if (mine === watched && !moves && asks) bringToTheTop(scroller, cell);
      const { top, bottom } = boxOf(cell), place = `${Math.round(top)} ${Math.round(bottom)} ${isDrawn}`;
      if (place !== last) [last, changed] = [place, now];
      const isOver = mine !== watched && !(node.classList.contains(HELD) && !node.classList.contains(TYPED));
      if (!isOver && !isQuiet) requestAnimationFrame(look);
    };
    look();
  }

  function followTheKeys(app) {
    document.head.appendChild(document.createElement("style")).textContent = STYLE;
    const notebookHere = () => {
      const panel = app.shell.currentWidget;
      return panel?.node.classList.contains("jp-NotebookPanel") && panel.content.widgets ? panel.content : null;
    };

    // What the reader saw when the key went down: JupyterLab scrolls before it says that a cell runs.
    let seen = () => false, wasAt = new Map();
    function before(event) {
      leave();
      const mayRun = event.key ? ["Enter", "PageDown"].includes(event.key) : !event.target.closest?.(".jp-Notebook");
      const notebook = mayRun && notebookHere();
      if (!notebook) return;
      const here = notebook.widgets.filter((cell) => isSeen(scrollerOf(notebook), cell));
      seen = (cell) => here.includes(cell);
      wasAt = new Map(notebook.widgets.map((cell) => [cell, cell.node.getBoundingClientRect().top]));
    }
    for (const kind of ["keydown", "pointerdown"]) window.addEventListener(kind, before, true);
    for (const kind of ["wheel", "touchmove"]) window.addEventListener(kind, leave, { capture: true, passive: true });

    // From inside a lab the key goes on to the next cell. To run the lab's own cell anew would take the marks away.
    window.addEventListener("keydown", (event) => {
      const lab = event.key === "Enter" && event.shiftKey && event.target.closest?.(".course-lab:not(.jupyter-widgets-disconnected)");
      const notebook = lab && notebookHere(), at = notebook ? notebook.widgets.findIndex(({ node }) => node.contains(lab)) : -1;
      if (at < 0 || at + 1 >= notebook.widgets.length) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      notebook.activeCellIndex = at + 1;
      notebook.activate();
      const scroller = scrollerOf(notebook);
      if (lab.matches(".course-waits")) stay(scroller, notebook.widgets[at], Promise.resolve(), true);
      else bringIntoView(scroller, notebook.widgets[at + 1]);
    }, true);
    function stay(scroller, cell, ends, always, former = null) {
      const moves = getComputedStyle(scroller).scrollSnapType === "none"; // a presentation's style does it itself
      keep(scroller, cell, ends, { always, moves, was: wasAt.get(cell), former });
    }

    app.commands.commandExecuted.connect((_, { id, result }) => {
      const notebook = (id === GOES_ON || id === STAYS) && notebookHere();
      if (!notebook) return;
      const scroller = scrollerOf(notebook), { widgets } = notebook, at = notebook.activeCellIndex - (id === GOES_ON), ran = widgets[at];
      if (!ran) return;
      const waits = widgets.slice(0, at).findLast((cell) => seen(cell) && waitingLab(cell.node));
      if (waits && !seen(ran)) { // to run a cell lifts no curtain
        notebook.activeCellIndex = widgets.indexOf(waits) + 1;
        stay(scroller, waits, result, true);
        return;
      }
      const lifted = widgets.slice(0, at).filter(({ node }) => node.classList.contains(HELD));
      for (const { node } of lifted) node.classList.remove(HELD, TYPED);
      if (!isCode(ran)) return;
      const typed = isTyped(notebook, at), asks = typed || isDrawn(sourceOf(ran));
      ran.node.classList.toggle(HELD, asks);
      ran.node.classList.toggle(TYPED, typed);
      stay(scroller, ran, result, asks || lifted.length > 0, ran.node.querySelector(".course-lab")); // which goes, if the cell ran before
    });
  }

  // A notebook that begins anew while it is open: what was written is saved before, and what there is now is read after.
  // Without that, JupyterLab's next save offers to overwrite it.
  const SAME_MS = 500; // two times of a file that near are one, as they are for JupyterLab

  function followTheDisk(app) {
    const opened = () => [...app.shell.widgets("main")].map(({ context }) => context).filter((one) => one?.isReady && one.path.endsWith(".ipynb"));
    const channel = new BroadcastChannel("course-workspace");

    async function isOld({ path, contentsModel }) {
      const there = await app.serviceManager.contents.get(path, { content: false }).catch(() => null);
      return there && contentsModel && Date.parse(there.last_modified) - Date.parse(contentsModel.last_modified) > SAME_MS;
    }
    let reads = false;
    async function readAgain() {
      if (reads || document.hidden) return;
      reads = true;
      for (const context of opened()) if (!context.model.dirty && (await isOld(context)) && !context.model.dirty) await context.revert();
      reads = false;
    }
    channel.onmessage = async ({ data }) => {
      if (data !== "save") return;
      await Promise.all(opened().filter(({ model }) => model.dirty).map((context) => context.save().catch(() => {})));
      channel.postMessage("saved");
    };
    document.addEventListener("visibilitychange", readAgain);
    window.addEventListener("focus", readAgain);
  }

  const plugin = { id: "course-keys:plugin", autoStart: true, activate: (app) => { followTheKeys(app); followTheDisk(app); } };
  (window._JUPYTERLAB ??= {})["course-keys"] = {
    init: () => {},
    get: async () => () => ({ __esModule: true, default: plugin }),
  };
})();
