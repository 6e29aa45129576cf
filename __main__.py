"""The Pulumi program: read the stack's configuration once, plan, deploy what was planned."""

from infra.deploy.program import run

run()
