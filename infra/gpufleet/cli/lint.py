"""Shows what your YAML will really do with GPUs, and what is wrong with it. Needs no cluster and no stack file.

It reads plugin configurations, MIG layouts, ConfigMaps, values of the GPU Operator's chart and of the plugin's chart,
ClusterPolicies, DaemonSets, workloads, claims, quotas, queues and Kustomizations, from files, folders or
`kubectl get -o yaml`. Everything given in one call is checked together: names must agree, and workloads must ask for
what the nodes offer. With a stack, its plan says what the nodes of each pool offer.

examples:
    gpufleet lint manifests/ --gpus 4xA100-80GB
    gpufleet lint manifests/ values.yaml --stack aks-prod
    kubectl get cm,ds,deploy -A -o yaml | gpufleet lint - --gpus 2xT4

Exit code: 0 no errors, 1 errors, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.registry import finding
from gpufleet.findings.render import summary
from gpufleet.findings.render import text as as_text

if TYPE_CHECKING:
    from gpufleet.fleet.model import Fleet
    from gpufleet.lint.stack import StackNodes

EXIT_OK, EXIT_ERRORS, EXIT_USAGE = 0, 1, 2
SUFFIXES = (".yaml", ".yml", ".json")
STDIN = "<stdin>"


def add_parser(subparsers: Any) -> None:
    """Registers the sub-command."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "lint", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a file or folder; - reads standard input")
    parser.add_argument("--gpus", metavar="NxMODEL", help="the GPUs of a node, for example 4xA100-80GB")
    parser.add_argument(
        "--mig",
        default="",
        metavar="LAYOUT",
        help="MIG instances per GPU: 0=1g.10gb,2g.20gb;1= or, for every GPU, 7x1g.10gb",
    )
    parser.add_argument(
        "--strategy", choices=("none", "single", "mixed"), help="MIG strategy of the plugin (MIG_STRATEGY)"
    )
    parser.add_argument(
        "--stack", metavar="NAME", help="check against the pools of this stack: offers, labels, taints, drivers"
    )
    parser.add_argument("--stack-file", type=Path, metavar="FILE", help="the same for a stack file in any place")
    parser.add_argument("--pool", metavar="NAME", help="take only this pool of the stack")
    parser.add_argument("--driver", metavar="VERSION", help="the driver of the nodes, for example 535.183.01")
    parser.add_argument(
        "--taint",
        action="append",
        default=[],
        metavar="K=V:EFFECT",
        help="a taint of the nodes; may be given several times",
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a variable in the plugin's environment; may be given several times",
    )
    parser.add_argument(
        "--as",
        dest="kind",
        choices=("config", "operator-values", "chart-values", "nfd-values", "hami-values", "dra-values"),
        help="what the files are, where their content does not show it",
    )
    parser.add_argument("--fix", action="store_true", help="correct the files where the right text is certain")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


class UsageError(Exception):
    """The options or paths are wrong; the text says how."""


def run(args: argparse.Namespace) -> int:
    """0: no error found; 1: errors found; 2: wrong usage."""
    from gpufleet.lint import lint
    from gpufleet.lint.pools import merge
    from gpufleet.lint.run import in_order

    try:
        files, unread = _files(args.paths)
        nodes, fleet = _nodes(args)
        fixed = _fix(files, nodes, show=not args.json) if args.fix else []
    except UsageError as error:
        print(f"gpufleet lint: {error}", file=sys.stderr)
        return EXIT_USAGE
    judged = [(options, lint(files, options)) for _, options in nodes]
    found = unread + merge(judged)
    if fleet is not None:
        from gpufleet.lint.release import check_release

        found = in_order(found + check_release(judged[0][1].documents, fleet))
    reports = [(name, report) for (name, _), (options, report) in zip(nodes, judged, strict=True) if _shown(options)]
    if args.json:
        document = _document(found, reports, fixed)
        if args.fix:  # there is one document on standard output, so the text that was read from there stands in it
            document |= {"text": next((text for name, text in files if name == STDIN), None)}
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        _print(found, reports, fixed, to_stdout=not (args.fix and "-" in args.paths))
    return EXIT_ERRORS if any(d.severity is Severity.ERROR for d in found) else EXIT_OK


