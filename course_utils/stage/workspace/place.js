// Opens a notebook at the cell that the address names, as in …/04_flops.ipynb#cell-id=c0ffee12.
// JupyterLab looks at the path alone, and would show the top. The server lists this file among
// JupyterLab's extensions (`workspace/place_in_lab.py`), so it has the form of one: no build, and
// one plugin.
(() => {
  const NAME = "course-workspace";
  const LONGEST_MS = 60_000; // until a notebook is there
  const SETTLES_MS = 4_000; // pictures that come late push the cell away
  const FRAME_MS = 100; // between two looks

  const pause = () => new Promise((done) => setTimeout(done, FRAME_MS));

  // The id of the cell that the address names, and the notebook's path; null if it names none.
  function cellIn(address) {
    const { hash, pathname } = new URL(address);
    const found = hash.match(/^#cell-id=([\w-]+)$/);
    if (!found) return null;
    const [, ...afterTree] = decodeURIComponent(pathname).split("/tree/");
    return { id: found[1], path: afterTree.join("/tree/") };
  }

  // Waits for the notebook's panel, and returns it; null if there is none after LONGEST_MS.
  async function notebookAt(app, path) {
    const end = Date.now() + LONGEST_MS;
    while (Date.now() < end) {
      const panel = [...app.shell.widgets("main")].find(({ context }) => context?.path === path);
      if (panel?.content?.setFragment) return panel;
      await pause();
    }
    return null;
  }

  // Whether the cell's top is inside the notebook's window; 2 px above it is rounding.
  function isInView(panel, cell) {
    const seen = panel.content.node.getBoundingClientRect();
    const { top } = cell.node.getBoundingClientRect();
    return cell.node.isConnected && top >= seen.top - 2 && top < seen.bottom;
  }

  const MOVES = ["wheel", "keydown", "pointerdown", "touchstart"]; // of the reader
  let calls = 0;

  // Brings the cell into view, and keeps it there for a while, until the reader does something.
  async function goTo(app, { id, path }) {
    calls += 1;
    const mine = calls; // a later call wins
    const panel = await notebookAt(app, path);
    if (!panel) return;
    await panel.context.ready;
    await panel.revealed;
    const notebook = panel.content;
    const cell = notebook.widgets.find(({ model }) => model.id === id);
    if (!cell) return; // it is gone from this copy: the top is as good as any place
    app.shell.activateById(panel.id);
    let hasMoved = false;
    const leave = () => { hasMoved = true; };
    for (const move of MOVES) addEventListener(move, leave, { capture: true, once: true });
    await notebook.setFragment(`#cell-id=${id}`); // on a busy machine, this alone takes 10 s
    const end = Date.now() + SETTLES_MS;
    while (Date.now() < end) {
      await pause();
      if (hasMoved || mine !== calls) break;
      if (!isInView(panel, cell)) {
        await notebook.setFragment(`#cell-id=${id}`);
      } else if (notebook.activeCell !== cell) {
        // Not before the cell is in view: JupyterLab assumes that an active cell is.
        notebook.activeCellIndex = notebook.widgets.indexOf(cell);
      }
    }
    for (const move of MOVES) removeEventListener(move, leave, { capture: true });
  }

  const first = cellIn(location.href); // before JupyterLab takes the cell out of the address
  const plugin = {
    id: `${NAME}:place`,
    autoStart: true,
    activate: (app) => {
      if (first) app.restored.then(() => goTo(app, first));
      addEventListener("hashchange", (event) => {
        const next = cellIn(event.newURL); // from location.href it is gone already
        if (next) goTo(app, next);
      });
    },
  };

  window._JUPYTERLAB ??= {};
  window._JUPYTERLAB[NAME] = {
    init: () => {},
    get: async () => () => ({ __esModule: true, default: plugin }),
  };
})();
