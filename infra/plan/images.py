"""Container images that the stack pulls, for a mirror."""

from __future__ import annotations

from infra.catalog import component, components_of
from infra.config.model import Stack
from infra.config.software import Images, PluginRoute


def mirrored(image: str, images: Images) -> str:
    """The image under the stack's own registry, if it has one: the name after the last slash is kept."""
    return f"{images.registry}/{image.rpartition('/')[2]}" if images.registry else image


def stack_images(stack: Stack) -> tuple[str, ...]:
    """Full references, sorted. For the operator: those whose registry path the catalogue knows."""
    route = stack.stack
    if isinstance(route, PluginRoute):
        from infra.plan.plugin_objects import plugin_image

        return (plugin_image(route),)
    rows = [component("k8s-device-plugin"), *components_of("gpu-operator")]
    return tuple(sorted({mirrored(row.image, route.images) for row in rows if row.image}))
