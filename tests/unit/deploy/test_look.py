"""What a look makes of the API's answers."""

from __future__ import annotations

from typing import Any

import pytest
from gpufleet.parts.seen import SeenClass, SeenConfigMap
from gpufleet.places import look
from gpufleet.places.cluster_api import ApiError
from gpufleet.places.look import Cluster, wait_until_read

OURS = {"app.kubernetes.io/managed-by": "gpufleet"}
HELM = {"meta.helm.sh/release-name": "gpu", "meta.helm.sh/release-namespace": "nvidia"}


def one(name: str, namespace: str = "", labels: dict[str, str] | None = None, **rest: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels}
    return {"metadata": {**meta, **({"namespace": namespace} if namespace else {}), **rest.pop("meta", {})}, **rest}


class Answers(Cluster):
    """Answers per path; a number is the code of a refusal."""

    def __init__(self, answers: dict[str, list[dict[str, Any]] | int]) -> None:
        self.answers = answers

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        found = self.answers.get(path, [])
        if isinstance(found, int):
            raise ApiError("refused", found)
        return found


CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


def test_everything_that_is_seen() -> None:
    newer = one("b", "gpu", OURS, data={"k": "new"}, immutable=True, meta={"creationTimestamp": "2026-02-01T00:00:00Z"})
    seen = Answers({
        "/api/v1/nodes": [one("n1", labels={"a": "b"}), one("n2")],
        "/api/v1/namespaces": [one("prod")],
        "/api/v1/configmaps": [newer, one("a", "gpu", OURS)],
        CLASSES: [one("nvidia", handler="runc")],
        "/apis/nvidia.com/v1/clusterpolicies": [one("cluster-policy", meta={"annotations": HELM})],
        "/apis/apps/v1/daemonsets": [one("worker", "nfd")],
        "/api/v1/resourcequotas": [one("gpus", "prod"), one("gpus", "team", OURS)],
        "/apis/rbac.authorization.k8s.io/v1/rolebindings": 403,
    }).seen()
    assert seen.nodes == {"n1": {"a": "b"}, "n2": {}}
    assert seen.namespaces == {"prod": {}}
    assert seen.config_maps == (
        SeenConfigMap("gpu", "a", OURS, {}), SeenConfigMap("gpu", "b", OURS, {"k": "new"}, immutable=True),
    )  # fmt: skip
    assert seen.runtime_classes == {"nvidia": SeenClass("runc")}
    assert (seen.operators, seen.nfd) == ((("cluster-policy", "nvidia/gpu"),), (("nfd/worker", ""),))
    assert seen.inside == (("ResourceQuota", "prod", "gpus"),)


def test_what_the_user_may_not_list_is_unknown() -> None:
    refused = dict.fromkeys((CLASSES, "/apis/nvidia.com/v1/clusterpolicies", "/apis/apps/v1/daemonsets"), 403)
    seen = Answers(dict(refused)).seen()
    assert (seen.runtime_classes, seen.operators, seen.nfd) == (None, (), ())
    assert Answers({"/apis/nvidia.com/v1/clusterpolicies": 404}).seen().runtime_classes == {}
    with pytest.raises(ApiError):
        Answers({CLASSES: 500}).seen()


def daemon_set(name: str, reads: str, updated: int = 2, observed: int = 3) -> dict[str, Any]:
    spec = {"template": {"spec": {"volumes": [{"name": "c", "configMap": {"name": reads}}, {"name": "e"}]}}}
    status = {"observedGeneration": observed, "updatedNumberScheduled": updated, "desiredNumberScheduled": 2}
    return one(name, "gpu", spec=spec, status=status, meta={"generation": 3})


@pytest.mark.parametrize(
    ("found", "late"),
    [
        (daemon_set("p", "gpufleet-sharing-new"), []),
        (daemon_set("p", "gpufleet-sharing-old"), ["p"]),  # the operator has not changed it yet
        (daemon_set("p", "gpufleet-sharing-new", updated=1), ["p"]),
        (daemon_set("p", "gpufleet-sharing-new", observed=2), ["p"]),
        (daemon_set("other", "nvidia-entrypoint", updated=0), []),
    ],
)
def test_daemon_sets_that_are_behind(found: dict[str, Any], late: list[str]) -> None:
    """RP-46"""
    cluster = Answers({"/apis/apps/v1/namespaces/gpu/daemonsets": [found]})
    assert cluster.behind("gpu", ["gpufleet-sharing-new"]) == late


def test_the_wait_ends_when_all_read_the_new_maps(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "/apis/apps/v1/namespaces/gpu/daemonsets"
    old, new = daemon_set("p", "gpufleet-sharing-old"), daemon_set("p", "gpufleet-sharing-new")
    answers: list[Cluster] = [Answers({path: [old]}), Answers({path: 503}), Answers({path: [new]})]
    monkeypatch.setattr(look, "Cluster", lambda *_: answers.pop(0))
    monkeypatch.setattr(look, "_POLL_SECONDS", 0.0)
    assert wait_until_read("", None, "gpu", ["gpufleet-sharing-new"], 60) == []
    assert answers == []
    monkeypatch.setattr(look, "Cluster", lambda *_: Answers({path: [old]}))
    assert wait_until_read("", None, "gpu", ["gpufleet-sharing-new"], 0) == ["p"]
