"""Claims of devices (DRA): names that must agree, forms of the API's versions, parameters of NVIDIA's driver."""

import pytest

from tests.unit.lint.conftest import OnStack
from tests.unit.lint.told import codes, d, one, told

TEMPLATE = d("""
    apiVersion: resource.k8s.io/v1
    kind: ResourceClaimTemplate
    metadata: {name: half-gpu, namespace: lab}
    spec: {spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
""")
POD = d("""
    apiVersion: v1
    kind: Pod
    metadata: {name: api, namespace: lab}
    spec:
      resourceClaims: [{name: g, resourceClaimTemplateName: half-gpu}]
      containers: [{name: c, image: "example/app:1", resources: {claims: [{name: g}]}}]
""")
CONFIG = d("""
    apiVersion: resource.k8s.io/v1
    kind: ResourceClaimTemplate
    metadata: {name: half-gpu, namespace: lab}
    spec:
      spec:
        devices:
          requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com}}]
          config:
          - requests: [g]
            opaque: {driver: gpu.nvidia.com, parameters: PARAMETERS}
""")
HEAD = "apiVersion: resource.nvidia.com/v1beta1, kind: "


def config(parameters: str, device_class: str = "gpu.nvidia.com") -> str:
    text = CONFIG.replace("deviceClassName: gpu.nvidia.com", f"deviceClassName: {device_class}")
    return text.replace("PARAMETERS", "{" + HEAD + parameters + "}")


def test_names_that_do_not_agree_rp_24() -> None:
    pod = POD.replace("half-gpu", "half-gpuu").replace("claims: [{name: g}]", "claims: [{name: gg}]")
    found = {x.code: x for x in told(TEMPLATE, pod)}
    assert {code: (x.value, x.closest) for code, x in found.items()} == {
        "GF665": ("half-gpuu", "half-gpu"),
        "GF662": ("gg", "g"),
    }
    assert found["GF665"].path == "spec.resourceClaims[0].resourceClaimTemplateName"
    assert codes(TEMPLATE, POD) == []


def test_objects_that_are_not_given_may_be_there() -> None:
    assert codes(TEMPLATE, POD.replace("half-gpu", "whole-card")) == []
    assert codes(TEMPLATE.replace("half-gpu", "gpu-claim-1"), POD.replace("half-gpu", "gpu-claim-2")) == []
    assert codes(POD) == []


def test_namespaces() -> None:
    found = one("GF665", TEMPLATE, POD.replace("namespace: lab", "namespace: prod"))
    assert found.reason == "It is in the namespace lab, the pod in prod."
    assert codes(TEMPLATE, POD.replace(", namespace: lab", "")) == []  # -n says it later


def test_a_claim_is_no_template() -> None:
    claim = TEMPLATE.replace("ClaimTemplate", "Claim").replace("{spec: {devices", "{devices").replace("}}]}}}", "}}]}}")
    assert codes(claim, POD.replace("resourceClaimTemplateName", "resourceClaimName")) == []
    assert codes(claim, POD.replace("resourceClaimTemplateName: half-gpu", "resourceClaimName: half-gpo")) == ["GF665"]


def test_a_compute_domain_makes_its_template() -> None:
    domain = "apiVersion: resource.nvidia.com/v1beta1\nkind: ComputeDomain\nmetadata: {name: d, namespace: lab}\n"
    domain += "spec: {numNodes: 0, channel: {resourceClaimTemplate: {name: channel-0}}}\n"
    pod = POD.replace("half-gpu", "channel-0")
    assert codes(domain, pod) == []
    assert one("GF665", domain, pod.replace("channel-0", "chanel-0")).closest == "channel-0"


def test_requests_that_containers_name() -> None:
    pod = POD.replace("[{name: g}]", "[{name: g, request: gpu}]")
    assert one("GF663", TEMPLATE, pod).allowed == ("g",)
    assert codes(TEMPLATE, pod.replace("request: gpu", "request: g")) == []
    several = TEMPLATE.replace(
        "exactly: {deviceClassName: gpu.nvidia.com}",
        "firstAvailable: [{name: big, deviceClassName: gpu.nvidia.com}, {name: cut, deviceClassName: mig.nvidia.com}]",
    )
    assert codes(several, pod.replace("request: gpu", "request: g")) == []
    assert codes(several, pod.replace("request: gpu", "request: big")) == ["GF663"]


def test_a_claim_that_no_container_uses() -> None:
    pod = POD.replace(", resources: {claims: [{name: g}]}", "")
    assert codes(TEMPLATE, pod) == ["GF664"]
    assert codes(TEMPLATE.replace("gpu.nvidia.com", "dra.net"), pod) == []  # networks are given to the whole pod


@pytest.mark.parametrize(
    ("version", "asked", "code"),
    [
        ("v1", "deviceClassName: gpu.nvidia.com", "GF658"),
        ("v1beta2", "deviceClassName: gpu.nvidia.com", "GF658"),
        ("v1beta1", "exactly: {deviceClassName: gpu.nvidia.com}", "GF658"),
        ("v1beta2", "exactly: {deviceClassName: gpu.nvidia.com}", None),
        ("v1beta1", "deviceClassName: gpu.nvidia.com", None),
        ("v1alpha2", "resourceClassName: gpu.nvidia.com", "GF657"),
    ],
)
def test_forms_of_the_versions(version: str, asked: str, code: str | None) -> None:
    text = TEMPLATE.replace("k8s.io/v1", f"k8s.io/{version}")
    text = text.replace("exactly: {deviceClassName: gpu.nvidia.com}", asked)
    assert codes(text) == ([code] if code else [])


