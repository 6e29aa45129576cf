"""The Pulumi project around stack files: its folder, and where Pulumi keeps the file of a stack."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PROJECT_FILES = ("Pulumi.yaml", "Pulumi.yml", "Pulumi.json")


@dataclass(frozen=True)
class Project:
    """`stacks` holds the files `Pulumi.<stack>.yaml`; they end as the project file does."""

    root: Path
    stacks: Path
    suffix: str = ".yaml"
    #: whether there is a project file at all
    found: bool = True

    def stack_file(self, stack: str) -> Path:
        """Where Pulumi reads and writes the configuration of a stack."""
        return self.stacks / f"Pulumi.{stack}{self.suffix}"

    def find(self, stack: str) -> Path:
        """The file of a stack.

        Raises:
            LookupError: there is no such stack; the message says which there are.
        """
        path = self.stack_file(stack)
        if not path.is_file() and not self.found:
            raise LookupError(
                f"no Pulumi.yaml in {self.root} or above it, so there is no stack {stack};"
                " go to the project's folder, or name the stack file with -f"
            )
        if not path.is_file():
            known = sorted(map(stack_name, self.stacks.glob(f"Pulumi.*{self.suffix}")))
            near = difflib.get_close_matches(stack, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            where = self._folder()
            raise LookupError(f"no stack {stack} in {where} (there are: {', '.join(known) or 'none'}){hint}")
        return path

    def shown(self, path: Path) -> str:
        """A path as messages show it: from the project's folder where it is inside."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def _folder(self) -> str:
        shown = self.shown(self.stacks)
        return "the project's folder" if shown == "." else f"{shown}/"


def project(start: Path | None = None) -> Project:
    """The project of the nearest folder upwards that holds a project file; without one, the folder itself."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        for name in _PROJECT_FILES:
            if (folder / name).is_file():
                return Project(folder, _stacks(folder / name), Path(name).suffix)
    return Project(here, here, found=False)


def _stacks(file: Path) -> Path:
    """`stackConfigDir` of the project file, or its older name `config`; without them, beside the project file."""
    try:
        content = yaml.load(file.read_text(encoding="utf-8"), Loader=_LOADER)
    except (OSError, ValueError, yaml.YAMLError):  # Pulumi itself will say what is wrong with it
        return file.parent
    named = [content.get(key) for key in ("stackConfigDir", "config")] if isinstance(content, dict) else []
    folder = next((value for value in named if isinstance(value, str)), "")
    return file.parent / folder


def stack_name(path: Path) -> str:
    """`Pulumi.aks-dev.yaml` -> `aks-dev`; any other file gives its stem."""
    return path.stem.removeprefix("Pulumi.") if path.suffix in (".yaml", ".yml", ".json") else path.name
