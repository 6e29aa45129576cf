"""Rules of reading (GF0) and of keys and values (GF1)."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF001 = rule(
    "GF001", Severity.ERROR,
    title="The stack file is not valid YAML.",
    reason="The YAML reader cannot make sense of the text.",
    remedy="Correct the text at the line that the message names.",
    do="{hint}",
    source="YAML",
    wrong="""
        config:
          gpufleet:pools: [
    """,
    right="""
        config:
          gpufleet:cluster: {kind: aks, name: dev, location: eastus}
          gpufleet:pools:
            - name: t4
              vmSize: Standard_NC4as_T4_v3
          gpufleet:stack: {kind: plugin}
    """,
)

GF002 = rule(
    "GF002", Severity.ERROR,
    title="The stack file has no `config:` map.",
    reason="Pulumi stack files hold one YAML document with a `config:` map; gpufleet reads its `gpufleet:` keys.",
    remedy="Put the keys under `config:`, each with the prefix `gpufleet:`.",
    source="PULUMI-DOC (config)",
    wrong="""
        gpufleet:
          pools: []
    """,
    right="""
        config:
          gpufleet:cluster: {kind: aks, name: dev, location: eastus}
          gpufleet:pools:
            - name: t4
              vmSize: Standard_NC4as_T4_v3
          gpufleet:stack: {kind: plugin}
    """,
)

GF003 = rule(
    "GF003", Severity.ERROR,
    title="The key {value} belongs to no known namespace.",
    reason="Pulumi hands each namespace to its own provider; a mistyped prefix would be ignored silently.",
    remedy="Write the prefix `gpufleet:`.",
    source="PULUMI-DOC (config)",
    wrong="""
        config:
          gpufleet:cluster: {kind: aks, name: dev, location: eastus}
          gpufleeet:pools:
            - name: t4
              vmSize: Standard_NC4as_T4_v3
          gpufleet:stack: {kind: plugin}
    """,
    fix=("gpufleeet:pools:", "gpufleet:pools:"),
)

GF004 = rule(
    "GF004", Severity.ERROR,
    title="YAML readers differ on what {value} means.",
    reason="YAML 1.1 and 1.2 take this word for different types (boolean, octal or base-60 number, date).",
    remedy="Quote it if text is meant; write a plain decimal number, `true` or `false` otherwise.",
    source="YAML",
    needs=(),
    hides=True,
    wrong="""
        config:
          gpufleet:cluster: {kind: aks, name: dev, location: eastus}
          gpufleet:pools:
            - name: t4
              vmSize: Standard_NC4as_T4_v3
              count: 010
          gpufleet:stack: {kind: plugin}
    """,
    fix=("count: 010", "count: 10"),
)

GF005 = rule(
    "GF005", Severity.ERROR,
    title="The key {value} stands here twice.",
    reason="One of the two values would be lost silently.",
    remedy="Keep one.",
    source="YAML",
    wrong="""
        config:
          gpufleet:cluster: {kind: aks, name: dev, location: eastus}
          gpufleet:pools:
            - name: t4
              vmSize: Standard_NC4as_T4_v3
              count: 1
              count: 2
          gpufleet:stack: {kind: plugin}
    """,
    fix=("count: 1\n      ", ""),
)

GF006 = rule(
    "GF006", Severity.ERROR,
    title="This YAML construct cannot be used in a stack file.",
    reason="Tags, merge keys and aliases that contain themselves do not survive Pulumi's configuration.",
    because="Tags, merge keys and aliases that contain themselves do not survive Pulumi's configuration: {value}",
    remedy="Write the values out.",
    source="PULUMI-DOC (config)",
    needs=(),
    hides=True,
    wrong="""
        config:
          gpufleet:cluster: {kind: aks, name: dev, location: eastus}
          gpufleet:pools:
            - name: t4
              vmSize: Standard_NC4as_T4_v3
              labels: {owner: !env USER}
          gpufleet:stack: {kind: plugin}
    """,
    fix=("owner: !env USER", "owner: ml-platform"),
)

GF007 = rule(
    "GF007", Severity.ERROR,
    title="A credential stands in the stack file in clear.",
    reason="A stack file is reviewed and committed; a kubeconfig is a credential, and so is the login of a registry.",
    remedy="Remove it, and set it with `pulumi config set --secret gpufleet:kubeconfig < FILE` (a login: "
    "gpufleet:pullSecret). A kubeconfig may also stay a file: `kubeconfig: {{path: ...}}`.",
    source="PULUMI-DOC (secrets)",
    needs=(),
    hides=True,
    wrong="""
        config:
          gpufleet:cluster: {kind: existing, name: idc, kubeconfig: {secret: true}}
          gpufleet:pools: [{name: t4, gpu: T4, gpusPerNode: 1, hosts: {n1: {}}}]
          gpufleet:stack: {kind: plugin}
          gpufleet:kubeconfig: "apiVersion: v1 ..."
    """,
    fix=('"apiVersion: v1 ..."', "{secure: v1:abc}"),
)

GF008 = rule(
    "GF008", Severity.ERROR,
    title="A secret stands where gpufleet expects plain values.",
    reason="A secret inside a structured value makes the whole value secret, and nothing of it could be checked or "
    "shown.",
    remedy="Keep secrets in the keys that are made for them.",
    source="PULUMI-DOC (secrets)",
    needs=(),
    hides=True,
    wrong="""
        config:
          gpufleet:cluster: {kind: aks, name: dev, location: eastus}
          gpufleet:pools:
            - name: t4
              vmSize: Standard_NC4as_T4_v3
              count: {secure: v1:abc}
          gpufleet:stack: {kind: plugin}
    """,
    fix=("count: {secure: v1:abc}", "count: 1"),
)

_AKS = """
    config:
      gpufleet:cluster: {kind: aks, name: dev, location: eastus}
      gpufleet:pools:
        - name: t4
          vmSize: Standard_NC4as_T4_v3
"""

GF009 = rule(
    "GF009", Severity.ERROR,
    title="A second YAML document begins at line {line}.",
    reason="A stack file holds one document; Pulumi would read the first alone.",
    remedy="Keep one document in the file: remove the line `---`, or put the second into a file of its own.",
    source="PULUMI-DOC (config)",
    wrong=_AKS + """
      gpufleet:stack: {kind: plugin}
    ---
    config: {}
    """,
    right=_AKS + """
      gpufleet:stack: {kind: plugin}
    """,
)

GF010 = rule(
    "GF010", Severity.ERROR,
    title="The key {value} stands beside `config:` and not below it.",
    reason="Pulumi and gpufleet read what is below `config:`, so this key would be ignored silently.",
    remedy="Indent it, so that it stands below `config:`, with the prefix `gpufleet:`.",
    source="PULUMI-DOC (config)",
    wrong=_AKS + """
      gpufleet:stack: {kind: plugin}
    gpufleet:teams: [{name: x, namespace: x, pools: [t4]}]
    """,
    fix=("gpufleet:teams", "  gpufleet:teams"),
)

GF011 = rule(
    "GF011", Severity.NOTE,
    title="Nobody reads the key {value} beside `config:`.",
    reason="Pulumi reads config, environment and the keys of its secrets there, and gpufleet what is below config.",
    remedy="Remove it, unless it only holds an anchor that the file uses.",
    source="PULUMI-DOC (config)",
    wrong=_AKS + """
      gpufleet:stack: {kind: plugin}
    owner: vision
    """,
    right=_AKS + """
      gpufleet:stack: {kind: plugin}
    # owner: vision
    """,
)

GF101 = rule(
    "GF101", Severity.ERROR,
    title="Unknown key {key}.",
    reason="An unknown key would be ignored silently, and with it what it was meant to do.",
    remedy="Use one of the allowed keys, or remove it.",
    source="stacks/schema.json",
    wrong="gpufleet:stack: {kind: plugin, namspace: gpu}",
    right="gpufleet:stack: {kind: plugin, namespace: gpu}",
)

GF102 = rule(
    "GF102", Severity.ERROR,
    title="The key {key} is missing.",
    reason="The key has no default, so nobody but you can say its value.",
    remedy="Add it.",
    source="stacks/schema.json",
    wrong="""
        gpufleet:sharing: {half: {replicas: 2}}
        gpufleet:pools:
          - {name: t4, sharing: half}
    """,
    fix=("half: {", "half: {strategy: timeSlicing, "),
)

GF103 = rule(
    "GF103", Severity.ERROR,
    title="The value {value} is not one of those allowed here.",
    reason="Other values mean nothing at this key.",
    remedy="Use one of the allowed values.",
    source="stacks/schema.json",
    wrong="gpufleet:pools: [{name: t4, osSku: ubuntu2204}]",
    right="gpufleet:pools: [{name: t4, osSku: Ubuntu2204}]",
)

GF104 = rule(
    "GF104", Severity.ERROR,
    title="The value has the wrong type.",
    reason="Every key takes one type: a text, a whole number, true or false, a list, or a map.",
    remedy="Write the value in the type that the message names.",
    do="{hint}",
    source="stacks/schema.json",
    wrong="gpufleet:cluster: {version: 1.36}",
    right='gpufleet:cluster: {version: "1.36"}',
)

GF105 = rule(
    "GF105", Severity.ERROR,
    title="The value {value} is {wrong}.",
    reason="The key has a lowest or a highest value, a longest text, or may not be empty.",
    remedy="Choose a value that the key takes.",
    source="stacks/schema.json",
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 0}}
        gpufleet:pools:
          - {name: t4, sharing: half}
    """,
    fix=("replicas: 0", "replicas: 2"),
)

