"""Installed as etc/ipython/ipython_kernel_config.py of the environment: what each of its kernels loads."""

c.InteractiveShellApp.extensions = ["course_utils.kernel"]  # noqa: F821  IPython gives c
