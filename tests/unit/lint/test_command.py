"""`gpufleet lint` as a command: paths, options, exit codes, output."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from gpufleet.cli.main import main

from tests.unit.lint.told import GPU4, config_map, limits, pod


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["lint", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_folder_is_one_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "cm.yaml").write_text(config_map(GPU4))
    (tmp_path / "other.YAML").write_text("sharring: {timeSlicing: {}}\n")
    (tmp_path / "pod.yml").write_text(pod(limits(number=2) + "args: [--gpu-memory-fraction=0.1]\n"))
    (tmp_path / "notes.txt").write_text("a: [")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "x.yaml").write_text("a: [")
    code, out, _ = run(capsys, str(tmp_path))
    assert code == 1
    assert "GF601" in out and "pod.yml:11" in out and "GF501" not in out and "other.YAML:1" in out


def test_warnings_alone_do_not_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(GPU4.replace("4", "64"))
    code, out, _ = run(capsys, str(file))
    assert (code, out.splitlines()[-1]) == (0, "1 warning")


def test_what_a_node_will_offer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.yaml"
    text = GPU4.replace("nvidia.com/gpu", "nvidia.com/mig-1g.10gb").replace("replicas: 4", "replicas: 2")
    file.write_text(text + "flags: {migStrategy: mixed}\n")
    words = (str(file), "--gpus", "4xA100-80GB", "--mig", "7x1g.10gb", "--strategy", "mixed")
    code, out, _ = run(capsys, *words)
    assert code == 0 and "offers:  nvidia.com/mig-1g.10gb: 56" in out
    assert "gpu.product" not in out  # two models carry that short name
    code, out, _ = run(capsys, *words, "--json")
    (row,) = json.loads(out)["advertised"]
    assert row["capacity"] == {"nvidia.com/mig-1g.10gb": 56}
    assert row["labels"]["mig-1g.10gb.replicas"] == "2" and row["labels"]["gpu.memory"] == "81920"
    code, out, _ = run(capsys, str(file))
    assert "Add --gpus" in out


def test_json_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(GPU4.replace("sharing:", "sharring:"))
    code, out, _ = run(capsys, str(file), "--json")
    document = json.loads(out)
    assert (code, document["ok"]) == (1, False)
    (found,) = document["findings"]
    assert (found["code"], found["file"], found["line"], found["closest"]) == ("GF513", str(file), 2, "sharing")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["no-such-file"], "No such file"),
        (["FILE", "--gpus", "4xA100-80G"], "did you mean"),
        (["FILE", "--gpus", "many"], "not of the form"),
        (["FILE", "--gpus", "1xT4", "--mig", "7x1g.5gb"], "has no MIG profile"),
        (["FILE", "--gpus", "1xA100-80GB", "--mig", "7x1g.5gb"], "1g.10gb"),
        (["FILE", "--mig", "7x1g.5gb"], "--mig needs --gpus"),
        (["FILE", "--env", "X"], "NAME=VALUE"),
        (["FILE", "--driver", "new"], "not a version"),
        (["FILE", "--taint", "sku=gpu"], "effect is missing"),
        (["FILE", "--stack-file", "no-such"], "No such file"),
        (["EMPTY"], "has no .yaml"),
        (["FILE", "--gpus", "1xA100"], "say which: A100-40GB, A100-80GB"),
        (["FILE", "--gpus", "1xA100-40GB", "--mig", "8x1g.5gb"], "8x1g.5gb do not fit"),
        (["FILE", "--gpus", "2xA100-40GB", "--mig", "1=3g.20gb,3g.20gb,1g.5gb"], "(GPU 1)"),
        (["FILE", "--pool", "a"], "--pool needs --stack"),
        (["FILE", "--stack", "local", "--stack-file", "FILE"], "give one"),
        (["FILE", "--strategy", "single", "--env", "MIG_STRATEGY=mixed"], "contradict"),
    ],
)
def test_wrong_usage(words: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, empty = tmp_path / "c.yaml", tmp_path / "empty"
    file.write_text(GPU4)
    empty.mkdir()
    places = {"FILE": str(file), "EMPTY": str(empty)}
    code, out, err = run(capsys, *(places.get(w, w) for w in words))
    assert (code, out) == (2, "")
    assert why in err and "Traceback" not in err


def test_files_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.yaml"
    file.write_bytes(b"version: v1\n\xff")
    code, out, _ = run(capsys, str(file))
    assert code == 1 and "GF500" in out and "c.yaml:2" in out and "byte 1 of line 2" in out


def test_kind_by_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("anything: 1\n")
    assert "GF502" in run(capsys, str(file))[1]
    assert "GF513" in run(capsys, str(file), "--as", "config")[1]


def test_nodes_of_a_stack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stack = tmp_path / "Pulumi.x.yaml"
    stack.write_text(
        "config:\n"
        '  gpufleet:cluster: {kind: aks, name: v, location: eastus, version: "1.36", '
        "systemPool: {vmSize: Standard_D4s_v5}}\n"
        "  gpufleet:pools:\n"
        "    - {name: t4, vmSize: Standard_NC4as_T4_v3, driver: aks, count: 1, taints: ['sku=gpu:NoSchedule']}\n"
        "  gpufleet:stack: {kind: plugin}\n"
    )
    file, work = tmp_path / "c.yaml", tmp_path / "w.yaml"
    file.write_text(GPU4)
    work.write_text(pod(limits() + "args: [--gpu-memory-fraction=0.1]\n"))
    code, out, err = run(capsys, str(file), str(work), "--stack-file", str(stack))
    assert "t4" in out and "nvidia.com/gpu: 4" in out, err
    assert code == 1 and "GF620" in out
    assert run(capsys, str(file), "--stack-file", str(stack), "--pool", "nope")[0] == 2


CUT = """\
config:
  gpufleet:cluster: {kind: existing, name: v, kubeconfig: {path: k}}
  gpufleet:pools:
    - {name: t4, hosts: {a: {}}, gpu: T4, gpusPerNode: 2}
    - {name: cut, hosts: {b: {}}, gpu: A100-SXM4-40GB, gpusPerNode: 2, sharing: small}
  gpufleet:stack: {kind: ROUTE}
  gpufleet:sharing: {small: {strategy: mig, profile: 3g.20gb}}
