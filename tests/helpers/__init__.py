"""What several tests share: a browser, kernels, a hub, small labs."""
