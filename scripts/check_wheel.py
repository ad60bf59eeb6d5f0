"""Check that a wheel holds every file of src/meshwright, the native core, and nothing else.

Usage: ``python scripts/check_wheel.py dist/meshwright-*.whl``. Exit code 1 names the difference.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path, PurePosixPath

SOURCE = Path(__file__).resolve().parent.parent / "src"
NOT_SHIPPED = {".so", ".pyc"}


def source_files() -> set[str]:
    """Files of the package in the checkout, as paths inside the wheel."""
    return {
        path.relative_to(SOURCE).as_posix()
        for path in (SOURCE / "meshwright").rglob("*")
        if path.is_file() and path.suffix not in NOT_SHIPPED
    }


def differences(wheel: Path) -> list[str]:
    """One line per file that is missing from the wheel or should not be in it."""
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    core = {name for name in packed if PurePosixPath(name).match("meshwright/_core*.so")}
    wanted = source_files()
    found = [f"missing: {name}" for name in sorted(wanted - packed)]
    found += [f"not wanted: {name}" for name in sorted(packed - wanted - core)]
    if len(core) != 1:
        found.append(f"one meshwright/_core*.so is wanted, found {sorted(core)}")
    return found


def main() -> int:
    """Check the wheel named on the command line."""
    wheel = Path(sys.argv[1])
    found = differences(wheel)
    for line in found:
        print(f"{wheel.name}: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
