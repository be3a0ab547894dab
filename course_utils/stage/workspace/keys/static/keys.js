// An extension of JupyterLab, written by hand. After Shift+Enter, the lab of a cell, the field of its
// guess, or its picture is in the window, a lab together with its controls. JupyterLab alone would
// bring the next cell into view.
//
// What follows a guess is not in the window until *Show* is pressed: the lab or the field takes up
// the space that keeps the rest away, and running the next cell leads back to it.

(() => {
  const GOES_ON = "notebook:run-cell-and-select-next";
  const STAYS = "notebook:run-cell";
  const RUNS = [GOES_ON, STAYS, "notebook:run-cell-and-insert-below", "notebook:run-all-below"];
  const MARGIN = 6; // px, between what is brought into view and the window's edge
  const HINT = 44; // px, for the words below a guess
  const QUIET_MS = 1500; // without a change; after it, the output counts as complete
  const SOON_MS = 20_000; // within which a lab is drawn, even on a slow machine
  const WIDGET = "application/vnd.jupyter.widget-view+json";
  // The class of a cell with space of a window's height below it, until its lab is drawn.
  const HELD = "course-held";
  // What can wait for a guess: a lab, or the field of a guess.
  const LAB = ".course-lab, .course-ask";
  // A figure that does not move; or all of an output with a table, unless that is folded, or with a
  // reveal: its legend, its rows, and what stands below them.
  const PICTURE =
    ".jp-OutputArea-output.jp-RenderedImage img, .jp-OutputArea-output.jp-RenderedHTML:has(> table), " +
    ".jp-OutputArea-output.jp-RenderedHTML:has([role=img])";
  const LIVE_LAB =
    ".course-lab:not(.jupyter-widgets-disconnected), " +
    ".course-ask:not(.jupyter-widgets-disconnected *)";
  // The class of a cell that is covered until *Show* is pressed above it, and the cover's button.
  const BEHIND = "course-behind";
  const SHOW = ".course-ask-show, .widget-toggle-button:not(.widget-toggle-buttons *)";
  const STYLE = `
    /* The cells keep their size, so that nothing moves when they are uncovered. */
    .jp-Cell.${BEHIND} { position: relative; min-height: 56px; }
    .jp-Cell.${BEHIND} > :not(.course-cover), .jp-Cell.${BEHIND} > :not(.course-cover) * {
      visibility: hidden !important;
    }
    .course-cover {
      position: absolute;
      inset: 6px 8px auto calc(var(--jp-cell-prompt-width) + 8px);
      display: flex;
      align-items: center;
      gap: 8px 16px;
      padding: 8px 16px;
      border: 1px dashed var(--jp-border-color0);
      border-radius: 6px;
      color: var(--jp-ui-font-color1);
      font-family: var(--jp-content-font-family);
      font-size: var(--jp-content-font-size1);
    }
    .course-cover button {
      padding: 3px 14px;
      border: 1px solid var(--jp-border-color0);
      border-radius: 4px;
      background: var(--jp-layout-color1);
      color: var(--jp-ui-font-color0);
      font: inherit;
      font-weight: 600;
      cursor: pointer;
    }
    .jp-Notebook .jp-Cell .course-waits { min-height: 100vh; align-content: flex-start; }
    .jp-Notebook .jp-Cell .course-spacer { min-height: 100vh; }
    /* On a phone a figure is moved sideways, so that its letters stay readable. */
    @media (max-width: 640px) {
      .jp-OutputArea-output.jp-RenderedImage { overflow-x: auto; }
      .jp-OutputArea-output.jp-RenderedImage img { min-width: 700px; }
    }
    /* The buttons of the cell that waits out of view are not to be reached by Tab. */
    .jp-Cell:has(.course-waits) + .jp-Cell .jp-cell-toolbar { visibility: hidden; }
    .jp-Cell.${HELD}::after, .course-waits::after {
      content: "";
      display: block;
      box-sizing: border-box;
      overflow: hidden;
      flex: none;
      width: 100%;
      color: var(--jp-ui-font-color2);
      font-family: var(--jp-content-font-family);
      font-size: var(--jp-content-font-size1);
    }
    .jp-Cell.${HELD}::after {
      height: 100vh;
      padding: 12px 0 0 calc(var(--jp-cell-prompt-width) + 8px);
    }
    .course-lab.course-waits::after {
      /* The lab's script sets it in the reader's language. */
      content: var(--course-comes-up, "What follows comes up with Show.");
      padding-top: 4px;
    }`;

  const sourceOf = (cell) => cell.model.sharedModel.getSource();
  const isCode = (cell) => cell.model.type === "code";
  // Whether the cell makes a figure with the button *Show*, or the field of a guess. In Python,
  // course_utils.stage.notebook.code decides this.
  const asksForAGuess = (source) =>
    /labs\.figure\([^)]*"shown"/.test(source) || /^\s*\w+\s*=\s*ask\(/m.test(source);
  // The names of the guesses for which the cell asks, such as my_gb in `my_gb = ask("GB")`.
  const namesAskedIn = (source) =>
    [...source.matchAll(/^\s*(\w+)\s*=\s*ask\(/gm)].map(([, name]) => name);
  const isSomeReveal = (source) => /\breveal\(|\bguess\s*=/.test(source);
  const reveals = (source, name) =>
    isSomeReveal(source) && new RegExp(`\\b${name}\\b`).test(source);
  // The class of a view whose kernel is gone, and such a field or lab that still waits for a guess.
  const LOST = "jupyter-widgets-disconnected";
  const LOST_GUESS = `.${LOST} .course-ask.course-waits, .course-lab.course-waits.${LOST}`;
  // Whether the reader does something with such a cell: guess, drag, write a function, be judged.
  const needsTheReader = (source) =>
    /\bask\(|\blabs\.|\bcheck\.|^\s*(return\s+)?\.\.\./m.test(source);
  const topOf = (node) => node.getBoundingClientRect().top;

  const scrollerOf = (notebook) => notebook.node.querySelector(".jp-WindowedPanel-outer");
  // Before an audience, a presentation's style brings the cell that ran to the top by itself.
  const isPresented = (scroller) => getComputedStyle(scroller).scrollSnapType !== "none";

  // The lab or field of the cell that waits for *Show*. Before a room that guesses by phone, nothing
  // waits: the wall below the field keeps the rest away.
  function waitingLab(node) {
    if (node.querySelector(".course-wall")) return null;
    const waiting = [...node.querySelectorAll(".course-waits")];
    return waiting.find((lab) => lab.matches(LIVE_LAB)) ?? null;
  }

  // After a restart ipywidgets marks what has lost its kernel, but not after a kernel has died.
  function markAsLost(notebook) {
    for (const { node } of notebook.widgets) {
      for (const lost of node.querySelectorAll(".course-lab, :has(> .course-ask)")) {
        lost.classList.add(LOST);
      }
    }
  }

  // The top and bottom of the part of a cell that has to be seen: of a cell with a lab, the lab and
  // its controls; of a cell with the field of a guess, the field and a wall below it; of a cell with
  // a picture, the picture; of any other cell, all of it. The space that keeps the rest away is not
  // counted.
  function boxOf({ node }) {
    const lab = node.querySelector(LAB);
    const pictures = [...node.querySelectorAll(PICTURE)];
    const isHeld = node.classList.contains(HELD);
    const top = topOf(lab ?? pictures[0] ?? node);
    let parts = pictures.length > 0 ? pictures : [node];
    if (lab) {
      parts = [...node.querySelectorAll(".course-screen > *, .course-ask-card, .course-wall")];
    } else if (isHeld) {
      parts = [node.querySelector(".jp-Cell-inputWrapper")];
    }
    const bottoms = parts.map((part) => part.getBoundingClientRect().bottom);
    const hasHint = isHeld || (lab && waitingLab(node));
    return { top, bottom: Math.max(top, ...bottoms) + (hasHint ? HINT : 0) };
  }

  // Whether at least half of the cell is in the window, or fills at least half of the window.
  function isSeen(scroller, cell) {
    const seen = scroller.getBoundingClientRect();
    const whole = cell.node.getBoundingClientRect();
    // To look inside a cell takes long, so most cells are ruled out before that.
    if (whole.bottom < seen.top || whole.top > seen.bottom) return false;
    const { top, bottom } = boxOf(cell);
    const height = Math.min(bottom, seen.bottom) - Math.max(top, seen.top);
    return height >= Math.min(seen.height, bottom - top) / 2;
  }

  // Scroll so that the cell's top is at `was` again, or as near to it as lets all of it be seen.
  function bringIntoView(scroller, cell, was = topOf(cell.node)) {
    const seen = scroller.getBoundingClientRect();
    const { top, bottom } = boxOf(cell);
    const back = topOf(cell.node) - was;
    const above = top - back - MARGIN - seen.top; // negative if the top is out of view
    const below = bottom - back + MARGIN - seen.bottom; // positive if the bottom is
    let by = back;
    if (above < 0) by += above;
    else if (below > 0) by += Math.min(above, below); // the top stays in view
    scrollBy(scroller, by);
  }

  // Before an audience, a lab that asks for a guess comes to the top. The presentation's style does
  // the same with other cells. Of a field, the question above it comes to the top, or as much of its
  // end as leaves the field in the window.
  function bringToTheTop(scroller, cell) {
    const { node } = cell;
    const seen = scroller.getBoundingClientRect();
    const question = node.previousElementSibling;
    let top = topOf(node);
    if (node.querySelector(".course-lab")) {
      top = topOf(node.querySelector(".jp-Cell-outputWrapper"));
    } else if (question?.classList.contains("jp-MarkdownCell")) {
      top = Math.max(topOf(question), boxOf(cell).bottom + MARGIN - seen.height);
    } else if (!node.querySelector(LAB)) {
      // Of a reveal, the picture and the sentence below it are seen, however long the code is.
      const box = boxOf(cell);
      top = Math.min(box.top, Math.max(top, box.bottom + MARGIN - seen.height));
    }
    scrollBy(scroller, top - seen.top);
  }

  function scrollBy(scroller, by) {
    if (Math.abs(by) >= 1) scroller.scrollTop += by;
  }

  // Whether an output of the cell is a widget. `outputs` is JupyterLab's list, which is no array; a
  // cell of text has none.
  function showsWidget({ model: { outputs } }) {
    for (let at = 0; at < (outputs?.length ?? 0); at += 1) {
      if (WIDGET in outputs.get(at).data) return true;
    }
    return false;
  }

  // The cells that the present kernels have run, as far as this page saw; see `followTheFolds`.
  let haveRun = new WeakSet();

  // The number of the latest cell that is kept in view. An earlier cell is no longer moved, and
  // after `leave` none is.
  let watched = 0;
  const leave = () => { watched += 1; };

  // Keep the cell's lab or picture in view while it is drawn, until the reader does something. With
  // `always`, a cell with neither is kept in view, too. `ends` is the promise of the cell's run, `was` the
  // cell's top before it, and `former` the lab that the run replaces. Without `moves`, the cell is
  // only brought to the top, and that only while it waits for a guess, or if it `arrives`.
  function keep(scroller, cell, ends, { always, moves, was, former, arrives = false }) {
    leave();
    const mine = watched;
    const { node } = cell;
    let hasEnded = false;
    let changed = performance.now();
    let lastPlace = "";
    ends.catch(() => {}).then(() => {
      hasEnded = true;
      changed = performance.now();
    });

    const look = () => {
      if (!node.isConnected) return;
      const now = performance.now();
      const lab = node.querySelector(LAB);
      const isNew = lab !== null && lab !== former;
      const isDrawn = isNew && lab.querySelector(".course-picture svg, .course-ask-card") !== null;
      const waitsForLab = !isDrawn && hasEnded && showsWidget(cell);
      const isQuiet = hasEnded && now - changed > (waitsForLab ? SOON_MS : QUIET_MS);
      // From here on, a space in the lab itself keeps the rest away.
      if (isDrawn || isQuiet) node.classList.remove(HELD);

      const isHeld = node.classList.contains(HELD);
      if (mine === watched) {
        const isShown = always || lab !== null || node.querySelector(PICTURE) !== null;
        if (moves && isShown) bringIntoView(scroller, cell, was);
        if (!moves && (arrives || isHeld || waitingLab(node))) bringToTheTop(scroller, cell);
      }
      const { top, bottom } = boxOf(cell);
      const place = `${Math.round(top)} ${Math.round(bottom)} ${isDrawn}`;
      if (place !== lastPlace) {
        lastPlace = place;
        changed = now;
      }
      // The space below a lab is still to be taken away, even if the reader has gone on.
      const isOver = mine !== watched && !isHeld;
      if (!isOver && !isQuiet) requestAnimationFrame(look);
    };
    look();
  }

  function followTheKeys(app) {
    document.head.appendChild(document.createElement("style")).textContent = STYLE;

    const currentNotebook = () => {
      const panel = app.shell.currentWidget;
      const isNotebook = panel?.node.classList.contains("jp-NotebookPanel");
      return isNotebook && panel.content.widgets ? panel.content : null;
    };

    // Keep the cell in view, from where it was when the key went down; see `keep`.
    function stay(scroller, cell, ends, always, former = null) {
      const moves = !isPresented(scroller);
      keep(scroller, cell, ends, { always, moves, was: topsBefore.get(cell), former });
    }

    // What the reader saw when the key went down. JupyterLab scrolls before it reports that a cell
    // runs, so this is noted at each event after which a cell may run.
    let seenBefore = new Set();
    let topsBefore = new Map(); // by cell

    // Whether a cell may run after this event: a key that runs cells, or a click outside of them.
    const mayRun = (event) => {
      if (event.key) return event.key === "Enter" || event.key === "PageDown";
      return !event.target.closest?.(".jp-Notebook"); // on a button of the toolbar, or in a menu
    };

    function noteWhatIsSeen(event) {
      leave();
      const isClick = event.type === "pointerdown" && event.target.closest?.(".jp-Notebook");
      // The style of a presentation moves nothing after a click.
      document.documentElement.classList.toggle("course-clicked", Boolean(isClick));
      const notebook = mayRun(event) ? currentNotebook() : null;
      if (!notebook) return;
      const scroller = scrollerOf(notebook);
      seenBefore = new Set(notebook.widgets.filter((cell) => isSeen(scroller, cell)));
      topsBefore = new Map(notebook.widgets.map((cell) => [cell, topOf(cell.node)]));
    }
    for (const kind of ["keydown", "pointerdown"]) {
      window.addEventListener(kind, noteWhatIsSeen, true);
    }
    for (const kind of ["wheel", "touchmove"]) {
      window.addEventListener(kind, leave, { capture: true, passive: true });
    }

    // How many cells that key leads on from inside a lab: 1 for Shift+Enter. A presenter's remote
    // has Page Down and Page Up, which before an audience lead on and back.
    function stepOf({ key, shiftKey }, scroller) {
      if (key === "Enter") return shiftKey ? 1 : 0;
      return isPresented(scroller) ? { PageDown: 1, PageUp: -1 }[key] ?? 0 : 0;
    }

    // From inside a lab, such a key leads to another cell. To run the lab's own cell anew would take
    // the reader's marks away.
    //
    // A button that is disabled while its job runs loses the focus to the page. The key still counts
    // as pressed in the lab where the focus was last.
    let lastLab = null;
    window.addEventListener("focusin", ({ target }) => {
      lastLab = target.closest?.(LIVE_LAB) ?? null;
    });
    function goOnFromLab(event) {
      const isLost = event.target === document.body && lastLab?.isConnected;
      const lab = isLost ? lastLab : event.target.closest?.(LIVE_LAB);
      const notebook = lab ? currentNotebook() : null;
      if (!notebook) return;
      const { widgets } = notebook;
      const scroller = scrollerOf(notebook);
      const at = widgets.findIndex(({ node }) => node.contains(lab));
      const step = stepOf(event, scroller);
      const next = widgets[at + step];
      if (at < 0 || step === 0 || !next) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      notebook.activeCellIndex = at + step;
      notebook.activate();
      const isAfterGuess = step > 0 && waitingLab(widgets[at].node);
      if (isAfterGuess) stay(scroller, widgets[at], Promise.resolve(), true);
      else bringIntoView(scroller, next);
    }
    window.addEventListener("keydown", goOnFromLab, true);

    // The cells that lead from an asking cell to its reveal, which is the last of them: code that
    // only gets things ready, and then the reveal. None if there is something to read or to do on
    // the way, or no reveal.
    function wayToReveal(widgets, asking, isReveal) {
      const end = widgets.findIndex((cell, at) => at > asking && isReveal(cell));
      const way = widgets.slice(asking + 1, end + 1);
      const isToBePassed = (cell) => isCode(cell) && !needsTheReader(sourceOf(cell));
      return way.slice(0, -1).every(isToBePassed) ? way : [];
    }

    let runsForShow = false; // while cells run that the reader has not asked for
    // Run these cells; returns the promise of whether all have run without an error.
    async function runForShow(notebook, cells) {
      runsForShow = true;
      const runs = cells.map((cell) => {
        notebook.deselectAll();
        notebook.activeCellIndex = notebook.widgets.indexOf(cell); // the command runs that one
        return app.commands.execute(STAYS);
      });
      runsForShow = false;
      const results = await Promise.all(runs.map((run) => run.catch(() => false)));
      return !results.includes(false);
    }

    // *Show* settles a guess, as its field then says. What follows is its reveal: it is run and comes
    // into the window, with the code that it needs. If there is something to read on the way to it,
    // the reader goes on from the next cell.
    //
    // All cells may have run before the reader came to the guess. Then each reveal of it shows no
    // guess, or a former one, so those are run again.
    function settle(event) {
      const field = event.target.closest(LIVE_LAB);
      const notebook = field ? currentNotebook() : null;
      const at = notebook?.widgets.findIndex(({ node }) => node.contains(field)) ?? -1;
      if (at < 0) return;
      const { widgets } = notebook;
      const names = namesAskedIn(sourceOf(widgets[at]));
      const isReveal = (cell) =>
        isCode(cell) && names.some((name) => reveals(sourceOf(cell), name));
      const way = wayToReveal(widgets, at, isReveal);
      const reveal = way.at(-1);
      const needed = way.filter((cell) => cell === reveal || !haveRun.has(cell));
      const shown = widgets.filter((cell, number) => {
        const hasRun = cell.model.executionCount !== null;
        return number > at && isReveal(cell) && hasRun && cell !== reveal;
      });
      // Without a reveal, the reader goes on looking at the field.
      const kept = reveal ?? widgets[at];
      const was = topOf(kept.node);
      const ends = runForShow(notebook, [...needed, ...shown]);

      const next = reveal ? widgets.indexOf(reveal) + 1 : at + 1;
      notebook.activeCellIndex = Math.min(next, widgets.length - 1);
      notebook.activate();
      // If something on the way failed, or no kernel is there, the next key runs the reveal.
      ends.then((isRevealed) => {
        const hasStayed = notebook.activeCellIndex === next;
        if (reveal && !isRevealed && hasStayed) notebook.activeCellIndex = next - 1;
      });
      // JupyterLab alone would bring each cell that it runs into view.
      const scroller = scrollerOf(notebook);
      const moves = !isPresented(scroller);
      const arrives = Boolean(reveal);
      keep(scroller, kept, ends, { always: true, moves, was, former: null, arrives });
    }
    window.addEventListener("course-settled", settle);

    // Take away the space below the cells above that kept the rest out of view; returns whether
    // there was any.
    function liftAbove(widgets) {
      const held = widgets.filter(({ node }) => node.classList.contains(HELD));
      for (const { node } of held) node.classList.remove(HELD);
      return held.length > 0;
    }

    // Bring the cell that runs into view, or lead back to a lab above that waits for a guess. `id` is
    // the command, and `ends` the promise of its end.
    function afterRun(id, ends) {
      const notebook = currentNotebook();
      if (!notebook) return;
      const { widgets } = notebook;
      const scroller = scrollerOf(notebook);
      // The command that goes on has selected the next cell already.
      const at = id === GOES_ON ? notebook.activeCellIndex - 1 : notebook.activeCellIndex;
      const ran = widgets[at];
      if (!ran) return;
      const above = widgets.slice(0, at);
      const waits = above.findLast((cell) => seenBefore.has(cell) && waitingLab(cell.node));
      // A cell that was out of view behind a waiting lab ran: that is no way past the guess.
      if (waits && !seenBefore.has(ran)) {
        notebook.activeCellIndex = widgets.indexOf(waits) + 1;
        stay(scroller, waits, ends, true);
        return;
      }
      const hasLifted = liftAbove(above);
      if (!isCode(ran)) return;
      const asks = asksForAGuess(sourceOf(ran));
      ran.node.classList.toggle(HELD, asks);
      const former = ran.node.querySelector(LAB); // of an earlier run
      // Where a function is judged, it stays in the window, above the verdict.
      const judges = /\bcheck\./.test(sourceOf(ran));
      stay(scroller, ran, ends, asks || judges || hasLifted, former);
    }

    // A field that has lost its kernel says that its cell is to be run again. That is what the key
    // does then, in place of the cell that is out of view behind the field.
    const execute = app.commands.execute.bind(app.commands);
    app.commands.execute = (id, options) => {
      const isByKey = (id === GOES_ON || id === STAYS) && !runsForShow;
      const notebook = isByKey ? currentNotebook() : null;
      if (notebook && !seenBefore.has(notebook.activeCell)) {
        const above = notebook.widgets.slice(0, notebook.activeCellIndex);
        const lost = above.findLast((cell) => seenBefore.has(cell));
        if (lost?.node.querySelector(LOST_GUESS)) {
          notebook.activeCellIndex = notebook.widgets.indexOf(lost);
        }
      }
      return execute(id, options);
    };

    app.commands.commandExecuted.connect((_, { id, result }) => {
      if ((id === GOES_ON || id === STAYS) && !runsForShow) afterRun(id, result);
    });
  }

  // Whatever key, wheel or link leads past a guess: until *Show* is pressed, a cover lies over the
  // cells that tell its answer, also before the guess's cell has run. It is there only while the kernel
  // is, so that nobody is locked out.
  const NEAR = 4; // a reveal is hidden if it is among so many code cells below its question

  const isHeading = (cell) => !isCode(cell) && sourceOf(cell).startsWith("#");

  // Where something new begins: a heading, or what the reader does.
  const isEnd = (cell) => isHeading(cell) || (isCode(cell) && needsTheReader(sourceOf(cell)));

  // One reveal may be below another, before anything new begins.
  const withoutDoubles = (cells) => [...new Set(cells)];

  // The cells from this one on, up to where something new begins. A text right above what the reader
  // does is the question for that, and belongs to it; but the only text may begin with the answer.
  function upToTheEnd(widgets, from) {
    const end = widgets.findIndex((cell, at) => at >= from && isEnd(cell));
    if (end < 0) return widgets.slice(from);
    const cells = widgets.slice(from, end);
    const texts = cells.filter((cell) => !isCode(cell));
    const hasQuestion = isCode(widgets[end]) && texts.length > 1 && texts.at(-1) === cells.at(-1);
    return hasQuestion ? cells.slice(0, -1) : cells;
  }

  // The cells that tell the answer of the guess that the cell `at` asks for: the code on the way to
  // the reveal, each reveal, and what follows it. A figure has its answer in itself.
  function cellsBehind(widgets, at) {
    const names = namesAskedIn(sourceOf(widgets[at]));
    if (names.length === 0) return upToTheEnd(widgets, at + 1);
    const revealsAt = revealsBelow(widgets, at);
    const way = widgets.slice(at + 1, revealsAt[0]);
    const isShort = way.filter(isCode).length < NEAR && !way.some(isEnd);
    const behind = revealsAt.flatMap((reveal) => [
      widgets[reveal],
      ...upToTheEnd(widgets, reveal + 1),
    ]);
    return withoutDoubles(revealsAt.length > 0 && isShort ? [...way, ...behind] : behind);
  }

  // The numbers of the cells that reveal what the cell `at` asks for.
  function revealsBelow(widgets, at) {
    const names = namesAskedIn(sourceOf(widgets[at]));
    const isReveal = (cell) => isCode(cell) && names.some((name) => reveals(sourceOf(cell), name));
    return [...widgets.keys()].filter((number) => number > at && isReveal(widgets[number]));
  }

  // Whether the cell has run, and did not stop with an error.
  function hasEndedWell({ model: { executionCount, outputs } }) {
    for (let at = 0; at < outputs.length; at += 1) {
      if (outputs.get(at).type === "error") return false;
    }
    return executionCount !== null || outputs.length > 0;
  }

  // A reveal is seen before it is read: once the guess is settled, what follows a reveal that has
  // not run.
  function cellsAhead(widgets, at) {
    const toCome = revealsBelow(widgets, at).filter((reveal) => !hasEndedWell(widgets[reveal]));
    return withoutDoubles(toCome.flatMap((reveal) => upToTheEnd(widgets, reveal + 1)));
  }

  // The words above the cells that are covered for a guess, and `show`, the button that uncovers
  // them. That is null where a cell has to run first: that of the guess, or that of its reveal.
  function saidAbove({ node }, { session }) {
    const lab = waitingLab(node);
    const show = node.querySelector(SHOW);
    // All of a lab is there, the button's name too.
    if (lab?.dataset.behind && show?.textContent) return { words: lab.dataset.behind, show };
    const isConnected = session?.kernel?.connectionStatus === "connected";
    if (!isConnected || node.querySelector(".course-wall")) return null;
    const lost = node.querySelector(LOST_GUESS);
    if (lost?.dataset.behind) return { words: lost.dataset.behind, show: null };
    const settled = node.querySelector(".course-ask[data-ahead]:not(.course-waits)");
    if (settled?.matches(LIVE_LAB)) {
      return { words: settled.dataset.ahead, show: null, isAhead: true };
    }
    const spacer = node.querySelector(".course-spacer");
    if (!spacer) return null;
    const [words] = (spacer.querySelector("p") ?? spacer).textContent.split("\n");
    return { words, show: null };
  }

  // What is said above the cells while the guess's cell is still to run, or its field to be drawn, and
  // while the page connects to its kernel again: what was `said` before. Null at all other times.
  function saidMeanwhile(cell, said, { session }) {
    if (!said || cell.node.querySelector(".course-wall")) return null;
    const status = session?.kernel?.connectionStatus;
    const isToRun = cell.model.executionState === "running"; // also while other cells run before it
    const isToBeDrawn = showsWidget(cell) && !cell.node.querySelector(LAB);
    const isOnItsWay = status === "connected" && (isToRun || isToBeDrawn);
    return isOnItsWay || status === "connecting" ? { ...said, show: null } : null;
  }

  // Cover these cells; the first of each row of them says why, and has the button of the guess.
  function cover(notebook, asking, cells, said) {
    for (const { node } of cells) node.classList.add(BEHIND);
    const { widgets } = notebook;
    const begin = cells.filter((cell) => !cells.includes(widgets[widgets.indexOf(cell) - 1]));
    for (const cell of begin) sayWhy(notebook, asking, cell, said);
  }

  function sayWhy(notebook, asking, { node }, { words, show }) {
    const panel = node.appendChild(document.createElement("div"));
    panel.className = "course-cover";
    panel.appendChild(document.createElement("span")).textContent = words;
    if (!show) return;
    const button = panel.appendChild(document.createElement("button"));
    button.textContent = show.textContent;
    button.addEventListener("click", () => {
      const scroller = scrollerOf(notebook);
      const moves = !isPresented(scroller);
      const options = { always: true, moves, was: topOf(node), former: null };
      keep(scroller, asking, Promise.resolve(), options);
      show.click();
    });
  }

  function uncover(cells) {
    for (const { node } of cells) {
      node.classList.remove(BEHIND);
      node.querySelector(":scope > .course-cover")?.remove();
    }
  }

  function coverWhatIsBehind(app) {
    // Keep covered what is behind each guess of the notebook; returns a function that looks at all.
    function follow(notebook, sessionContext) {
      // By the cell of a guess: the cells that are covered for it, what is said above them, and a key,
      // which changes with both.
      const covered = new Map();
      const NONE = { cells: [], said: null, key: "" };

      const look = (cell) => {
        const before = covered.get(cell) ?? NONE;
        const said = cell.isDisposed
          ? null
          : saidAbove(cell, sessionContext) ?? saidMeanwhile(cell, before.said, sessionContext);
        const cells = said ? cellsToCover(cell, said, before.cells) : [];
        const ids = cells.map(({ model }) => model.id);
        const key = cells.length > 0 ? [said.words, said.show !== null, ...ids].join() : NONE.key;
        if (key === before.key) return;
        uncover(before.cells);
        covered.set(cell, { cells, said, key });
        cover(notebook, cell, cells, said);
      };

      // `own` has the cells that are covered for this guess now. What another guess has covered stays
      // as it is.
      function cellsToCover(cell, { isAhead }, own) {
        const { widgets } = notebook;
        const at = widgets.indexOf(cell);
        const cells = isAhead ? cellsAhead(widgets, at) : cellsBehind(widgets, at);
        const isFree = ({ node }) => !node.classList.contains(BEHIND);
        return cells.filter((other) => own.includes(other) || isFree(other));
      }

      const asks = (cell) => isCode(cell) && asksForAGuess(sourceOf(cell));
      function lookAtAll() {
        // A cell may be gone, or ask no longer.
        const cells = new Set([...covered.keys(), ...notebook.widgets.filter(asks)]);
        for (const cell of cells) look(cell);
      }

      const changes = { childList: true, subtree: true, attributeFilter: ["class", "data-behind"] };
      const watched = new WeakSet();
      function watch(cell) {
        if (watched.has(cell)) return;
        watched.add(cell);
        const follows = () => {
          if (asks(cell)) look(cell);
          else if (isSomeReveal(sourceOf(cell))) lookAtAll();
        };
        new MutationObserver(follows).observe(cell.node, changes);
      }
      return () => {
        lookAtAll();
        notebook.widgets.filter(isCode).forEach(watch);
      };
    }

    const followed = new WeakSet();
    app.shell.layoutModified?.connect(() => {
      for (const { content, context } of app.shell.widgets("main")) {
        if (!context?.path.endsWith(".ipynb") || followed.has(content)) continue;
        followed.add(content);
        const watch = follow(content, context.sessionContext);
        context.ready.then(() => {
          watch();
          content.model.cells.changed.connect(watch);
          context.sessionContext.connectionStatusChanged.connect(watch);
        });
      }
    });
  }

  // In a copy the imports are folded (`workspace/folds.py`), so a reader may begin with the first
  // code in view, below them. Imports that this kernel has not run yet run before it.
  function followTheFolds(app) {
    const forgetAtRestart = new WeakSet(); // the sessions that are followed

    function followKernel(sessionContext, notebook) {
      if (forgetAtRestart.has(sessionContext)) return;
      forgetAtRestart.add(sessionContext);
      const forget = () => {
        haveRun = new WeakSet();
      };
      sessionContext.kernelChanged.connect((_, { oldValue }) => {
        forget();
        if (oldValue) markAsLost(notebook);
      });
      sessionContext.statusChanged.connect((_, status) => {
        if (!status.endsWith("restarting") && status !== "dead") return; // also "autorestarting"
        forget();
        markAsLost(notebook);
      });
    }

    // `folds.py` marks the cells that it folds, because they have nothing but imports.
    const isFolded = (cell) =>
      isCode(cell) && cell.inputHidden && cell.model.getMetadata("comes_folded");

    function importFirst({ content: notebook, sessionContext }) {
      for (const cell of notebook.widgets.slice(0, notebook.activeCellIndex)) {
        if (!isFolded(cell) || haveRun.has(cell)) continue;
        haveRun.add(cell);
        // Another cell than the active one runs so, and nothing is scrolled.
        cell.constructor.execute(cell, sessionContext).catch(() => haveRun.delete(cell));
      }
    }
    const execute = app.commands.execute.bind(app.commands);
    app.commands.execute = (id, options) => {
      const panel = app.shell.currentWidget;
      if (RUNS.includes(id) && panel?.content?.widgets && panel.sessionContext) importFirst(panel);
      return execute(id, options);
    };

    // JupyterLab shows no number beside a folded cell, and so not whether it has run.
    function showNumber(cell) {
      const { executionCount, executionState } = cell.model;
      if (executionState === "running") haveRun.add(cell);
      const number = executionState === "running" ? "*" : executionCount ?? " ";
      const prompt = cell.node.querySelector(".jp-InputPlaceholder > .jp-InputPrompt");
      if (prompt) prompt.textContent = `[${number}]:`;
    }
    const watched = new WeakSet();
    function watch(notebook) {
      for (const cell of notebook.widgets) {
        if (watched.has(cell) || !isCode(cell)) continue;
        watched.add(cell);
        const show = () => showNumber(cell);
        cell.ready.then(show);
        cell.model.stateChanged.connect(show);
        cell.model.metadataChanged.connect(show); // it is folded, or unfolded
      }
    }
    app.shell.layoutModified?.connect(() => {
      for (const { content, context } of app.shell.widgets("main")) {
        if (!context?.path.endsWith(".ipynb") || watched.has(content)) continue;
        watched.add(content);
        followKernel(context.sessionContext, content);
        context.ready.then(() => {
          watch(content);
          content.model.cells.changed.connect(() => watch(content));
        });
      }
    });
  }

  // The contents page can reset a notebook while it is open here. JupyterLab then saves first what
  // was written, and reads the file again afterwards. Otherwise its next save would offer to
  // overwrite the file.
  const SAME_MS = 500; // two times of a file that are so near are one, as they are for JupyterLab

  function followTheDisk(app) {
    const channel = new BroadcastChannel("course-workspace");

    const openNotebooks = () => {
      const contexts = [...app.shell.widgets("main")].map(({ context }) => context);
      return contexts.filter((context) => context?.isReady && context.path.endsWith(".ipynb"));
    };

    async function isOld({ path, contentsModel }) {
      const file = await app.serviceManager.contents.get(path, { content: false })
        .catch(() => null);
      if (!file || !contentsModel) return false;
      return Date.parse(file.last_modified) - Date.parse(contentsModel.last_modified) > SAME_MS;
    }

    let isReading = false;
    async function readAgain() {
      if (isReading || document.hidden) return;
      isReading = true;
      for (const context of openNotebooks()) {
        if (context.model.dirty) continue;
        const isBehind = await isOld(context);
        // The reader may have typed meanwhile.
        if (isBehind && !context.model.dirty) await context.revert();
      }
      isReading = false;
    }

    // On a busy machine a save can take longer than the time to the next one. JupyterLab would begin
    // that, find that the file has changed, and ask before the audience whether to overwrite it.
    function saveOneAfterAnother(context) {
      const save = context.save.bind(context);
      let running = Promise.resolve();
      let next = null; // begins when `running` has ended well
      const begin = () => {
        next = null;
        running = save();
        running.catch(() => {
          running = Promise.resolve();
        });
        return running;
      };
      // If a save has failed, or the reader has cancelled it, the one that waited ends, too, so
      // that nothing is asked twice. What is not saved stays marked as changed.
      const giveUp = (error) => {
        next = null;
        throw error;
      };
      context.save = () => {
        const isAsking = document.querySelector(".jp-Dialog") !== null;
        if (isAsking) return save(); // JupyterLab refuses it
        next ??= running.then(begin, giveUp);
        return next;
      };
    }

    // JupyterLab calls a notebook saved when the server has answered, though a cell may have ended
    // meanwhile: its output would then be in no later save, and gone after a reload.
    const watched = new WeakSet();
    function watchSaves(context) {
      if (watched.has(context)) return;
      watched.add(context);
      saveOneAfterAnother(context);
      let changesWhileSaving = 0;
      context.model.contentChanged.connect(() => changesWhileSaving++);
      context.saveState.connect((_, state) => {
        if (state === "started") changesWhileSaving = 0;
        if (state === "completed" && changesWhileSaving) context.model.dirty = true;
      });
    }
    app.shell.layoutModified?.connect(() => {
      for (const { context } of app.shell.widgets("main")) {
        if (context?.path.endsWith(".ipynb")) watchSaves(context);
      }
    });

    async function saveAll() {
      const changed = openNotebooks().filter(({ model }) => model.dirty);
      await Promise.all(changed.map((context) => context.save().catch(() => {})));
      channel.postMessage("saved");
    }
    channel.onmessage = ({ data }) => {
      if (data === "save") saveAll();
    };
    document.addEventListener("visibilitychange", readAgain);
    window.addEventListener("focus", readAgain);
  }

  const plugin = {
    id: "course-keys:plugin",
    autoStart: true,
    activate: (app) => {
      followTheKeys(app);
      coverWhatIsBehind(app);
      followTheFolds(app);
      followTheDisk(app);
    },
  };
  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB["course-keys"] = {
    init: () => {},
    get: async () => () => ({ __esModule: true, default: plugin }),
  };
})();
