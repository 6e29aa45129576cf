"""What the Ansible roles are told about hosts beside their GPUs: how to reach them, where their packages come from.

Words are those of the roles' variables (roles/README.md), so that a value is found in both.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from gpufleet.stackfile.base import AsTuple, Model, matches, refuse

Url = Annotated[
    str,
    matches(
        r"https?://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?"
        r"(/([^\s\"'{}<>]|<(directory|architecture directory|machine|architecture|version)>)*)?",
        "An address begins with https:// or http://; in angle brackets it may hold directory, architecture directory,"
        " machine, architecture and version.",
        "Write e.g. `https://mirror.example.com/cuda/<directory>/<architecture directory>/`.",
    ),
]
HostAddress = Annotated[
    str,
    matches(
        r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?",
        "This is the name or address of a host, without scheme, port and path.",
        "Write e.g. `mirror.example.com`.",
    ),
]
Fingerprint = Annotated[
    str,
    matches(
        r"[0-9A-Fa-f]{8}|[0-9A-Fa-f]{16}|[0-9A-Fa-f]{40}",
        "A key is named by its fingerprint of 40 hexadecimal digits, or by its last 16 or 8.",
        "Write what `gpg --show-keys` prints, without blanks.",
    ),
]
# No value may hold braces: what stands in an inventory is a template to Ansible.
Suite = Annotated[str, matches(r"[^\s\"'{}]+", "A suite is one word.", "Write `/` for a flat repository.")]
Component = Annotated[str, matches(r"[^\s\"'{}]+", "A component is one word.", "Write e.g. `main`.")]
RuntimeOwner = Literal["auto", "containerd", "docker", "crio", "k3s", "rke2", "kubespray", "none"]


class HostDriver(Model):
    """How the roles bring the driver onto the hosts of a pool with `driver: host`.

    `cuda_repo` is NVIDIA's package repository, `distro` Ubuntu's archive, `runfile` the installer file of exactly
    `driverVersion`. Without `flavour` the kernel modules follow the GPU and the branch.
    """

    method: Literal["cuda_repo", "distro", "runfile"] = "cuda_repo"
    flavour: Literal["open", "proprietary"] | None = None
    runfile_sha256: (
        Annotated[
            str,
            matches(
                r"[0-9a-f]{64}", "A SHA-256 is 64 hexadecimal digits in lower case.", "Write what `sha256sum` prints."
            ),
        ]
        | None
    ) = None

    @model_validator(mode="after")
    def _checksum(self) -> HostDriver:
        if (self.method == "runfile") != (self.runfile_sha256 is not None):
            raise refuse(
                "GF110",
                "The installer file is run as root, so its checksum is stated; packages are signed and need none.",
                "Give runfileSha256 with method runfile, and only there.",
                keys="method, runfileSha256",
            )
        return self


class Ssh(Model):
    """How Ansible logs in. Any user but root becomes root by sudo."""

    user: (
        Annotated[
            str,
            matches(
                r"[a-z_][a-z0-9_.-]{0,31}",
                "User names are lower case letters, digits, '_', '-' and '.'.",
                "Write the login.",
            ),
        ]
        | None
    ) = None
    port: int | None = Field(default=None, ge=1, le=65535)


class MirrorRepository(Model):
    """A copy of one of the vendor's package repositories.

    `url` and `keyUrl` may hold `<directory>`, `<architecture directory>`, `<machine>` and `<architecture>`, which stand
    for what the vendor's own addresses have there (ubuntu2404, sbsa, aarch64, arm64). `suite` and `components` are
    apt's; `/` is a flat repository, as the vendor has. A copy with another signature states its key: `key` is its
    armoured text, `keyUrl` its address, checked against `keyFingerprints`.
    """

    url: Url
    suite: Suite = "/"
    components: Annotated[tuple[Component, ...], AsTuple] = ()
    key: (
        Annotated[
            str,
            matches(
                r"(?s)\s*-----BEGIN PGP PUBLIC KEY BLOCK-----[^{}]*-----END PGP PUBLIC KEY BLOCK-----\s*",
                "A key is the armoured text of an OpenPGP public key.",
                "Paste what `gpg --armor --export` prints.",
            ),
        ]
        | None
    ) = None
    key_url: Url | None = None
    key_fingerprints: Annotated[tuple[Fingerprint, ...], AsTuple] = ()

    @model_validator(mode="after")
    def _one_key(self) -> MirrorRepository:
        if self.key is not None and (self.key_url is not None or self.key_fingerprints):
            raise refuse(
                "GF110",
                "The text of a key is the key; there is nothing to fetch and nothing to compare.",
                "Give key, or keyUrl and keyFingerprints.",
                keys="key, keyUrl, keyFingerprints",
            )
        return self


class Mirror(Model):
    """Where hosts get packages instead of the vendor's own addresses (docs/inventory.md).

    With `allowedHosts`, no package source with another host is left on a host that the roles have been through.
    """

    cuda: MirrorRepository | None = None
    toolkit: MirrorRepository | None = None
    runfile_url: Url | None = None
    allowed_hosts: Annotated[tuple[HostAddress, ...], AsTuple] = ()


class Hosts(Model):
    """What holds for all hosts of the stack. `runtimeOwner` follows the distribution where it is not given."""

    ssh: Ssh = Field(default_factory=lambda: Ssh.model_validate({}))
    reboot_policy: Literal["never", "if_required", "reset_then_reboot"] = "never"
    runtime_owner: RuntimeOwner | None = None
    manage_repositories: bool = True
    mirror: Mirror | None = None

    @model_validator(mode="after")
    def _sources(self) -> Hosts:
        if not self.manage_repositories and self.mirror is not None:
            raise refuse(
                "GF110",
                "Where the roles manage no repository, a mirror is never configured.",
                "Remove mirror, or manageRepositories.",
                keys="manageRepositories, mirror",
            )
        return self
