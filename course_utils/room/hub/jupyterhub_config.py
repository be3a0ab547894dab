"""What a JupyterHub on one machine has to be told of the course.

`make hub` loads it. The Littlest JupyterHub does, too, from its jupyterhub_config.d; values.yaml says the same for
Kubernetes.
"""

c = get_config()  # noqa: F821

c.Spawner.default_url = "/contents"
c.Spawner.args = ["--ServerApp.jpserver_extensions=course_utils.desk=True"]
# Each server believes that all cores are its own, and a hundred of them would get in each other's way. What the
# notebooks have stored was computed by one thread, too.
c.Spawner.environment = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
c.Spawner.http_timeout = 120  # forty servers that start at once take turns at the cores
