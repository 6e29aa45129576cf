"""The advertiser: plays kubelet, device plugin, feature discovery and the operator's labels for simulated nodes.

A simulated node says what GPUs it has in annotations: `twin.gpufleet/gpus`, `twin.gpufleet/gpu-model` and, optionally,
`twin.gpufleet/driver` (a version, or "none" for a node without a driver) and `twin.gpufleet/mig` (a layout such as
`0=1g.10gb,1g.10gb;1=`; the Azure stand-in gives `twin.gpufleet/gpu-instance-profile` instead). It offers GPUs only
while a device plugin runs on it, and then as many as the configuration says which that very pod mounted when it
started.

| file | subject |
| --- | --- |
| plugin_config.py | the plugin's configuration file, as version 0.20.0 reads it |
| offer.py, products.yaml | from hardware and configuration to resources and labels |
| mig.py | MIG layouts and the devices that the plugin sees |
| pods.py | what a pod is, and which file its plugin reads |
| discovery.py | labels of node feature discovery and of the operator |
| node.py | all of it for one node, as wanted changes |
| controller.py, informer.py, kube.py | watching and patching |
"""
