"""One row per way to trigger a rule about hosts in stack files; as in tests/unit/config/rule_cases.py."""

from __future__ import annotations

from typing import Any

from tests.unit.config.case import Case
from tests.unit.config.samples import REMOVE

SHA = "0123456789abcdef" * 4
VENDOR = "developer.download.nvidia.com"
MIRROR = {"url": "https://mirror.example.com/cuda/<directory>/<architecture directory>/"}


def driver(**fields: Any) -> dict[str, Any]:
    """hostDriver of the first pool."""
    return {"pools[0].hostDriver": fields}


def on(system: str, **fields: Any) -> dict[str, Any]:
    """The first pool's operating system, and hostDriver where fields are given."""
    return {"pools[0].os": system, **(driver(**fields) if fields else {})}


def runfile(version: str | None = "580.126.09") -> dict[str, Any]:
    wanted = driver(method="runfile", runfileSha256=SHA)
    return {**wanted, "pools[0].driverVersion": version} if version else wanted


METHOD, FLAVOUR, OS = "pools[0].hostDriver.method", "pools[0].hostDriver.flavour", "pools[0].os"
BOTH = {"hosts.mirror.cuda": MIRROR, "hosts.mirror.toolkit": {"url": "https://mirror.example.com/toolkit"}}

CASES = [
    Case("GF801", "pools[0].hostDriver", value="operator"),
    Case("GF801", "pools[0].hostDriver", "existing-operator", {"pools[0].driver": "none", **driver()},
         value="none", also=(("GF205", "pools[0].driver"),)),
    Case("GF802", METHOD, value="runfile"),
    Case("GF803", FLAVOUR, value="proprietary", allowed=("open",), says="B200"),
    Case("GF803", FLAVOUR, "existing-plugin", {"pools[0].gpu": "V100-PCIE-32GB", **driver(flavour="open")},
         {"pools[0].gpu": "V100-PCIE-32GB", **driver(flavour="proprietary")}, value="open", allowed=("proprietary",)),
    Case("GF804", FLAVOUR, value="proprietary", allowed=("open",), says="620"),
    Case("GF805", OS, value="rhel-8", says="Python 3.6"),
    Case("GF805", OS, "existing-plugin", on("rocky-8.10"), on("rocky-9.6"), value="rocky-8.10"),
    Case("GF805", OS, "existing-operator", {"pools[0].driver": "operator", **on("kylin-V10")},
         {"pools[0].driver": "host", **on("kylin-V11")}, value="kylin-V10", also=(("GF208", OS),)),
    Case("GF806", METHOD, value="distro", allowed=("cuda_repo", "runfile")),
    Case("GF806", OS, "existing-plugin", on("openEuler-22.03"), {**on("openEuler-22.03"), "hosts.mirror.cuda": MIRROR},
         value="cuda_repo", allowed=("runfile",)),
    Case("GF806", OS, "existing-plugin", on("openEuler-24.03"),
         {**on("openEuler-24.03"), "hosts.manageRepositories": False}),
    Case("GF807", "pools[0].architecture", value="aarch64", says="debian-13"),
    Case("GF808", "hosts.mirror.cuda.url", value=VENDOR, allowed=("mirror.example.com",)),
    Case("GF808", "hosts.mirror.toolkit.url", "existing-plugin",
         {"hosts.mirror": {"cuda": MIRROR, "allowedHosts": ["mirror.example.com"]}},
         {"hosts.mirror": {"cuda": MIRROR, "allowedHosts": ["mirror.example.com", "nvidia.github.io"]}},
         value="nvidia.github.io"),
    Case("GF808", "hosts.mirror.toolkit.keyUrl", "existing-plugin",
         {**BOTH, "hosts.mirror.toolkit.keyUrl": "https://keys.example.com/gpgkey",
          "hosts.mirror.allowedHosts": ["mirror.example.com"]},
         {**BOTH, "hosts.mirror.toolkit.keyUrl": "https://mirror.example.com/gpgkey",
          "hosts.mirror.allowedHosts": ["mirror.example.com"]}, value="keys.example.com"),
    Case("GF808", "hosts.mirror.runfileUrl", "existing-plugin",
         {**runfile(), "hosts.mirror": {"allowedHosts": ["nvidia.github.io"]}},
         {**runfile(), "hosts.mirror": {"allowedHosts": ["nvidia.github.io"],
                                        "runfileUrl": "https://nvidia.github.io/<version>-<machine>.run"}},
         value="us.download.nvidia.com"),
    # Rules of reading and of shape, at the keys that only hosts have.
    Case("GF109", OS, "existing-plugin", on("ubuntu-24.10"), on("ubuntu-24.04"), value="ubuntu-24.10",
         closest="ubuntu-24.04"),
    Case("GF110", "pools[0].hostDriver", "existing-plugin",
         {"pools[0].driverVersion": "580.126.09", **driver(method="runfile")}, runfile(), says="runfileSha256"),
    Case("GF110", "pools[0].hostDriver", "existing-plugin", driver(runfileSha256=SHA), runfile()),
    Case("GF110", "pools[0]", "existing-plugin",
         {"pools[0].hosts": REMOVE, "pools[0].nodeSelector": {"a": "b"}, **driver()}, driver()),
    Case("GF110", "hosts", "existing-plugin", {"hosts": {"manageRepositories": False, "mirror": {"cuda": MIRROR}}},
         {"hosts": {"manageRepositories": True, "mirror": {"cuda": MIRROR}}}),
    Case("GF110", "hosts.mirror.cuda", "existing-plugin",
         {"hosts.mirror.cuda": {**MIRROR, "keyUrl": "https://m.example.com/k",
                                "key": "-----BEGIN PGP PUBLIC KEY BLOCK-----\nx\n-----END PGP PUBLIC KEY BLOCK-----"}},
         {"hosts.mirror.cuda": {**MIRROR, "keyUrl": "https://m.example.com/k"}}),
    Case("GF101", "hosts", "aks-plugin", {"hosts": {"ssh": {"user": "x"}}}, value="hosts"),
    Case("GF101", "hosts.sssh", "existing-plugin", {"hosts.sssh": {}}, {"hosts.ssh": {}}, closest="ssh"),
    Case("GF102", "hosts.mirror.cuda.url", "existing-plugin", {"hosts.mirror.cuda": {"suite": "/"}},
         {"hosts.mirror.cuda": MIRROR}),
    Case("GF103", "hosts.rebootPolicy", "existing-plugin", {"hosts.rebootPolicy": "always"},
         {"hosts.rebootPolicy": "if_required"}, allowed=("never", "if_required", "reset_then_reboot")),
    Case("GF103", METHOD, "existing-plugin", driver(method="apt"), driver(method="distro")),
    Case("GF105", "hosts.ssh.port", "existing-plugin", {"hosts.ssh.port": 0}, {"hosts.ssh.port": 22}),
    Case("GF106", "hosts.ssh.user", "existing-plugin", {"hosts.ssh.user": "-oProxyCommand=x"},
         {"hosts.ssh.user": "ubuntu"}),
    Case("GF106", "pools[0].hosts.n1.address", "existing-plugin",
         {"pools[0].hosts.n1.address": "-oProxyCommand=x"}, {"pools[0].hosts.n1.address": "fd00::1"}),
    *(Case("GF106", "pools[0].hosts.n1.address", "existing-plugin", {"pools[0].hosts.n1.address": wrong},
           {"pools[0].hosts.n1.address": right}, value=wrong)
      for wrong, right in (("10.0.0.1:22", "10.0.0.1"), ("gpu01:2222", "gpu01.example.com"),
                           ("[fe80::1]:22", "::ffff:10.0.0.1"))),
    Case("GF106", "hosts.mirror.cuda.url", "existing-plugin", {"hosts.mirror.cuda.url": "mirror.example.com"},
         {"hosts.mirror.cuda": MIRROR}),
    Case("GF106", "hosts.mirror.cuda.url", "existing-plugin",
         {"hosts.mirror.cuda.url": "https://mirror.example.com/<distro>/"}, {"hosts.mirror.cuda": MIRROR}),
    Case("GF106", "hosts.mirror.cuda.url", "existing-plugin",
         {"hosts.mirror.cuda.url": "https://mirror.example.com/{{ x }}"}, {"hosts.mirror.cuda": MIRROR}),
    Case("GF106", "hosts.mirror.allowedHosts[0]", "existing-plugin",
         {"hosts.mirror": {"allowedHosts": ["https://nvidia.github.io"]}},
         {"hosts.mirror": {"allowedHosts": ["nvidia.github.io", VENDOR]}}),
    Case("GF106", "hosts.mirror.cuda.keyFingerprints[0]", "existing-plugin",
         {"hosts.mirror.cuda": {**MIRROR, "keyFingerprints": ["EB69"]}},
         {"hosts.mirror.cuda": {**MIRROR, "keyFingerprints": ["EB693B30"]}}),
]  # fmt: skip
