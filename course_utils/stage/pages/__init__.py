"""The course as pages that any static host can serve: the notebooks with their results, and the labs alive in them.

`render` writes them, `precomputed` keeps what labs find out with torch, `runtime`
brings Python for the browser. There, `worker.js` runs `host`, which hosts a lab as the panel does in Jupyter, and
`lab.js` moves it, by the controls that `controls.js` makes. Called by `make site`.
"""