def test_classes() -> None:
    assert one("GF659", TEMPLATE.replace("gpu.nvidia.com", "gpus.nvidia.com")).closest == "gpu.nvidia.com"
    assert codes(TEMPLATE.replace("gpu.nvidia.com", "gpu.example.com")) == []
    assert codes(TEMPLATE.replace("gpu.nvidia.com", "mig-1g-12gb.gpu.nvidia.com")) == []
    own = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpus.nvidia.com}\nspec: {}\n"
    assert codes(TEMPLATE.replace("gpu.nvidia.com", "gpus.nvidia.com"), own) == []


def test_requests_that_parameters_and_constraints_name() -> None:
    assert one("GF660", config("GpuConfig").replace("requests: [g]", "requests: [gpu]")).allowed == ("g",)
    text = TEMPLATE.replace("}}]}}}", '}}], constraints: [{requests: [x], matchAttribute: "a/b"}]}}}')
    assert codes(text) == ["GF660"]
    assert codes(text.replace("[x]", "[]")) == []


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ("GpuConfg", "no kind GpuConfg"),
        ("ComputeDomainChannelConfig", "no kind ComputeDomainChannelConfig"),
        ("GpuConfig, sharings: {}", "no key sharings"),
        ("GpuConfig, sharing: {strategy: timeslicing}", "strategy takes TimeSlicing, MPS"),
        ("GpuConfig, sharing: {timeSlicingConfig: {}}", "strategy is missing"),
        ("GpuConfig, sharing: {strategy: TimeSlicing, timeSlicingConfig: {interval: 4ms}}", "interval takes Default"),
        ("GpuConfig, sharing: {strategy: TimeSlicing, mpsConfig: {}}", "mpsConfig does not go with"),
        ("GpuConfig, sharing: {strategy: MPS, timeSlicingConfig: {}}", "timeSlicingConfig does not go with"),
        ("GpuConfig, sharing: {strategy: MPS, mpsConfig: {defaultActiveThreadPercentage: 150}}", "0 to 100"),
        ("GpuConfig, sharing: {strategy: MPS, mpsConfig: {replicas: 4}}", "no key replicas"),
        ("MigDeviceConfig", "cannot be given to a device of the class gpu.nvidia.com"),
    ],
)
def test_parameters_that_the_driver_refuses(parameters: str, says: str) -> None:
    assert says in one("GF667", config(parameters)).message


def test_parameters_that_the_driver_takes() -> None:
    assert codes(config("GpuConfig")) == []
    assert codes(config("MigDeviceConfig", "mig.nvidia.com")) == []
    both = "MigDeviceConfig, sharing: {strategy: TimeSlicing, mpsConfig: {}}"
    assert codes(config(both, "mig.nvidia.com")) == ["GF668"]  # the driver looks at one of the two
    assert codes(config("VfioDeviceConfig, iommu: {backendPolicy: LegacyOnly}", "vfio.gpu.nvidia.com")) == []
    assert codes(config("Anything").replace("driver: gpu.nvidia.com", "driver: gpu.example.com")) == []
    old = config("GpuConfig").replace("resource.nvidia.com/v1beta1", "gpu.nvidia.com/v1alpha1")
    assert one("GF667", old).closest == "resource.nvidia.com/v1beta1"


def test_gates() -> None:
    shared = "GpuConfig, sharing: {strategy: MPS, mpsConfig: {defaultPinnedDeviceMemoryLimit: 10Gi}}"
    assert "MPSSupport" in one("GF668", config(shared)).message
    operator = "draDriver: {featureGates: {MPSSupport: true}}\nmigManager: {}\ntoolkit: {}\n"
    assert "GF668" not in codes(config(shared), operator)
    assert "GF668" in codes(config(shared), operator.replace("true", "false"))


def test_a_template_shares_nothing_between_pods() -> None:
    shared = config("GpuConfig, sharing: {strategy: TimeSlicing}")
    deployment = d("""
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: api, namespace: lab}
        spec:
          replicas: 4
          template:
            spec:
              resourceClaims: [{name: g, resourceClaimTemplateName: half-gpu}]
              containers: [{name: c, image: "example/app:1", resources: {claims: [{name: g}]}}]
    """)
    assert "Each of the 4 pods" in one("GF666", shared, deployment).message
    assert "GF666" not in codes(shared, deployment.replace("replicas: 4", "replicas: 1"))
    assert "GF666" not in codes(TEMPLATE, deployment)
    two = deployment.replace(
        "claims: [{name: g}]}}]", "claims: [{name: g}]}}, {name: e, resources: {claims: [{name: g}]}}]"
    )
    assert "GF666" not in codes(shared, two)


def test_a_stack_without_dra_rp_24(on_stack: OnStack) -> None:
    assert [(x["code"], x["value"]) for x in on_stack(TEMPLATE)] == [("GF661", "gpu.nvidia.com")]
    assert codes(TEMPLATE) == []
    assert on_stack(TEMPLATE.replace("gpu.nvidia.com", "dra.net")) == []
    driver = POD.replace("example/app:1", "nvcr.io/nvidia/dra-driver-nvidia-gpu:v0.5.0")
    assert "GF661" not in [x["code"] for x in on_stack(TEMPLATE + "---\n" + driver)]


def test_pods_inside_other_objects() -> None:
    jobset = d("""
        apiVersion: jobset.x-k8s.io/v1alpha2
        kind: JobSet
        metadata: {name: j}
        spec:
          replicatedJobs:
          - name: w
            template:
              spec:
                template:
                  spec:
                    resourceClaims: [{name: g, resourceClaimTemplateName: half-gpuu}]
                    containers: [{name: c, resources: {claims: [{name: gg}]}}]
    """)
    assert codes(TEMPLATE, jobset) == ["GF662", "GF665"]
