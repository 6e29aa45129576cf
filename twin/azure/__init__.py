"""Stand-in for the azure-native provider and for the service behind it.

The Pulumi engine starts `bin/pulumi-resource-azure-native` from PATH. It speaks the provider protocol with
the SDK's own stubs, keeps the state of its "subscription" in one JSON file, answers like the service does
where the service is known to refuse or to add something, and makes simulated nodes for every pool.

Environment:

====================  =======================================================================================
TWIN_KUBECONFIG       kubeconfig of the API server which stands for every AKS cluster; the answer of the
                      credentials calls, and where nodes are made. Without it: no nodes, credentials refused
TWIN_AZURE_STATE      JSON file with the subscription's resources (default: .twin/azure.json)
TWIN_AZURE_LOG        JSON lines, one per call that reaches the service; no kubeconfig, secrets as "[secret]"
TWIN_AZURE_CONTROL    JSON file of failures to inject, see `faults.py`
====================  =======================================================================================

| file | subject |
| --- | --- |
| provider.py | the provider protocol: Check, Diff, Create, Read, Update, Delete, Invoke |
| wire.py | protocol values to Python and back: secrets, unknowns |
| schema.py | which properties exist, read from the installed SDK |
| constraints.py | what the provider itself checks before a call |
| service.py | what the service does: defaults, refusals, cascades |
| clusters.py | the rules of clusters, versions and maintenance windows |
| pools.py | the rules of agent pools |
| store.py | the state file |
| faults.py | failures on demand |
| nodes.py | simulated nodes of a pool |
| sizes.yaml | VM sizes |
"""
