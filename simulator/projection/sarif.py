"""A gate's outcome in SARIF 2.1.0, the form in which code-review tools take findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulator.projection.expectation import Check

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_log(checks: Sequence[Check], result_file: str, version: str) -> dict[str, Any]:
    """One run; a failed expectation is an error at ``result_file``, one that holds a pass."""
    rules = [{"id": f"expectation-{n}", "shortDescription": {"text": check.expression}} for n, check in enumerate(checks, 1)]
    findings = [
        {
            "ruleId": f"expectation-{n}",
            "ruleIndex": n - 1,
            "kind": "pass" if check.passed else "fail",
            "level": "none" if check.passed else "error",
            "message": {"text": sentence(check)},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": result_file}}}],
        }
        for n, check in enumerate(checks, 1)
    ]
    driver = {"name": "kernelcast", "version": version, "rules": rules}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": findings}]}


def sentence(check: Check) -> str:
    """What was expected and what is."""
    values = ", ".join(f"{key} is {value}" for key, value in check.values.items())
    return f"{check.expression}: {'holds' if check.passed else 'does not hold'}" + (f" ({values})" if values else "")
