"""How long a user waits: importing, and planning from a cold process.

Prints ``name value unit`` lines; every figure is the median of several processes.

    import_meshwright          importing the package, the interpreter's own start taken off
    plan_llama_405b_cold       ``meshwright plan llama-3.1-405b`` on 16,384 H100, whole process
    plan_llama_405b_search     of that, tables and search (as the answer itself says)
    plan_llama_405b_rate       candidates over search time
    plan_deepseek_v3_cold      a mixture of experts on 2,048 H800
    plan_peak_memory           resident memory of the 405B process
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time

RUNS = 7
#: Model, cluster, global batch size, sequence length.
PLANS = {
    "plan_llama_405b": ("llama-3.1-405b", "2048x8xH100", 2048, 8192),
    "plan_deepseek_v3": ("deepseek-v3", "256x8xH800", 15360, 4096),
}


def seconds(command: list[str]) -> tuple[float, str]:
    """Wall-clock time and output of one process."""
    started = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - started, done.stdout


def median_seconds(command: list[str], runs: int = RUNS) -> tuple[float, str]:
    """Median time of several processes, and the output of the last."""
    results = [seconds(command) for _ in range(runs)]
    return statistics.median(result[0] for result in results), results[-1][1]


def main() -> None:
    """Print all figures."""
    empty, _ = median_seconds([sys.executable, "-c", "pass"])
    imported, _ = median_seconds([sys.executable, "-c", "import meshwright"])
    print(f"import_meshwright {1e3 * (imported - empty):.1f} ms")
    for name, (model, cluster, batch, length) in PLANS.items():
        command = [sys.executable, "-m", "meshwright.cli", "plan", model, "--cluster", cluster]
        command += ["--global-batch-size", str(batch), "--seq-length", str(length), "--json"]
        cold, output = median_seconds(command)
        answer = json.loads(output)
        print(f"{name}_cold {cold:.3f} s")
        print(f"{name}_search {answer['search_s']:.3f} s")
        print(f"{name}_rate {answer['candidates'] / answer['search_s']:.3g} candidates/s")
        if name == "plan_llama_405b":
            peak_kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            print(f"plan_peak_memory {peak_kib / 2**10:.0f} MiB")


if __name__ == "__main__":
    main()
