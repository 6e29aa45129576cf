"""What the plugins need beside Ansible. A collection cannot bring a Python package along."""

GPUFLEET = (
    "The collection gpufleet.hosts needs the Python package gpufleet in the Python that runs Ansible:"
    " pip install 'gpufleet[hosts]'. In a checkout, run `make setup` and use Ansible from .venv."
)
