"""Rules that need a look at the running cluster."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF450 = rule(
    "GF450", Severity.ERROR,
    title="The node {node} is in use and would change from {now} to {planned}.",
    reason="Running pods hold devices of the node, and these would change under them.",
    because="Running pods hold devices of the node, and these would change under them: {pods}.",
    remedy="Drain the node first (kubectl drain {node} --ignore-daemonsets), or give new nodes a pool of their own.",
    source="PLUGIN; NVIDIA/mig-parted",
    wrong="""
        # Pods on the nodes of this pool hold whole GPUs, and the pool is to share them from now on.
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools:
          - {name: t4, hosts: {n1: {}}, gpu: T4, sharing: half}
    """,
    right="""
        # The pool stays as it is; new nodes get a pool of their own.
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools:
          - {name: t4, hosts: {n1: {}}, gpu: T4}
          - {name: shared, hosts: {n2: {}}, gpu: T4, sharing: half}
    """,
)

GF451 = rule(
    "GF451", Severity.ERROR,
    title="The namespace {value} exists and does not belong to this stack.",
    reason="A namespace has one owner; removed from the stack later, it would be deleted with everything in it.",
    remedy="Choose another name, or list it in cluster.existingNamespaces: it is used then, and never deleted.",
    source="K8S-DOC (namespaces)",
    wrong="""
        # The cluster has a namespace prod already.
        gpufleet:cluster: {kind: existing}
        gpufleet:teams:
          - {name: vision, namespace: prod, pools: [t4]}
    """,
    fix=("namespace: prod", "namespace: vision"),
)

GF452 = rule(
    "GF452", Severity.ERROR,
    title="The cluster still runs the other route ({now}).",
    reason="Both routes would register the same devices, and both bring the runtime class nvidia.",
    remedy="Drain the GPU nodes, run `pulumi destroy`, then `pulumi up` with the new route.",
    source="NVIDIA/k8s-device-plugin#990",
    wrong="""
        # The cluster still runs the plugin route.
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator}
    """,
    fix=("kind: operator", "kind: plugin"),
)

GF467 = rule(
    "GF467", Severity.WARNING,
    title="The Secret {value} is not in the namespace {namespace}, and nothing here makes it.",
    reason="Pods that pull with it wait until it is there; a release is taken back when they wait too long.",
    remedy="Make it before (kubectl create secret docker-registry), or let the stack make it: images: "
    "{{makePullSecret: true}} with the secret gpufleet:pullSecret.",
    source="K8S-DOC (pull-image-private-registry); HELM-DOC (helm_upgrade)",
    wrong="""
        # The cluster has no such Secret.
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: plugin, images: {pullSecrets: [login]}}
    """,
    right="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: plugin, images: {pullSecrets: [login], makePullSecret: true}}
        gpufleet:pullSecret: {secure: v1:abc}
    """,
)

GF490 = rule(
    "GF490", Severity.WARNING,
    title="Pods hold more than nodes of pool {pool} will offer.",
    reason="The kubelet keeps pods that run when a node offers less or under another name: they go on sharing its GPUs"
           " with those that come.",
    because="They keep their share until they end, and share the GPUs with those that come: {pods}.",
    remedy="Let them end or delete them, or keep the old number of replicas and the old name until they have ended.",
    source="K8S-DOC (device plugins); MEASURED",
    wrong="""
        # Nine pods on n1 hold one nvidia.com/gpu each; it was shared by ten.
        gpufleet:cluster: {kind: existing}
        gpufleet:sharing: {few: {strategy: timeSlicing, replicas: 4}}
        gpufleet:pools:
          - {name: t4, hosts: {n1: {}}, gpu: T4, gpusPerNode: 1, sharing: few}
    """,
    fix=("replicas: 4", "replicas: 10"),
)