GF106 = rule(
    "GF106", Severity.ERROR,
    title="The value {value} does not have the form that is required here.",
    reason="Kubernetes, Azure or a tool behind this key takes text of a fixed form only.",
    remedy="Write the value in the form that the message names.",
    do="{hint}",
    source="stacks/schema.json; K8S-DOC (names); AKS-DOC (create-node-pools)",
    wrong="""
        gpufleet:pools:
          - {name: t4-training}
    """,
    fix=("name: t4-training", "name: t4train"),
)

GF107 = rule(
    "GF107", Severity.ERROR,
    title="{value} is not a taint.",
    reason="A taint is a key, an optional value and an effect: NoSchedule, PreferNoSchedule or NoExecute.",
    remedy="Write `key=value:Effect` or `key:Effect`.",
    source="K8S-DOC (taint-and-toleration)",
    wrong='gpufleet:pools: [{name: t4, taints: ["sku=gpu:NO_SCHEDULE"]}]',
    right='gpufleet:pools: [{name: t4, taints: ["sku=gpu:NoSchedule"]}]',
)

GF108 = rule(
    "GF108", Severity.ERROR,
    title="{value} is used twice.",
    reason="Pools, teams, hosts, namespaces, zones and taints are told apart by their names.",
    remedy="Give each its own.",
    source="stacks/schema.json; K8S-DOC (names)",
    needs=(),
    wrong="gpufleet:pools: [{name: t4}, {name: t4, vmSize: Standard_NC4as_T4_v3}]",
    right="gpufleet:pools: [{name: t4}, {name: t5, vmSize: Standard_NC4as_T4_v3}]",
)

