"""Stands for Colab's page.

anywidget calls it to enable the manager of widgets that are not ipywidgets' own.
"""

from types import SimpleNamespace

_widgets = SimpleNamespace(_installed_url=None)


def enable_custom_widget_manager() -> None:
    """From here on, what a page gets of a widget says where the manager's code is loaded from."""
    _widgets._installed_url = (
        "https://ssl.gstatic.com/colaboratory-static/widgets/colab-cdn-widget-manager/"
    )
