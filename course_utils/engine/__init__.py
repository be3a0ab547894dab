"""How an answer is judged, a lab works and a figure is drawn, whatever they are about."""
