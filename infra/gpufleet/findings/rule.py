"""A rule: everything that is the same wherever it is broken. `Rule.at` makes the finding of one place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from gpufleet.findings.finding import Finding, Severity, closest_match, show

_UNSET = object()
_NAME = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Rule:
    """One rule.

    `title`, `because`, `remedy` and `do` are templates: `{value}`, `{path}` and the details of a finding are filled in.

    Attributes:
        code: `GF` and three digits.
        severity: what a finding of this rule stops.
        title: what is wrong, in one sentence.
        reason: why it is wrong, in general; complete without any detail.
        remedy: what to do.
        source: where this is known from: a public thread, a page of documentation, or a table of the catalogue.
        because: why it is wrong at this one place, where that says more than `reason`.
        do: what to do at this one place, where that says more than `remedy`.
        needs: words of the stack that have to be known; with a mistake in one of them the rule says nothing
            (`gpufleet.stackfile.consequences` lists the words). `value` is what stands at the place itself.
        hides: the value was not read at all, so no other rule says anything about it.
        cases: problems of users that the rule comes from, by their ids in docs/cases.md.
        wrong: a short example that breaks the rule. Keys of a stack file (what it leaves out is right), a whole stack
            file (GF0), facts of hosts beside their pools (`n1.json: ...`), or a text for `gpufleet lint`, whose first
            line may say with which options (`# gpufleet lint FILE --gpus 2xT4`); the stack file that
            `--stack-file Pulumi.lab.yaml` names stands before the text, up to the first `---`. For rules about a host
            (GF7) variables of the roles, or what is seen on the host.
        right: the same example as it should be.
    """

    code: str
    severity: Severity
    title: str
    reason: str
    remedy: str
    source: str
    because: str = ""
    do: str = ""
    needs: tuple[str, ...] = ("value",)
    hides: bool = False
    cases: tuple[str, ...] = ()
    wrong: str = ""
    right: str = ""

    def at(
        self,
        path: str,
        *,
        value: object = _UNSET,
        allowed: Iterable[str] = (),
        because: str | None = None,
        **details: object,
    ) -> Finding:
        """The finding of one place; `details` fill the placeholders of the texts.

        Args:
            path: the place in the input, `pools[1].sharing`.
            value: what stands there.
            allowed: what could stand there.
            because: why it is wrong at this place; shown instead of the general reason.

        Raises:
            KeyError: a placeholder without a detail (a bug of the caller).
        """
        options = tuple(str(word) for word in allowed)
        shown = None if value is _UNSET else show(value)
        fill = {"value": shown, "path": path, **{k: v if isinstance(v, str) else show(v) for k, v in details.items()}}
        if because is not None:
            fill["because"] = because
        template = self.because or ("{because}" if because is not None else "")
        return Finding(
            code=self.code,
            severity=self.severity,
            path=path,
            message=self.title.format(**fill),
            reason=template.format(**fill) if template else self.reason,
            remedy=(self.do or self.remedy).format(**fill),
            value=shown,
            allowed=options,
            closest=closest_match(value, options) if value not in (_UNSET, None) and options else None,
        )


def general(template: str) -> str:
    """A template as a text for documentation: `{value}` becomes `<value>`."""
    return _NAME.sub(r"<\1>", template).replace("{{", "{").replace("}}", "}")