GF491 = rule(
    "GF491", Severity.ERROR,
    title="The login program of the kubeconfig is missing: {value}.",
    reason="The kubeconfig gets its credentials from a program that is not on this machine; nothing can speak to the"
           " cluster without them.",
    because="{why}: nothing can speak to the cluster without it.",
    remedy="Install the program, or use a kubeconfig with a token or a certificate.",
    do="{do}.",
    source="K8S-DOC (client-go credential plugins)",
    wrong="""
        # The user in that file calls kubelogin, and this machine has none.
        gpufleet:cluster: {kind: existing, kubeconfig: {path: k.conf}}
    """,
    right="""
        # The user in this file has a token of a service account.
        gpufleet:cluster: {kind: existing, kubeconfig: {path: token.conf}}
    """,
)

GF492 = rule(
    "GF492", Severity.ERROR,
    title="The login program of the kubeconfig does not answer: {value}.",
    reason="It waits for a person, or for something that does not come. Pulumi's provider would wait for it as well.",
    because="{why}.",
    remedy="Log in by hand before, or use a login that asks nobody: a token, a certificate, or a workload's identity.",
    do="{do}.",
    source="K8S-DOC (client-go credential plugins); KUBELOGIN (get-token)",
    wrong="""
        # The user in that file calls `kubelogin get-token --login devicecode`, and nobody is there.
        gpufleet:cluster: {kind: existing, kubeconfig: {path: code.conf}}
    """,
    right="""
        # The user in this file has a token of a service account.
        gpufleet:cluster: {kind: existing, kubeconfig: {path: token.conf}}
    """,
)

GF493 = rule(
    "GF493", Severity.ERROR,
    title="The login program of the kubeconfig gives no credentials: {value}.",
    reason="It ended with an error, or printed no token and no certificate; nothing can speak to the cluster without"
           " them.",
    because="{why}.",
    remedy="Run it by hand and read its message.",
    do="{do}.",
    source="K8S-DOC (client-go credential plugins)",
    wrong="""
        # The login program of that file ends with an error.
        gpufleet:cluster: {kind: existing, kubeconfig: {path: fails.conf}}
    """,
    right="""
        # The user in this file has a token of a service account.
        gpufleet:cluster: {kind: existing, kubeconfig: {path: token.conf}}
    """,
)

GF481 = rule(
    "GF481", Severity.ERROR,
    title="The cluster is one of AKS, and the stack file says {value}.",
    reason="Nodes of AKS have another runtime class, and AKS owns containerd's file: what is set up for another "
    "distribution stops containerd there.",
    because="The node {node} carries the label kubernetes.azure.com/cluster, which AKS sets. What is set up for "
    "{value} stops containerd there.",
    remedy="Write `distribution: aks` in the section cluster.",
    source="NVIDIA/aicr#1680; AKS-DOC (use-labels); distributions",
    wrong="""
        # The nodes of the cluster carry the label kubernetes.azure.com/cluster.
        gpufleet:cluster: {kind: existing, distribution: kubeadm}
        gpufleet:pools: [{name: t4, gpu: T4, nodeSelector: {agentpool: t4}}]
    """,
    fix=("distribution: kubeadm", "distribution: aks"),
)

GF460 = rule(
    "GF460", Severity.ERROR,
    title="The cluster has a RuntimeClass {value}, and its handler is {handler}.",
    reason="Pods get a GPU through the runtime that the handler names in containerd, and a handler cannot be changed.",
    because="Pods get a GPU through the runtime that the handler names in containerd; the stack expects {value} there,"
    " and a handler cannot be changed.",
    remedy="If nothing needs it, delete it (kubectl delete runtimeclass {value}). If {handler} is NVIDIA's runtime on"
    " these nodes, the plugin route can use it: cluster.runtimeClass: {{existing: true}}.",
    source="K8S-DOC (runtime-class)",
    wrong="""
        # The cluster has a RuntimeClass nvidia whose handler is runc.
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: plugin}
    """,
    right="""
        # The same, where the handler is known to be right.
        gpufleet:cluster: {kind: existing, runtimeClass: {existing: true}}
        gpufleet:stack: {kind: plugin}
    """,
)

