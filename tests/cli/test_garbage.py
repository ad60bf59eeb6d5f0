"""Whatever is typed: a result or a message, never a traceback."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshwright.planning import plan
from meshwright.planning.serialize import dump_plan
from meshwright.strategy import Workload

NUMBERS = [
    "0",
    "-1",
    "1",
    "8",
    "64",
    "4096",
    "1e999",
    "nan",
    "inf",
    "1.5",
    "",
    " ",
    "1_000",
    "０",
    "٣",
    str(10**30),
    "9" * 5000,
    "0x10",
    "1,2",
    "1,,2",
    "--",
    "-",
]
MODELS = [
    "gpt2-xl",
    "bert-base",
    "llama",
    "",
    "{}",
    "[]",
    "{",
    "null",
    "/",
    ".",
    "/dev/null",
    "/dev/zero",
    "no/such/config.json",
    "\0",
    "a" * 100_000,
    '{"model_type": "llama"}',
    '{"model_type": "llama", "hidden_size": -1, "num_hidden_layers": NaN}',
    "\ud800",
    "--",
    "-h",
]
CLUSTERS = [
    "1x8xH100",
    "1x1xA100-40GB",
    "0x8xH100",
    "8x0xH100",
    "-1x8xH100",
    "1x8xH10",
    "1x8x",
    "xx",
    "",
    "+",
    "1x8xH100+",
    "9" * 400 + "x8xH100",
    "1x8xH100+1x8xA100-40GB",
    "nan",
    "no.toml",
    "[[group]]\n",
    "\n",
    "\0.toml",
    "/dev/null",
    "H100",
]
any_text = st.text(max_size=30)
number = st.one_of(st.sampled_from(NUMBERS), st.integers().map(str), any_text)
model = st.one_of(st.sampled_from(MODELS), any_text)
cluster = st.one_of(st.sampled_from(CLUSTERS), any_text)
FLAGS = """
--tp --pp --cp --dp --ep --etp --vpp --micro-batch-size --zero --recompute --offload --axis-order
--context-algorithm --data-shard --precision --optimizer --attention --top --time-limit --target
--plan --json --sequence-parallel --no-sequence-parallel --nothing -o --version
"""
flag = st.sampled_from(FLAGS.split())


def check(outcome, *, as_json):
    assert outcome.code in {0, 2, 3}, outcome.err
    assert "Traceback" not in outcome.err + outcome.out
    lines = outcome.err.splitlines()
    assert len(lines) <= 24
    assert all(len(line) <= 80 for line in lines)
    if outcome.code == 2:
        assert lines[0].startswith("error:   ")
        assert len(lines) > 1, "what is wrong, and more"
        if as_json:
            assert set(json.loads(outcome.out)["error"]) == {
                "type",
                "what",
                "where",
                "allowed",
                "fix",
            }
        else:
            assert outcome.out == ""


@settings(max_examples=150)
@given(command=st.sampled_from(["plan", "estimate"]), data=st.data())
def test_numbers_models_and_clusters(run, command, data):
    """Mostly right requests with one or two things wrong."""
    args = [
        command,
        data.draw(st.one_of(st.just("gpt2-xl"), model)),
        f"--cluster={data.draw(st.one_of(st.just('1x2xA100-40GB'), cluster))}",
        f"--global-batch-size={data.draw(st.one_of(st.just('8'), number))}",
        f"--seq-length={data.draw(st.one_of(st.just('512'), number))}",
    ]
    as_json = data.draw(st.booleans())
    check(run(*args, *(["--json"] if as_json else [])), as_json=as_json and "--" not in args)


@settings(max_examples=150)
@given(
    command=st.sampled_from(["plan", "estimate"]),
    flags=st.lists(st.tuples(flag, st.none() | number), max_size=3),
)
def test_flags(run, command, flags, tmp_path_factory):
    args = [command, "gpt2-xl", "-c", "1x2xA100-40GB", "-b", "8", "-s", "512"]
    for name, value in flags:
        if name == "-o":  # somewhere harmless
            args += [name, str(tmp_path_factory.getbasetemp() / "plan")]
        else:
            args += [name] if value is None else [name, value]
    outcome = run(*args)
    before = args[: args.index("--")] if "--" in args else args
    check(outcome, as_json="--json" in before)


@settings(max_examples=100)
@given(subject=st.one_of(model, cluster, any_text), seq=st.none() | number)
def test_inspect(run, subject, seq):
    args = ["inspect", subject] + ([] if seq is None else [f"--seq-length={seq}"])
    check(run(*args), as_json=False)


@settings(max_examples=100)
@given(args=st.lists(st.one_of(any_text, flag, model, number), max_size=5))
def test_anything(run, args):
    before = args[: args.index("--")] if "--" in args else args
    check(run(*args), as_json="--json" in before)


@pytest.fixture(scope="module")
def saved():
    work = Workload(global_batch_size=8, seq_length=512)
    return json.loads(dump_plan(plan("gpt2-xl", "1x2xA100-40GB", work, top=1).best))


@settings(max_examples=150)
@given(data=st.data())
def test_spoilt_plans(run, saved, data, tmp_path_factory):
    content = json.loads(json.dumps(saved))
    holder = content["plan"]
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = data.draw(st.sampled_from(keys))
        child = holder[key]
        if not isinstance(child, dict | list) or not child or data.draw(st.integers(0, 9)) == 0:
            break
        holder = child
    junk = [None, -1, 0, 0.5, 1e300, 10**30, "", "x", [], {}, True, [[]], 2]
    holder[key] = data.draw(st.sampled_from(junk))
    path = tmp_path_factory.getbasetemp() / "spoilt.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    check(run("estimate", "--plan", str(path)), as_json=False)
