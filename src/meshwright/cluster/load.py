"""The one door: a cluster from whatever the user wrote."""

from __future__ import annotations

import os
from pathlib import Path

from meshwright.cluster.cluster import Cluster
from meshwright.cluster.shorthand import parse_shorthand


def load_cluster(text_or_path: str | os.PathLike[str]) -> Cluster:
    """Read a cluster: shorthand, the path of a ``.toml`` file, or TOML text (several lines).

    >>> load_cluster("4x8xH100").num_devices
    32

    Raises:
        ClusterError: the description is wrong; says where and what is allowed.
        UnknownDeviceError: a device type is not in the catalogue.
        FileError: the file is missing, too large, or not UTF-8.
    """
    text = os.fspath(text_or_path)
    if isinstance(text_or_path, str) and "\n" not in text and not _is_toml_path(text):
        return parse_shorthand(text)
    from meshwright.cluster.toml_source import load_toml_file, parse_toml

    if isinstance(text_or_path, str) and "\n" in text:
        return parse_toml(text)
    return load_toml_file(Path(text))


def _is_toml_path(text: str) -> bool:
    return text.strip().casefold().endswith(".toml")
