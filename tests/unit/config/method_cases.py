"""Rules about the methods of sharing: MIG, MPS, HAMi, the time slice."""

from __future__ import annotations

from typing import Any

from tests.unit.config.case import Case

A100 = "A100-SXM4-80GB"
NC_A100 = "Standard_NC24ads_A100_v4"


def mig(gpu: str | None = A100, **profile: Any) -> dict[str, Any]:
    """The first pool under MIG; `gpu` is the model of pools on existing clusters."""
    changes: dict[str, Any] = {"sharing.cut": {"strategy": "mig", **profile}, "pools[0].sharing": "cut"}
    return {**changes, "pools[0].gpu": gpu} if gpu else changes


def aks_mig(size: str = NC_A100, **profile: Any) -> dict[str, Any]:
    return {**mig(None, **profile), "pools[0].vmSize": size}


def other(strategy: str, **fields: Any) -> dict[str, Any]:
    """A second pool, with a profile of its own."""
    pool = {"name": "b", "hosts": {"n2": {}}, "gpu": A100, "gpusPerNode": 1, "sharing": "other"}
    return {"sharing.other": {"strategy": strategy, **fields}, "pools[1]": pool}


def first(strategy: str, **fields: Any) -> dict[str, Any]:
    return {"sharing.own": {"strategy": strategy, **fields}, "pools[0].sharing": "own"}


CUT = "pools[0].sharing"

METHODS = [
    *(
        Case("GF226", f"stack.values.{path}", "existing-operator", {"stack.values": wrong}, {"stack.values": right})
        for path, wrong, right in (
            (
                "driver.manager.env[0].value",
                {"driver": {"manager": {"env": [{"name": "NGC_API_KEY", "value": "abc"}]}}},
                {"driver": {"manager": {"env": [{"name": "NGC_API_URL", "value": "abc"}]}}},
            ),
            (
                "driver.repository",
                {"driver": {"repository": "https://u:abc@h/x"}},
                {"driver": {"repository": "h:5000/x@sha256:" + "0" * 64}},
            ),
        )
    ),
    Case(
        "GF226",
        "stack.values.driver.env[0].value",
    ),
    Case(
        "GF424",
        "pools[1].nodeSelector",
        value="b",
    ),
    Case(
        "GF310",
        CUT,
        value="cut",
        says="T4",
    ),
    Case(
        "GF311",
        CUT,
        value="1g.5gb",
        says="A100-SXM4-80GB",
    ),
    Case(
        "GF311",
        CUT,
        "existing-plugin",
        mig("A100-SXM4-40GB", profile="1g.20gb"),
        mig("A100-SXM4-40GB", profile="1g.5gb"),
        value="1g.20gb",
    ),
    Case(
        "GF312",
        CUT,
        value="3 x 3g.40gb",
        says="possible here: 2.",
    ),
    Case(
        "GF312",
        CUT,
        "existing-plugin",
        mig(instances={"3g.40gb": 2, "1g.10gb": 1}),
        mig(instances={"4g.40gb": 1, "3g.40gb": 1}),
        value="1 x 1g.10gb, 2 x 3g.40gb",
    ),
    Case(
        "GF313",
        "pools[0].vmSize",
        value="Standard_NCC40ads_H100_v5",
        says="not known to be supported",
        also=(("GF234", "pools[0].vmSize"),),
    ),
    Case("GF314", CUT, value="1g.20gb"),
    Case(
        "GF314",
        CUT,
        "aks-plugin",
        aks_mig(instances={"1g.10gb": 2, "3g.40gb": 1}),
        aks_mig(profile="3g.40gb"),
        value="1g.10gb, 3g.40gb",
    ),
    Case(
        "GF315",
        "pools[0].driverVersion",
        value="570.148.08",
        also=(("GF272", "pools[0].driverVersion"),),
    ),
    Case(
        "GF315",
        "pools[0].driverVersion",
        "existing-plugin",
        {**mig(profile="1g.10gb"), "pools[0].driverVersion": "575.57.08"},
        {**mig(profile="1g.10gb"), "pools[0].driverVersion": "580.65.06"},
        says="575.57.08 was made before the fix",
    ),
    Case(
        "GF212",
        "pools[0].driverBranch",
        "existing-plugin",
        {**mig("GB300", profile="1g.35gb"), "pools[0].driverBranch": "580"},
        {**mig("GB300", profile="1g.35gb"), "pools[0].driverBranch": "595"},
        value="580",
        says="MIG on GB300 needs 595.58.03",
    ),
    Case(
        "GF212",
        "pools[0].driverBranch",
        "existing-plugin",
        {**mig(profile="1g.20gb"), "pools[0].driverBranch": "520"},
        {**mig(profile="1g.10gb"), "pools[0].driverBranch": "520"},
        value="520",
        says="1g.20gb on A100-SXM4-80GB needs 525",
    ),
    Case(
        "GF316",
        CUT,
        value="single",
    ),
    Case("GF320", CUT, value="49"),
    Case(
        "GF320",
        CUT,
        "existing-plugin",
        {**first("mps", replicas=17), "pools[0].gpu": "V100-SXM2-32GB"},
        {**first("mps", replicas=16), "pools[0].gpu": "V100-SXM2-32GB"},
        value="17",
    ),
    Case(
        "GF321",
        CUT,
        value="own",
    ),
    Case(
        "GF330",
        CUT,
        "existing-operator",
        {**first("timeSlicing", replicas=2, timeSlice="short"), "pools[0].driver": "operator"},
        first("timeSlicing", replicas=2, timeSlice="short"),
        value="short",
    ),
    Case(
        "GF330",
        CUT,
        value="long",
    ),
    Case(
        "GF340",
        "pools[1].sharing",
        says="t4",
    ),
    Case(
        "GF341",
        "pools[1].sharing",
        value="other",
    ),
]
