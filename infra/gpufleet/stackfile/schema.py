"""The JSON Schema of stack files, from the model: editors complete and check with it."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from gpufleet.stackfile.kinds import KINDS
from gpufleet.stackfile.model import stack_model
from gpufleet.stackfile.source import NAMESPACE, SECRET_SECTIONS


def stack_schema() -> dict[str, Any]:
    """Schema of a whole `Pulumi.<stack>.yaml`; other namespaces' keys are allowed, unknown `gpufleet:` keys are not."""
    tops = [stack_model(kind) for kind in KINDS]
    refs, shared = models_json_schema([(model, "validation") for model in tops], by_alias=True)
    definitions: dict[str, Any] = shared["$defs"]
    options = []
    for model in tops:
        name = refs[(model, "validation")]["$ref"].rpartition("/")[2]
        body = definitions.pop(name)
        options.append(
            {
                "title": model.__name__,
                "description": (model.__doc__ or "").strip(),
                "properties": {f"{NAMESPACE}:{key}": value for key, value in body["properties"].items()},
                "required": [f"{NAMESPACE}:{key}" for key in body["required"]],
            }
        )
    known = {key for option in options for key in option["properties"]} | {f"{NAMESPACE}:{s}" for s in SECRET_SECTIONS}
    words = "|".join(sorted(key.partition(":")[2] for key in known))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gpufleet stack file",
        "type": "object",
        "required": ["config"],
        "properties": {
            "config": {
                "type": "object",
                "propertyNames": {"pattern": f"^({NAMESPACE}:({words})|(?!{NAMESPACE}:).+)$"},
                "oneOf": options,
            }
        },
        "$defs": dict(sorted(definitions.items())),
    }
