"""The advertiser: plays kubelet, device plugin, feature discovery and the operator's labels for simulated nodes.

A simulated node says what GPUs it has in annotations: `twin.gpufleet.dev/gpus`, `twin.gpufleet.dev/gpu-model` and,
optionally, `twin.gpufleet.dev/driver` (a version, or "none" for a node without a driver) and `twin.gpufleet.dev/mig`
(a layout such as `0=1g.10gb,1g.10gb;1=`; the Azure stand-in gives `twin.gpufleet.dev/gpu-instance-profile` instead).
It offers GPUs only while a device plugin runs on it, NVIDIA's or HAMi's, and then as many as the configuration says
which that very pod mounted when it started. What the advertiser found is in `twin.gpufleet.dev/second-plugin`, where
two plugins run beside each other, and, as long as the operator's MIG manager runs, in `twin.gpufleet.dev/mig`.

| file | subject |
| --- | --- |
| plugin_config.py | the plugin's configuration file, as version 0.20.0 reads it |
| offer.py, products.yaml | from hardware and configuration to resources and labels |
| mig.py | MIG layouts, which fit a model, and the devices that the plugin sees |
| mig_manager.py | the operator's MIG manager: from a label to a layout |
| mps.py | when an MPS control daemon serves a plugin |
| hami.py | HAMi's plugin: what it reads and registers |
| pods.py | what a pod is, and which file its program reads |
| verdicts.py | whether a container serves and with what; the pod's status |
| registrations.py | several plugins on one node |
| discovery.py | labels of node feature discovery and of the operator |
| node.py | all of it for one node, as wanted changes |
| controller.py, informer.py, kube.py | watching and patching |
"""
