"""The course on a JupyterHub: what a hub is told, one to try on this machine, and an image and values for Kubernetes."""
