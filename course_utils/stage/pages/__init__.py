"""The course as pages for any static host, with the notebooks' results and with labs that work.

`make site` writes the pages. `render` makes their HTML, `precomputed` computes what labs need from
torch, and `runtime` fetches Python for the browser. In the browser, `worker.js` runs `host`, which
has a session for each lab as the panel has in Jupyter. `controls.js` makes the controls. `lab.js`
sends the reader's moves to the session, and shows its answers. `guesses` makes the places for
guesses and their answers, which `guesses.js` and `numbers.js` bring to life.
"""
