"""What moves a lab: `session` holds one, `panel` is its host in Jupyter. The labs are in the chapters.

To read one from slider to picture: `lab`, then `chapters/flops/matmul_lab`, its `asked` and its `picture`.
"""
