"""How an answer is judged, a lab is moved, a figure is drawn, whatever they are about."""
