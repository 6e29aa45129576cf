"""What one part of the stack file says about another: names that must exist, and names that must be unique."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.path import join_path
from gpufleet.findings.registry import GROUPS, IN_STACK, checks, finding, look_up, rules, scopes
from gpufleet.findings.rule import Rule
from gpufleet.stackfile.kubeconfig import is_path
from gpufleet.stackfile.source import SECRET_SECTIONS, SecretText, Source


def _items(value: Any) -> list[tuple[int, dict[str, Any]]]:
    return [(i, x) for i, x in enumerate(value) if isinstance(x, dict)] if isinstance(value, list) else []


def _entries(path: str, value: Any) -> list[tuple[str, Any]]:
    return [(f"{path}[{i}]", x) for i, x in enumerate(value)] if isinstance(value, list) else []


def _repeated(pairs: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for path, name in pairs:
        if isinstance(name, str):
            if name in seen:
                yield path, name
            seen.add(name)


def check_references(source: Source) -> list[Finding]:
    """Looks at raw values, so that a part that is wrong otherwise does not hide what refers to it."""
    data = source.data
    pools, teams = _items(data.get("pools")), _items(data.get("teams"))
    given = data.get("sharing")
    sharing: dict[str, Any] = given if isinstance(given, dict) else {}
    found: list[Finding] = []

    for path, name in _repeated((f"pools[{i}].name", p.get("name")) for i, p in pools):
        found.append(finding("GF108", path, value=name, because="Pools are told apart by their names."))
    hosts = [
        (join_path(("pools", i, "hosts", h)), h)
        for i, p in pools
        if isinstance(p.get("hosts"), dict)
        for h in p["hosts"]
    ]
    for path, name in _repeated(hosts):
        found.append(finding("GF108", path, value=name, because="A node belongs to one pool."))
    addresses = [
        (join_path(("pools", i, "hosts", h, "address")), v.get("address"))
        for i, p in pools
        if isinstance(p.get("hosts"), dict)
        for h, v in p["hosts"].items()
        if isinstance(v, dict)
    ]
    for path, name in _repeated(addresses):
        found.append(finding("GF108", path, value=name, because="Two hosts cannot have one address."))
    for i, pool in pools:
        zones = pool.get("zones")
        for path, name in _repeated(_entries(f"pools[{i}].zones", zones)):
            found.append(finding("GF108", path, value=name, because="A zone is named once."))
    images = stack.get("images") if isinstance(stack := data.get("stack"), dict) else None
    secrets = images.get("pullSecrets") if isinstance(images, dict) else None
    for path, name in _repeated(_entries("stack.images.pullSecrets", secrets)):
        found.append(finding("GF108", path, value=name, because="The API server takes each pull secret of a pod once."))
    for key, what in (("name", "Teams are told apart by their names."), ("namespace", "A namespace has one owner.")):
        for path, name in _repeated((f"teams[{i}].{key}", t.get(key)) for i, t in teams):
            found.append(finding("GF108", path, value=name, because=what))

    used: set[str] = set()
    for i, pool in pools:
        profile = pool.get("sharing")
        if not isinstance(profile, str):
            continue
        used.add(profile)
        if profile not in sharing:
            found.append(
                finding(
                    "GF109",
                    f"pools[{i}].sharing",
                    value=profile,
                    allowed=sorted(sharing),
                    what="sharing profile",
                    hint="Declare it under `gpufleet:sharing`, or use one of those allowed.",
                    because="A pool uses one of the profiles under `gpufleet:sharing`.",
                )
            )
    if pools:
        unused = [name for name in sharing if name not in used]
        found += [finding("GF303", join_path(("sharing", name)), value=name) for name in unused]
    names = {p["name"] for _, p in pools if isinstance(p.get("name"), str)}
    for i, team in teams:
        for j, name in enumerate(team["pools"] if isinstance(team.get("pools"), list) else ()):
            if isinstance(name, str) and name not in names:
                found.append(
                    finding(
                        "GF109",
                        f"teams[{i}].pools[{j}]",
                        value=name,
                        allowed=sorted(names),
                        what="pool",
                        hint="Declare it under `gpufleet:pools`, or use one of those allowed.",
                        because="A team uses pools of this stack.",
                    )
                )
    found += _secrets(data)
    found += _acknowledgements(data.get("acknowledge"))
    return [source.locate(d) for d in found]


def kubeconfig_in_clear(data: Any) -> bool:
    """Whether a kubeconfig itself stands where the stack file says where it is."""
    cluster = data.get("cluster")
    ref = cluster.get("kubeconfig") if isinstance(cluster, dict) else None
    if isinstance(ref, str):
        return not is_path(ref)
    return isinstance(ref, dict) and not {"clusters", "users"}.isdisjoint(ref)


def _secrets(data: Any) -> Iterator[Finding]:
    for section, value in data.items():
        if isinstance(value, SecretText) and section not in SECRET_SECTIONS:
            yield finding("GF008", section, allowed=SECRET_SECTIONS)
    cluster = data.get("cluster")
    ref = cluster.get("kubeconfig") if isinstance(cluster, dict) else None
    wanted = isinstance(ref, dict) and ref.get("secret") is True and "path" not in ref
    given = "kubeconfig" in data
    for section in SECRET_SECTIONS:
        if section in data and not isinstance(data[section], SecretText):
            yield finding("GF007", section)
    if kubeconfig_in_clear(data):
        yield finding("GF007", "cluster.kubeconfig")
    if wanted and not given:
        why = (
            "`cluster.kubeconfig.secret` says that the kubeconfig is a secret of the stack;"
            " `pulumi config set --secret gpufleet:kubeconfig < FILE` makes it one."
        )
        yield finding("GF102", "kubeconfig", key="gpufleet:kubeconfig", because=why)
    if _makes_pull_secret(data) and "pullSecret" not in data:
        why = (
            "`stack.images.makePullSecret` says that the registry's login is a secret of the stack;"
            " `pulumi config set --secret gpufleet:pullSecret < ~/.docker/config.json` makes it one."
        )
        yield finding("GF102", "pullSecret", key="gpufleet:pullSecret", because=why)


def _makes_pull_secret(data: Any) -> bool:
    route = data.get("stack")
    images = route.get("images") if isinstance(route, dict) else None
    return isinstance(images, dict) and images.get("makePullSecret") is True and bool(images.get("pullSecrets"))


def _acknowledgements(given: Any) -> Iterator[Finding]:
    for code in given if isinstance(given, dict) else ():
        path = join_path(("acknowledge", code))
        rule = look_up(code) if isinstance(code, str) else None
        if rule is None or not _of_stacks(rule):
            warnings = [code for code, r in rules().items() if r.severity is Severity.WARNING and _of_stacks(r)]
            why = "`gpufleet explain` lists all codes."
            hint = "Write the code of a warning that the plan prints."
            yield finding("GF109", path, value=code, allowed=warnings, what="warning", because=why, hint=hint)
        elif rule.severity is not Severity.WARNING:
            yield finding("GF111", path, value=code, because=f"{code} is of severity {rule.severity.value}.")


def without_effect(acknowledged: Iterable[str], found: Iterable[Finding]) -> list[Finding]:
    """Acknowledgements of warnings that the plan does not give; those of other commands, which need facts, are left."""
    given = {d.code for d in found}
    own = {rule.code for scope in scopes() for one in checks(scope) for rule in one.rules} | {"GF303"}
    return [finding("GF112", f"acknowledge.{code}", value=code) for code in acknowledged if code in own - given]


def _of_stacks(rule: Rule) -> bool:
    """Whether a stack file accepts the rule's warnings; those about a host are accepted in the inventory."""
    return GROUPS[rule.code[2]].accept == IN_STACK
