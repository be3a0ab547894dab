"""Stands for google.colab in `make colab-proof`, with what the course and anywidget use of it.

Each module does what github.com/googlecolab/colabtools documents, without Colab. Colab's page shows
nothing that a thread of the kernel sends by itself; `tests.tools.front_end` does that part.
"""

from google.colab import drive, files, output  # noqa: F401, as Colab does