def _shown(options: Any) -> bool:
    """Whether what a node will offer can be told; not of a pool whose hardware nobody knows."""
    return options.pool is None or options.node is not None


def _files(paths: list[str]) -> tuple[list[tuple[str, str]], list[Finding]]:
    files: list[tuple[str, str]] = []
    unread: list[Finding] = []
    for path in paths:
        for name, data in _read(path):
            try:
                files.append((name, data.decode("utf-8")))
            except UnicodeDecodeError as error:
                before = data[: error.start]
                line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
                why = f"byte {column} of line {line} is not UTF-8"
                unread.append(replace(finding("GF500", "", fault=why), file=name, line=line))
    return files, unread


def _is_read(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES or file.name == "Kustomization"


def _read(path: str) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file under a path. Raises UsageError when a file cannot be read."""
    if path == "-":
        yield STDIN, sys.stdin.buffer.read()
        return
    root = Path(path)
    if root.is_dir():
        inside = sorted(p for p in root.rglob("*") if _is_read(p) and p.is_file() and not _hidden(p, root))
        if not inside:
            raise UsageError(f"{path} has no {', '.join(SUFFIXES)} file")
    else:
        inside = [root]
    for file in inside:
        try:
            yield str(file), file.read_bytes()
        except OSError as error:
            raise UsageError(f"{file}: {error.strerror}") from None


def _hidden(path: Path, root: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(root).parts)


def _nodes(args: argparse.Namespace) -> tuple[list[tuple[str, Any]], Fleet | None]:
    """The nodes to check against: one set of options, or one per pool of a stack, and its fleet."""
    from gpufleet.lint import Options
    from gpufleet.lint.recognise import FORCED

    env: dict[str, str] = {}
    for word in args.env:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"--env {word}: write NAME=VALUE")
        env[name] = value
    if args.strategy and env.setdefault("MIG_STRATEGY", args.strategy) != args.strategy:
        raise UsageError(f"--strategy {args.strategy} and --env MIG_STRATEGY={env['MIG_STRATEGY']} contradict")
    kind = FORCED[args.kind] if args.kind else None
    _check_driver(args.driver)
    if args.stack or args.stack_file:
        stack, more = _stack(args), _taints(args.taint)
        return [
            (p.name, Options(p.node, env, args.driver or p.driver, kind, (*p.taints, *more), p.env, p))
            for p in stack.pools
        ], stack.fleet
    if args.pool:
        raise UsageError("--pool needs --stack or --stack-file")
    if args.mig and not args.gpus:
        raise UsageError("--mig needs --gpus")
    node = None
    if args.gpus:
        from gpufleet.lint.node import parse_node

        try:
            node = parse_node(args.gpus, args.mig)
        except ValueError as error:
            raise UsageError(str(error)) from None
    return [("", Options(node, env, args.driver, kind, _taints(args.taint)))], None


def _check_driver(text: str | None) -> None:
    if text is None:
        return
    from gpufleet.catalog import driver_version

    try:
        driver_version(text)
    except ValueError as error:
        raise UsageError(f"--driver: {error}") from None


def _stack(args: argparse.Namespace) -> StackNodes:
    from gpufleet.lint.stack import nodes_of

    if args.gpus or args.mig:
        raise UsageError("--gpus and --mig come from the stack here; leave them out")
    if args.stack and args.stack_file:
        raise UsageError("--stack and --stack-file both name a stack; give one")
    try:
        return nodes_of(args.stack, args.stack_file, args.pool)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _taints(words: list[str]) -> tuple[Any, ...]:
    if not words:
        return ()
    from gpufleet.parts.taints import parse_taint

    found = []
    for word in words:
        try:
            found.append(parse_taint(word))
        except ValueError as error:
            raise UsageError(f"--taint {word}: {error}") from None
    return tuple(found)


def _fix(files: list[tuple[str, str]], nodes: list[tuple[str, Any]], *, show: bool) -> list[tuple[str, str]]:
    """Corrects the files on disk and in the list `files`. Returns what was corrected, as (file, what).

    Standard input is written to standard output where `show` is set.
    """
    from gpufleet.lint import lint
    from gpufleet.lint.config import plausible_node
    from gpufleet.lint.fix import Reading
    from gpufleet.lint.fix_file import fix_file

    # The same configurations in the same order, as each pool's plugin reads them.
    pools = zip(*(lint(files, options).checked for _, options in nodes if _shown(options)), strict=True)
    configs = [
        (
            on[0].config,
            [Reading(one.node or plausible_node(one.config), one.config.env, one.config.flags) for one in on],
        )
        for on in pools
    ]
    done: list[tuple[str, str]] = []
    for i, (name, text) in enumerate(files):
        result = fix_file(text, [(config, on) for config, on in configs if config.file == name])
        if name == STDIN and not show:
            pass
        elif name == STDIN:
            sys.stdout.write(result.text)
        elif result.done:
            _write(Path(name), result.text)
        files[i] = (name, result.text)
        done += [(name, what) for what in result.done]
    return done


def _write(path: Path, text: str) -> None:
    """Replaces a file in one step, so that it is never half written.

    Raises:
        UsageError: the file cannot be written.
    """
    path = path.resolve()
    fresh = path.with_name(f".{path.name}.gpufleet")
    try:
        mode = path.stat().st_mode
        fresh.write_bytes(text.encode("utf-8"))
        fresh.chmod(mode)
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise UsageError(f"{path}: {error.strerror}") from None


def _labels(labels: Mapping[str, str] | None) -> dict[str, str] | None:
    """The labels without the product, where only a group of models is known and so the product is not certain."""
    from gpufleet.lint.node import UNKNOWN_PRODUCT

    return None if labels is None else {k: v for k, v in labels.items() if not v.startswith(UNKNOWN_PRODUCT)}


def _advertised(reports: list[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
    for pool, report in reports:
        for one in report.checked:
            if one.node is None:
                continue
            answer = one.prediction
            yield {
                **({"pool": pool} if pool else {}),
                "file": one.config.file,
                "line": one.config.line(1),
                "where": one.config.where,
                "outcome": answer.outcome,
                "reason": answer.reason,
                "capacity": None if answer.capacity is None else dict(answer.capacity),
                "labels": _labels(answer.labels),
            }


def _document(found: list[Finding], reports: list[tuple[str, Any]], fixed: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "ok": not any(d.severity is Severity.ERROR for d in found),
        "findings": [d.as_dict() for d in found],
        "advertised": list(_advertised(reports)),
        "fixed": [{"file": file, "what": what} for file, what in fixed],
    }


def _print(
    found: list[Finding], reports: list[tuple[str, Any]], fixed: list[tuple[str, str]], *, to_stdout: bool
) -> None:
    out = sys.stdout if to_stdout else sys.stderr
    for file, what in fixed:
        print(f"fixed {file}: {what}", file=out)
    for one in found:
        print(as_text(one).replace("(stack file)", "(text)"), file=out)
    for row in _advertised(reports):
        place = " ".join(p for p in (row.get("pool", ""), row["where"], f"{row['file']}:{row['line']}") if p)
        print(f"a node that reads {place}", file=out)
        if row["capacity"] is None:
            print(f"    offers:  nothing; the plugin exits: {row['reason']}", file=out)
            continue
        offers = ", ".join(f"{k}: {v}" for k, v in sorted(row["capacity"].items())) or "nothing"
        print(f"    offers:  {offers}", file=out)
        for key, value in sorted((row["labels"] or {}).items()):
            print(f"    label:   nvidia.com/{key}={value}", file=out)
    if any(one.node is None for _, report in reports for one in report.checked):
        print("Add --gpus 4xA100-80GB to see what such a node will offer.", file=out)
    print(summary(found), file=out)