GF109 = rule(
    "GF109", Severity.ERROR,
    title="There is no {what} called {value}.",
    reason="The name refers to something that this stack or the catalogue has to hold.",
    remedy="Use one of those allowed, or declare it where the stack file can.",
    do="{hint}",
    source="stacks/schema.json",
    needs=("value", "names"),
    wrong="""
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools: [{name: t4, sharing: halve}]
    """,
    fix=("sharing: halve", "sharing: half"),
)

GF110 = rule(
    "GF110", Severity.ERROR,
    title="Wrong combination of keys: {keys}.",
    reason="These keys contradict each other, or one of them needs another.",
    remedy="Change one of the keys; the message says which values go together.",
    do="{hint}",
    source="stacks/schema.json",
    needs=(),
    wrong="gpufleet:pools: [{name: t4, tags: {Cost: x, cost: z}}]",
    right="gpufleet:pools: [{name: t4, tags: {Cost: x, costs: z}}]",
)

GF111 = rule(
    "GF111", Severity.ERROR,
    title="The acknowledgement of {value} cannot be accepted.",
    reason="Errors have to be corrected, and notes need no answer; only warnings can be acknowledged.",
    remedy="Acknowledge warnings only, each with a reason that a reviewer can judge.",
    source="stacks/schema.json",
    wrong="gpufleet:acknowledge: {GF202: why}",
    right="""
        gpufleet:pools: [{name: t4, driver: none}]
        gpufleet:acknowledge: {GF205: why}
    """,
)

GF112 = rule(
    "GF112", Severity.NOTE,
    title="Nothing in this stack gives the warning {value}.",
    reason="The acknowledgement would silence the warning where somebody else brings it in later.",
    remedy="Remove it, unless the warning comes and goes.",
    source="stacks/schema.json",
    wrong="gpufleet:acknowledge: {GF205: why}",
    right="""
        gpufleet:pools: [{name: t4, driver: none}]
        gpufleet:acknowledge: {GF205: why}
    """,
)
