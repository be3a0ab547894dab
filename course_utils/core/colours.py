"""The colours of the series."""

# A colour means one thing in the whole series. Most are Okabe and Ito's or Tol's, which readers who
# are colour-blind can tell apart. Some are made a little darker or lighter, so that lines and words
# stand out both from white and from JupyterLab's dark page. Paler ones fill areas with an outline.
COLOURS = {
    "predicted": "#0072B2",
    "measured": "#C45000",
    "limit": "#5f6b76",
    "alarm": "#C45000",
    "sign": "#CC79A7",
    "exponent": "#00A878",
    "fraction": "#1D9AE0",
    "batch": "#BBBBBB",
    "kept": "#88CCEE",
    "summed": "#DDCC77",
    "forward": "#88CCEE",
    "weight_gradient": "#E8909C",
    "input_gradient": "#DDCC77",
    # What training holds: even the two most alike can be told apart by every kind of eye.
    "parameters": "#88BBEE",
    "gradients": "#EEDD88",
    "optimizer": "#117755",
    "master": "#999933",
    "activations": "#EE99AA",
    "logits": "#994455",
    "passing": "#DDDDDD",
    "gathered": "#4477AA",
    "sgd": "#8D5344",
    "momentum": "#C38700",
    "rmsprop": "#B71A77",
    "adamw": "#5B93E8",
}
