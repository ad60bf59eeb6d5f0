"""Choose the published runs that come with Meshwright.

Usage: ``python scripts/select_runs.py TRAINING_RUNS.csv``. Writes
``src/meshwright/validation/data/published_runs.csv``: rows of trust A or B that are consistent
in themselves and complete, spread over sources, devices, models and numbers of devices. The
choice depends on the inputs of the rows alone, never on their results or on a prediction, and
is the same on every run.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
from collections import defaultdict
from pathlib import Path

OUTPUT = Path(__file__).parents[1] / "src/meshwright/validation/data/published_runs.csv"
MOST_ROWS = 380
#: Sweeps that are kept whole, so that rankings can be judged: as many per source.
WHOLE_SWEEPS = 1
SWEEP_ROWS = (8, 24)
#: Columns that explain a row to a reader of the full table, and no prediction.
DROPPED = (
    *("params_b_reported", "params_b_computed", "tokens_origin", "samples_per_s_total"),
    *("tflops_per_device_reported", "tflops_kind", "mfu_pct", "hfu_pct"),
    *("calc_model_tflops_per_device", "calc_over_reported", "row_kind", "iter_time_origin"),
    "notes",
)

Row = dict[str, str]


def usable(row: Row) -> bool:
    """Complete, consistent, of trust A or B, and a transformer."""
    return (
        row["trust"] in ("A", "B")
        and bool(row["fit_ready"])
        and row["check"].startswith(("ok", "plausible", "not_checkable", "oom_row"))
        and "+" not in row["check"]
        and bool(row["hidden"])
        and "mamba" not in row["arch"]
    )


def lot(row: Row) -> str:
    """A number drawn for a row from where it stands."""
    return hashlib.sha256(f"{row['source']}|{row['locator']}".encode()).hexdigest()


def sweep_key(row: Row) -> tuple[str, ...]:
    """What the configurations of one sweep share."""
    names = ("source", "model", "heads", "device_type", "num_devices", "framework")
    more = ("framework_version", "precision", "global_batch", "seq_len")
    return tuple(row[name] for name in names + more)


def whole_sweeps(rows: list[Row]) -> list[Row]:
    """A few sweeps with all their rows."""
    sweeps: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        sweeps[sweep_key(row)].append(row)
    taken: dict[str, int] = defaultdict(int)
    chosen: list[Row] = []
    for _, found in sorted(sweeps.items(), key=lambda item: lot(item[1][0])):
        source = found[0]["source"]
        if SWEEP_ROWS[0] <= len(found) <= SWEEP_ROWS[1] and taken[source] < WHOLE_SWEEPS:
            taken[source] += 1
            chosen += found
    return chosen


def spread(rows: list[Row], count: int) -> list[Row]:
    """Rows in turn from every kind of run, kinds in turn from every source."""
    kinds: dict[str, dict[tuple[str, ...], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(rows, key=lot):
        kind = (row["device_family"], row["model"], row["num_devices"], row["precision"])
        kinds[row["source"].split(",")[0]][kind].append(row)
    queues = {
        source: [row for turn in _turns(list(found.values())) for row in turn]
        for source, found in sorted(kinds.items())
    }
    return [row for turn in _turns(list(queues.values())) for row in turn][:count]


def _turns(queues: list[list[Row]]) -> list[list[Row]]:
    """The first of every queue, the second of every queue, and so on."""
    longest = max(map(len, queues), default=0)
    return [[queue[i] for queue in queues if i < len(queue)] for i in range(longest)]


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    options = parser.parse_args()
    with options.runs.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        columns = [name for name in reader.fieldnames or () if name not in DROPPED]
        rows = [row for row in reader if usable(row)]
    # Memory is measured seldom: half of those rows come along whatever their kind.
    memory = sorted((row for row in rows if "memory" in row["fit_ready"]), key=lot)
    first = whole_sweeps(rows) + memory[: len(memory) // 2]
    chosen = {id(row) for row in first}
    rest = [row for row in rows if id(row) not in chosen]
    chosen |= {id(row) for row in spread(rest, MOST_ROWS - len(chosen))}
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    with OUTPUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(row for row in rows if id(row) in chosen)
    print(f"{len(chosen)} rows, {OUTPUT.stat().st_size:,} bytes: {OUTPUT.name}")


if __name__ == "__main__":
    main()
