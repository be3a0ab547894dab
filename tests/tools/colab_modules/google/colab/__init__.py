"""What stands in for google.colab in `make colab-proof`, as far as the course and anywidget can tell.

Each module does what github.com/googlecolab/colabtools documents, without Colab. That nothing shows which a thread sends
is not the kernel's doing, but the page's: see `tests.tools.front_end`.
"""

from google.colab import drive, files, output  # noqa: F401, as Colab does
