"""What all labs share. The labs themselves are in the chapters.

`session` holds a lab while a reader moves its controls, and `panel` shows the session in Jupyter.
To follow a lab from a slider to the picture, begin with `lab`, and go on with the modules `asked`
and `picture` in `chapters/flops/matmul_lab`.
"""
