// Opens a notebook at the cell that the address names, as in …/04_flops.ipynb#cell-id=c0ffee12.
// JupyterLab looks at the path alone, and would show the top. The server lists this file among
// JupyterLab's extensions (`workspace/place_in_lab.py`), so it has the form of one: no build, one plugin.
(() => {
  const NAME = "course-workspace";
  const LONGEST_MS = 60_000; // until a notebook is there
  const SETTLES_MS = 4_000; // pictures that come late push the cell away
  const FRAME_MS = 100;

  const pause = () => new Promise((done) => setTimeout(done, FRAME_MS));

  function asked(address) {
    const { hash, pathname } = new URL(address);
    const named = hash.match(/^#cell-id=([\w-]+)$/);
    const path = decodeURIComponent(pathname).split("/tree/").slice(1).join("/tree/");
    return named && { id: named[1], path };
  }

  async function notebookAt(app, path) {
    const end = Date.now() + LONGEST_MS;
    while (Date.now() < end) {
      const panels = [...app.shell.widgets("main")].filter((one) => one.context?.path === path);
      if (panels.length && panels[0].content?.setFragment) return panels[0];
      await pause();
    }
    return null;
  }

  function isInView(panel, cell) {
    const seen = panel.content.node.getBoundingClientRect();
    const { top } = cell.node.getBoundingClientRect();
    return cell.node.isConnected && top >= seen.top - 2 && top < seen.bottom;
  }

  let asks = 0;

  async function goTo(app, { id, path }) {
    const mine = ++asks; // whoever asks later wins
    const panel = await notebookAt(app, path);
    if (!panel) return;
    await panel.context.ready;
    await panel.revealed;
    const cell = panel.content.widgets.find((one) => one.model.id === id);
    if (!cell) return; // it is gone from this copy: the top is as good as any place
    app.shell.activateById(panel.id);
    let isTheirs = false;
    const leave = () => { isTheirs = true; };
    const moves = ["wheel", "keydown", "pointerdown", "touchstart"];
    moves.forEach((move) => addEventListener(move, leave, { capture: true, once: true }));
    const end = Date.now() + SETTLES_MS;
    await panel.content.setFragment(`#cell-id=${id}`);
    while (Date.now() < end) {
      await pause();
      if (isTheirs || mine !== asks) break;
      if (!isInView(panel, cell)) await panel.content.setFragment(`#cell-id=${id}`);
      // Only now: of a cell that is active but far away, JupyterLab believes that it is in view.
      else if (panel.content.activeCell !== cell) panel.content.activeCellIndex = panel.content.widgets.indexOf(cell);
    }
    moves.forEach((move) => removeEventListener(move, leave, { capture: true }));
  }

  const first = asked(location.href); // before JupyterLab takes the cell out of the address
  const plugin = {
    id: `${NAME}:place`,
    autoStart: true,
    activate: (app) => {
      if (first) app.restored.then(() => goTo(app, first));
      addEventListener("hashchange", (event) => {
        const next = asked(event.newURL); // of the address itself it is gone already
        if (next) goTo(app, next);
      });
    },
  };

  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB[NAME] = {
    init: () => {},
    get: async () => () => ({ __esModule: true, default: plugin }),
  };
})();