"""


@pytest.mark.parametrize(
    ("route", "migs", "offers"),
    [
        ("operator", "", {"t4": 8, "cut": 16}),  # the operator's MIG_STRATEGY is single, of a file or not
        ("operator", "flags: {migStrategy: none}\n", {"t4": 8, "cut": 16}),
        ("plugin", "", {"t4": 8, "cut": 8}),
        ("plugin", "flags: {migStrategy: single}\n", {"t4": 8, "cut": 16}),
    ],
)
def test_mig_of_a_stack(
    route: str, migs: str, offers: dict[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack, file = tmp_path / "Pulumi.x.yaml", tmp_path / "c.yaml"
    stack.write_text(CUT.replace("ROUTE", route))
    file.write_text(GPU4 + migs)
    _, out, err = run(capsys, str(file), "--stack-file", str(stack), "--json")
    rows = {row["pool"]: row["capacity"] for row in json.loads(out)["advertised"]}
    assert rows == {pool: {"nvidia.com/gpu": count} for pool, count in offers.items()}, err
    if route == "operator":  # what is said by hand counts first
        _, out, _ = run(capsys, str(file), "--stack-file", str(stack), "--json", "--strategy", "mixed")
        (_, cut) = json.loads(out)["advertised"]
        assert cut["capacity"] == {"nvidia.com/mig-3g.20gb": 4}


def test_what_holds_on_one_pool_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stack, file = tmp_path / "Pulumi.x.yaml", tmp_path / "c.yaml"
    pools = CUT.replace("ROUTE", "plugin").replace("gpusPerNode: 2}", "gpusPerNode: 2, taints: ['sku=gpu:NoSchedule']}")
    stack.write_text(pools)
    plain = limits() + "args: [--gpu-memory-fraction=0.1]\n"
    file.write_text(GPU4 + "---\n" + pod(plain, "runtimeClassName: nvidia\n"))

    def found(code: str) -> list[tuple[str, str]]:
        _, out, _ = run(capsys, str(file), "--stack-file", str(stack), "--json")
        return [(f["severity"], f["message"].split(": ")[0]) for f in json.loads(out)["findings"] if f["code"] == code]

    assert found("GF620") == []  # the other pool takes the pod
    stack.write_text(pools.replace("sharing: small}", "sharing: small, taints: ['sku=gpu:NoSchedule']}"))
    nearest = "No pool takes this; nearest is t4"
    assert found("GF620") == [("error", nearest)]
    both = pools.replace("sku=gpu:NoSchedule']}", "sku=gpu:NoSchedule', 'b=c:NoSchedule']}")
    stack.write_text(both.replace("sharing: small}", "sharing: small, taints: ['a=b:NoSchedule']}"))
    assert found("GF620") == [("error", "No pool takes this; nearest is cut")]
    stack.write_text(pools)
    plugin = pod("", kind="Deployment").replace("kind: Deployment", "kind: DaemonSet")
    file.write_text(GPU4 + "---\n" + plugin.replace("example/app:1", "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"))
    assert found("GF620") == [("error", "On pool t4")]  # there its absence means no GPU


def test_fix_looks_at_every_pool_of_a_stack(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stack, file = tmp_path / "Pulumi.x.yaml", tmp_path / "c.yaml"
    stack.write_text(CUT.replace("ROUTE", "plugin"))
    text = GPU4.replace("gpu\n", "mig-3g.20gb\n") + "flags: {migStrategy: mixed}\n"
    file.write_text(text.replace("sharing:", "Sharring:"))
    run(capsys, str(file), "--stack-file", str(stack), "--fix")
    assert file.read_text() == text  # right for `cut`, and so not changed for `t4`


def test_fix_of_standard_input_with_json_is_one_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = GPU4.replace("timeSlicing", "time_slicing")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bad.encode())))
    code, out, _ = run(capsys, "-", "--fix", "--json")
    document = json.loads(out)
    assert (code, document["text"], document["fixed"][0]["file"]) == (0, GPU4, "<stdin>")


PROVIDERS = ("pulumi", "pulumi_kubernetes", "pulumi_azure_native", "kubernetes", "grpc", "ansible")


@pytest.mark.parametrize(
    ("words", "none_of"),
    [
        (["lint", "FILE", "--gpus", "1xT4", "--driver", "580.65.06"], (*PROVIDERS, "pydantic")),
        (["lint", "FILE", "--stack", "aks-prod"], PROVIDERS),
        (["lint", "FILE", "--fix"], (*PROVIDERS, "pydantic", "ruamel")),
        (["plan", "-s", "aks-dev"], PROVIDERS),
        (["plan", "-s", "idc"], PROVIDERS),
    ],
    ids=lambda x: " ".join(x[:3]) if isinstance(x, list) else "",
)
def test_start_up_imports_no_provider(words: list[str], none_of: tuple[str, ...], tmp_path: Path) -> None:
    """In a process of its own: what is imported decides how fast the command starts, and what it needs installed."""
    file = tmp_path / "c.yaml"
    file.write_text(GPU4)
    args = [str(file) if word == "FILE" else word for word in words]
    code = (
        f"import sys; from gpufleet.cli.main import main; code = main({args!r}); "
        f"print(code, [m for m in sys.modules if m.split('.')[0] in {none_of!r}])"
    )
    root = Path(__file__).parents[3]
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert out.stdout.splitlines()[-1] == "0 []"


@pytest.mark.parametrize("head", ["config:\n  ", ""])
def test_a_stack_file_belongs_to_plan(head: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "Pulumi.lab.yaml"
    file.write_text(head + "gpufleet:cluster: {kind: existing, name: lab}\n")
    assert main(["lint", str(file)]) == 0
    assert f"gpufleet plan -f {file}" in capsys.readouterr().out
