"""The course as pages that any static host can serve, with the notebooks' results and living labs.

`make site` calls it. `render` writes the pages, `precomputed` keeps what labs compute with torch,
and `runtime` brings Python for the browser. In the browser, `worker.js` runs `host`, which keeps a
lab's session as the panel does in Jupyter. `lab.js` shows that session and sends it the reader's
moves, which come from the controls that `controls.js` makes.
"""
