"""What figures were measured on, as the result files note it."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from boltzhash.threads import available_cpus


def machine(*packages: str) -> dict[str, Any]:
    """With the versions of NumPy, SciPy, scikit-learn and further packages, as far as they are there."""
    models = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    return {
        "commit": _commit(),
        "cpu": models[0] if models else platform.processor(),
        "cpus": available_cpus(),
        "load_average": round(os.getloadavg()[0], 1),
        "versions": {
            "python": platform.python_version(),
            **_versions(("numpy", "scipy", "scikit-learn", *packages)),
        },
    }


def _commit() -> str:
    described = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(described, capture_output=True, text=True, check=False)
    except FileNotFoundError:  # no git
        return "unknown"
    return done.stdout.strip() or "unknown"


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