GF461 = rule(
    "GF461", Severity.ERROR,
    title="The RuntimeClass {value} is not there.",
    reason="The distribution brings it, or the stack file says so. Without it, pods that name it are refused.",
    remedy="Look why it is gone (kubectl get runtimeclass), or let the stack make it:"
    " cluster.runtimeClass: {{existing: false}}.",
    source="K8S-DOC (runtime-class); k3s-io/k3s (manifests/runtimes.yaml)",
    wrong="""
        # The cluster has no RuntimeClass nvidia.
        gpufleet:cluster: {kind: existing, runtimeClass: {existing: true}}
        gpufleet:stack: {kind: plugin}
    """,
    fix=("existing: true", "existing: false"),
)

GF462 = rule(
    "GF462", Severity.ERROR,
    title="The namespace {value} is not there.",
    reason="The stack file says that it exists, so the stack does not make it.",
    remedy="Make it first (kubectl create namespace {value}), or take it off the list: the stack makes it then.",
    source="K8S-DOC (namespaces)",
    wrong="""
        # The cluster has no namespace vision.
        gpufleet:cluster: {kind: existing, existingNamespaces: [vision]}
        gpufleet:teams:
          - {name: vision, namespace: vision, pools: [t4]}
    """,
    fix=("existingNamespaces: [vision]", "existingNamespaces: []"),
)

GF463 = rule(
    "GF463", Severity.ERROR,
    title="The namespace {value} was made by a stack of gpufleet.",
    reason="As an existing one it would leave the stack, and be deleted with everything in it.",
    remedy="Take it off cluster.existingNamespaces.",
    source="PULUMI-DOC (resources)",
    wrong="""
        # The stack made the namespace prod in an earlier `up`.
        gpufleet:cluster: {kind: existing, existingNamespaces: [prod]}
        gpufleet:teams:
          - {name: vision, namespace: prod, pools: [t4]}
    """,
    fix=("existingNamespaces: [prod]", "existingNamespaces: []"),
)

GF464 = rule(
    "GF464", Severity.ERROR,
    title="The GPU Operator is installed already: ClusterPolicy {value}, {release}.",
    reason="One cluster takes one operator, and Helm refuses objects of another release.",
    remedy="Uninstall it first. Drain the GPU nodes before, since their driver may go with it.",
    source="HELM-DOC (install); GPUO",
    wrong="""
        # Somebody has installed the operator, as release gpu in the namespace nvidia.
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator}
    """,
    right="""
        # The operator was uninstalled.
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: plugin}
    """,
)

GF465 = rule(
    "GF465", Severity.WARNING,
    title="Node Feature Discovery runs already ({value}), and the operator's release brings its own.",
    reason="Two of them write the same labels of nodes.",
    remedy="Say in the stack file that it is there (stack.nfd), or uninstall the other one.",
    source="GPUO",
    wrong="""
        # The DaemonSet nfd/nfd-worker runs, and no release of the operator brought it.
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator}
    """,
    right="""
        # The plugin route needs none.
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: plugin}
    """,
)

GF466 = rule(
    "GF466", Severity.ERROR,
    title="The namespace {value} has a {kind} {name} of somebody else.",
    reason="The stack gives a team this object, and does not take over one that exists.",
    remedy="Rename or delete it, or choose another namespace for the team.",
    source="K8S-DOC (namespaces)",
    wrong="""
        # There is a ResourceQuota gpus in the namespace prod.
        gpufleet:cluster: {kind: existing, existingNamespaces: [prod]}
        gpufleet:teams:
          - {name: vision, namespace: prod, pools: [t4], quota: {gpu: 1}}
    """,
    fix=(", quota: {gpu: 1}", ""),
)
