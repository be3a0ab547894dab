"""For those who teach: a notebook shown to an audience, whole or cut for a lecture."""
