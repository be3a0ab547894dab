"""The colours of the series."""

# A colour means one thing in the whole series. Okabe and Ito's and Tol's, which colour-blind readers can tell apart.
COLOURS = {
    "predicted": "#0072B2",
    "measured": "#D55E00",
    "limit": "#5f6b76",
    "alarm": "#D55E00",
    "sign": "#CC79A7",
    "exponent": "#00A878",
    "fraction": "#56B4E9",
    "batch": "#BBBBBB",
    "kept": "#88CCEE",
    "summed": "#DDCC77",
    "forward": "#88CCEE",
    "weight_gradient": "#CC6677",
    "input_gradient": "#DDCC77",
    # What training holds; for every kind of eye the nearest two are far apart.
    "parameters": "#88BBEE",
    "gradients": "#EEDD88",
    "optimizer": "#117755",
    "master": "#999933",
    "activations": "#EE99AA",
    "sgd": "#834D3F",
    "momentum": "#E69F00",
    "adagrad": "#6EB9B9",
    "rmsprop": "#AA186F",
    "adam": "#4444E4",
    "adamw": "#70A1EB",
}
