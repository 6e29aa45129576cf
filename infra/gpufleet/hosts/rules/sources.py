"""Rules about package sources: keys, addresses, mirror profiles."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF733 = rule(
    "GF733", Severity.ERROR,
    title="Repository key refused by sqv: {key} for {directory}: its own signature is SHA-1, refused since {end}",
    reason="apt update fails on every run.",
    remedy="Use an own mirror that is signed anew, or install an apt crypto policy and set "
    "gpu_preflight_allow_sha1_key.",
    source="NVIDIA/cuda-repo-management#30; NVIDIA/cuda-repo-management#44",
    cases=("BM-02",),
    wrong="Ubuntu 26.04 with sqv; the repository's key has a SHA-1 signature",
    right="Ubuntu 26.04 with sqv; the mirror's own key has a SHA-512 signature",
)

GF734 = rule(
    "GF734", Severity.WARNING,
    title="Retired key still trusted: {file}",
    reason="The vendor no longer signs with the key.",
    because="The vendor retired the key {key} on {retired}.",
    remedy="gpu_driver removes the file when the key is alone in it; otherwise remove the key by hand.",
    source="NVIDIA/cuda-repo-management#4",
    cases=("BM-01",),
    wrong="/etc/apt/trusted.gpg.d/cuda.gpg holds the key 7FA2AF80",
    right="no keyring holds the key 7FA2AF80",
)

GF735 = rule(
    "GF735", Severity.ERROR,
    title="Address does not answer: {url}: {answer}",
    reason="The repository cannot be used.",
    remedy="Check address, proxy and mirror; for the keyring look up the file name in repositories.yaml.",
    source="NVIDIA/ansible-role-nvidia-driver#88",
    cases=("BM-04",),
    wrong="https://mirror.example.com/cuda/ answers with HTTP error 404",
    right="https://mirror.example.com/cuda/ answers",
)

GF738 = rule(
    "GF738", Severity.ERROR,
    title="No trusted key for a repository: {repository}",
    reason="Keys are checked by fingerprint before they are installed.",
    remedy="Set {variable} (key text) or its address together with the fingerprint.",
    source="NVIDIA/cuda-repo-management#4",
    cases=("BM-01",),
    wrong="""
        # openEuler 22.03
        gpu_driver_repo_url: https://mirror.example.com/own/
    """,
    right="""
        # openEuler 22.03
        gpu_driver_repo_url: https://mirror.example.com/own/
        gpu_driver_repo_key_url: https://mirror.example.com/own.pub
        gpu_driver_repo_key_fingerprints: [EB693B3035CD5710E231E123A4B469963BF863CC]
    """,
)

GF741 = rule(
    "GF741", Severity.WARNING,
    title="Source outside the mirror: {file}: {host}",
    reason="Only the hosts of the mirror profile may be asked.",
    remedy="Remove the source, or add the host to allowed_hosts of the profile.",
    source="NVIDIA/nvidia-docker#1328",
    cases=("BM-03",),
    wrong="""
        # /etc/apt/sources.list names developer.download.nvidia.com
        gpu_mirror_profile: own
        gpu_mirror_profiles: {own: {allowed_hosts: [mirror.example.com]}}
    """,
    right="""
        # /etc/apt/sources.list names mirror.example.com
        gpu_mirror_profile: own
        gpu_mirror_profiles: {own: {allowed_hosts: [mirror.example.com]}}
    """,
)

GF757 = rule(
    "GF757", Severity.ERROR,
    title="Unknown mirror profile: {profile}; known: {known}",
    reason="No address would come from the mirror.",
    remedy="Define it in gpu_mirror_profiles.",
    source="NVIDIA/nvidia-docker#1328",
    cases=("BM-03",),
    wrong="""
        gpu_mirror_profile: own
        gpu_mirror_profiles: {}
    """,
    right="""
        gpu_mirror_profile: own
        gpu_mirror_profiles: {own: {cuda_url: https://mirror.example.com/cuda}}
    """,
)

GF761 = rule(
    "GF761", Severity.ERROR,
    title="Same repository in a file with other sources: {file}: {url}",
    reason="apt refuses two keys for one address, and the file is not the roles' to remove.",
    remedy="Take the entry out of the file; gpu_driver and gpu_container_toolkit write their own.",
    source="NVIDIA/cuda-repo-management#4",
    cases=("BM-03",),
    wrong="site.list names the repository of the roles, with another key, beside sources of the site",
    right="site.list names sources of the site only",
)
