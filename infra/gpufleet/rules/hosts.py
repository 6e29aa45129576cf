"""Rules about hosts in stack files: drivers, operating systems, package sources."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF801 = rule(
    "GF801", Severity.ERROR,
    title="hostDriver says how the roles install a driver, and this pool's owner is {value}.",
    reason="The owner of a pool is the only one to install its driver.",
    remedy="Remove hostDriver, or set `driver: host`.",
    source="roles/gpu_driver/README.md",
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, driver: operator, hostDriver: {method: distro}}]
    """,
    fix=("driver: operator, ", ""),
)

GF802 = rule(
    "GF802", Severity.ERROR,
    title="The installer file has a checksum, and the pool has no driverVersion.",
    reason="A checksum belongs to one file, and a file to one exact version.",
    remedy="Set driverVersion beside the checksum.",
    source="DIG",
    needs=("value", "version"),
    wrong="""
        gpufleet:pools:
          - name: t4
            hostDriver:
              method: runfile
              runfileSha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    """,
    right="""
        gpufleet:pools:
          - name: t4
            hostDriver:
              method: runfile
              runfileSha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
            driverVersion: 580.126.09
    """,
)

GF803 = rule(
    "GF803", Severity.ERROR,
    title="{gpu} does not take {value} kernel modules.",
    reason="Open modules need Turing or newer; Grace Hopper and Blackwell take no others (NVIDIA driver "
    "installation guide).",
    remedy="Remove flavour; it follows the GPU.",
    source="DIG; OGKM; architectures",
    wrong="gpufleet:pools: [{name: t4, gpu: B200, hostDriver: {flavour: proprietary}}]",
    right="gpufleet:pools: [{name: t4, gpu: B200, hostDriver: {flavour: open}}]",
)

GF804 = rule(
    "GF804", Severity.ERROR,
    title="Driver branch {branch} has no {value} kernel modules.",
    reason="The open ones exist since 515; from 620 on there are no others (NVIDIA driver installation guide).",
    remedy="Remove flavour, or choose another branch.",
    source="DIG; driver_branches",
    wrong='gpufleet:pools: [{name: t4, driverBranch: "620", hostDriver: {flavour: proprietary}}]',
    right='gpufleet:pools: [{name: t4, driverBranch: "580", hostDriver: {flavour: proprietary}}]',
)

GF805 = rule(
    "GF805", Severity.ERROR,
    title="Hosts with {value} cannot be prepared.",
    reason="The release is older than what Ansible or NVIDIA's packages support.",
    remedy="Use a newer release, or `driver: none` and prepare the hosts in another way.",
    source="ansible-core; platforms",
    wrong="gpufleet:pools: [{name: t4, os: rhel-8}]",
    right="gpufleet:pools: [{name: t4, os: rhel-9}]",
)

GF806 = rule(
    "GF806", Severity.ERROR,
    title="{os} has no such route to a driver: {value}.",
    reason="Which routes exist comes from a table (platforms.yaml); no repository address is built from a version "
    "number.",
    remedy="Set hostDriver.method to one that exists, or hosts.mirror.cuda to a repository of your own.",
    source="platforms; NVIDIA/nvidia-container-runtime#193",
    needs=("value", "sources"),
    wrong="gpufleet:pools: [{name: t4, os: debian-12, hostDriver: {method: distro}}]",
    right="gpufleet:pools: [{name: t4, os: ubuntu-24.04, hostDriver: {method: distro}}]",
)

GF807 = rule(
    "GF807", Severity.ERROR,
    title="The vendor's repository has no {value} tree for {os}.",
    reason="Not every architecture is built for every operating system (repositories.yaml, host_repositories.yaml).",
    remedy="Use `hostDriver: {{method: runfile, ...}}`, or hosts.mirror.cuda with a repository of your own.",
    source="repositories; host_repositories",
    needs=("value", "sources"),
    wrong="gpufleet:pools: [{name: t4, os: debian-13, architecture: aarch64}]",
    right="gpufleet:pools: [{name: t4, os: debian-12, architecture: aarch64}]",
)

GF808 = rule(
    "GF808", Severity.ERROR,
    title="Packages would come from {value}, which allowedHosts does not name.",
    reason="With allowedHosts the roles leave no other package source on a host, and stop at one that they need "
    "themselves.",
    remedy="Mirror it (hosts.mirror), or add it to allowedHosts.",
    source="repositories; host_repositories; host_toolkit",
    needs=("value", "sources"),
    wrong="""
        gpufleet:hosts:
          mirror: {toolkit: {url: "https://mirror.example.com/toolkit"}, allowedHosts: [mirror.example.com]}
    """,
    right="""
        gpufleet:hosts:
          mirror:
            cuda: {url: "https://mirror.example.com/cuda/<directory>/<architecture directory>/"}
            toolkit: {url: "https://mirror.example.com/toolkit"}
            allowedHosts: [mirror.example.com]
    """,
)
