"""Refusals of the service, with the code and message form of Azure Resource Manager."""

from __future__ import annotations


class ArmError(Exception):
    """One refusal: HTTP status, code, message and the property it is about."""

    def __init__(self, code: str, message: str, target: str = "", status: int = 400) -> None:
        self.code, self.message, self.target, self.status = code, message, target, status
        text = f'Status={status} Code="{code}" Message="{message}"'
        super().__init__(text + (f' Target="{target}"' if target else ""))


class FailedStateError(ArmError):
    """The operation failed after the resource came into being: it is there, in state Failed."""


def not_allowed(prop: str) -> ArmError:
    """A change of something that the service never changes (form as in pulumi/pulumi-azure-native#959)."""
    target = f"properties.{prop}"
    return ArmError("PropertyChangeNotAllowed", f"Changing property '{target}' is not allowed.", target)
