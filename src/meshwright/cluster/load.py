"""The one door: a cluster from whatever the user wrote."""

from __future__ import annotations

import os

from meshwright.cluster.cluster import Cluster
from meshwright.cluster.shorthand import parse_shorthand


def load_cluster(text_or_path: str | os.PathLike[str]) -> Cluster:
    """Read a cluster: shorthand, the path of a ``.toml`` file, or TOML text (several lines).

    Raises:
        ClusterError: the description is wrong; says where and what is allowed.
        UnknownDeviceError: a device type is not in the catalogue.
        FileError: the file is missing, too large, or no UTF-8.
    """
    return parse_shorthand(str(text_or_path))
