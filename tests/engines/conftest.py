"""Without Ray, what needs it is not tested."""

import os
from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("ray") else ["test_ray*.py", "ray_clusters.py"]

# All of a cluster is on 127.0.0.1; Ray reads this when it is imported.
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
