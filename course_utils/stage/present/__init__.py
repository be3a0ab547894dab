"""For those who teach: a notebook shown to an audience, whole or cut down for a lecture."""
