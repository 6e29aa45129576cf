"""The Pulumi program: read the stack's configuration once, plan, deploy what was planned."""

from gpufleet.deploy.program import run

run()
