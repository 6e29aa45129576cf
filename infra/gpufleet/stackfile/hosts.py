"""What the Ansible roles are told about hosts beside their GPUs: how to reach them, where their packages come from.

Words are those of the roles' variables (roles/README.md), so that a value is found in both.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

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

    bare: ClassVar[tuple[str, ...]] = ("method",)

    method: Literal["cuda_repo", "distro", "runfile"] = Field(
        default="cuda_repo",
        description="Where the driver comes from: NVIDIA's repository, Ubuntu's archive, or the installer file.",
        examples=["cuda_repo"],
    )
    flavour: Literal["open", "proprietary"] | None = Field(
        default=None,
        description="The kernel modules; without it they follow the GPU and the branch.",
        examples=["open"],
    )
    runfile_sha256: (
        Annotated[
            str,
            matches(
                r"[0-9a-f]{64}", "A SHA-256 is 64 hexadecimal digits in lower case.", "Write what `sha256sum` prints."
            ),
        ]
        | None
    ) = Field(
        default=None, description="The SHA-256 of the installer file, for method runfile alone.", examples=["0" * 64]
    )

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

    bare: ClassVar[tuple[str, ...]] = ("user",)

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
    ) = Field(default=None, description="The login on the hosts.", examples=["ubuntu"])
    port: int | None = Field(default=None, ge=1, le=65535, description="The port of the SSH server.", examples=[22])


class MirrorRepository(Model):
    """A copy of one of the vendor's package repositories.

    `url` and `keyUrl` may hold `<directory>`, `<architecture directory>`, `<machine>` and `<architecture>`, which stand
    for what the vendor's own addresses have there (ubuntu2404, sbsa, aarch64, arm64). `suite` and `components` are
    apt's; `/` is a flat repository, as the vendor has. A copy with another signature states its key: `key` is its
    armoured text, `keyUrl` its address, checked against `keyFingerprints`.
    """

    bare: ClassVar[tuple[str, ...]] = ("url",)

    url: Url = Field(
        description="The address of the copy.",
        examples=["https://mirror.example.com/cuda/<directory>/<architecture directory>/"],
    )
    suite: Suite = Field(default="/", description="The suite of an apt repository; / is a flat one.", examples=["/"])
    components: Annotated[tuple[Component, ...], AsTuple] = Field(
        default=(), description="The components of an apt repository that is not flat.", examples=[["main"]]
    )
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
    ) = Field(
        default=None,
        description="The key that signs the copy, as armoured text, where it is not the vendor's.",
        examples=["-----BEGIN PGP PUBLIC KEY BLOCK-----\n...\n-----END PGP PUBLIC KEY BLOCK-----\n"],
    )
    key_url: Url | None = Field(
        default=None,
        description="Where the key that signs the copy is.",
        examples=["https://mirror.example.com/key.asc"],
    )
    key_fingerprints: Annotated[tuple[Fingerprint, ...], AsTuple] = Field(
        default=(),
        description="Fingerprints that the key under keyUrl may have.",
        examples=[["EB693B3035CD5710E231E123A4B469963BF863CC"]],
    )

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

    cuda: MirrorRepository | None = Field(
        default=None,
        description="The copy of NVIDIA's CUDA repository, where the driver comes from.",
        examples=[{"url": "https://mirror.example.com/cuda/<directory>/<architecture directory>/"}],
    )
    toolkit: MirrorRepository | None = Field(
        default=None,
        description="The copy of the container toolkit's repository.",
        examples=[{"url": "https://mirror.example.com/toolkit/"}],
    )
    runfile_url: Url | None = Field(
        default=None,
        description="The address of the driver's installer file.",
        examples=["https://mirror.example.com/NVIDIA-Linux-x86_64-580.95.05.run"],
    )
    allowed_hosts: Annotated[tuple[HostAddress, ...], AsTuple] = Field(
        default=(),
        description="The only servers that package sources of the hosts may name.",
        examples=[["mirror.example.com"]],
    )


class Hosts(Model):
    """What holds for all hosts of the stack. `runtimeOwner` follows the distribution where it is not given."""

    ssh: Ssh = Field(
        default_factory=lambda: Ssh.model_validate({}),
        description="How Ansible logs in.",
        examples=[{"user": "ubuntu"}],
    )
    reboot_policy: Literal["never", "if_required", "reset_then_reboot"] = Field(
        default="never", description="Whether the roles may reboot a host.", examples=["if_required"]
    )
    runtime_owner: RuntimeOwner | None = Field(
        default=None,
        description="Who configures the container runtime; without it, what the distribution says.",
        examples=["containerd"],
    )
    manage_repositories: bool = Field(
        default=True,
        description="Whether the roles add package repositories; false where the hosts have them already.",
        examples=[False],
    )
    mirror: Mirror | None = Field(
        default=None,
        description="Where the hosts get packages instead of the vendor's addresses.",
        examples=[{"cuda": {"url": "https://mirror.example.com/cuda/"}}],
    )

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
