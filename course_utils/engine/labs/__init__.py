"""What moves a lab. The labs themselves are in the chapters.

`session` holds a lab while a reader moves it, and `panel` shows it in Jupyter. To read one from its
slider to its picture, begin with `lab`, and go on with `chapters/flops/matmul_lab`, its `asked` and
its `picture`.
"""
