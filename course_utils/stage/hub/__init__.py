"""The course on a JupyterHub: its settings, a hub to try, and what Kubernetes needs."""
