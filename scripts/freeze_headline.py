"""Write down how well the table of published runs is predicted.

Usage: ``python scripts/freeze_headline.py``. Writes ``tests/validation/headline.json``, which a
test holds later changes against: none of these errors may grow by more than a tenth. Run it
when the figures get better, or when the table itself changes.
"""

from __future__ import annotations

import json
from pathlib import Path

from meshwright.validation import published_runs, read_runs, validate

OUTPUT = Path(__file__).parents[1] / "tests" / "validation" / "headline.json"


def main() -> None:
    """Write the file."""
    (group,) = validate(read_runs(published_runs())).groups
    figures = {
        "rows": group.rows,
        "time.median_ape": group.time.median_ape,
        "time.mape": group.time.mape,
        "memory.mape": group.memory.mape,
    }
    rounded = {name: round(value or 0, 4) for name, value in figures.items()}
    OUTPUT.write_text(json.dumps(rounded, indent=2) + "\n", encoding="utf-8")
    print(OUTPUT.name, rounded)


if __name__ == "__main__":
    main()
