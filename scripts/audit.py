"""What is known against the locked packages: vulnerabilities (pip-audit), and releases that their makers took back.

    python scripts/audit.py

Each question is put to whoever answers it: PyPI's own service and osv.dev for vulnerabilities, the package index for
releases taken back. What nobody answered is said, and is no failure. Exit status 1 if something is known.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "lock.txt"
TOOL = ROOT / ".cache" / "audit"
PIP_AUDIT = "pip-audit==2.10.1"
# Vulnerability -> why it is none here. Each line is to be asked again with every renewal of the lock.
EXCUSED: dict[str, str] = {}


def main() -> int:
    """Ask both, print what was found."""
    known = [*vulnerable(), *taken_back()]
    for line in known:
        print(f"audit: {line}", file=sys.stderr)
    return 1 if known else 0


def vulnerable() -> list[str]:
    """Locked packages with a known vulnerability, by the first service that knows the packages."""
    if not (TOOL / "bin" / "pip-audit").exists():
        venv.create(TOOL, with_pip=True)
        subprocess.run(
            [TOOL / "bin" / "python", "-m", "pip", "install", "-q", PIP_AUDIT], check=True, capture_output=True
        )
    for service in ("pypi", "osv"):
        packages = ask(service)
        asked = [one for one in packages if "skip_reason" not in one]
        if not asked:
            continue
        print(f"audit: {service} was asked about {len(asked)} of {len(packages)} packages")
        return [
            f"{one['name']} {one['version']}: {found['id']}, gone in {', '.join(found['fix_versions']) or 'no release'}"
            for one in asked
            for found in one["vulns"]
            if not {found["id"], *found["aliases"]} & set(EXCUSED)
        ]
    print("audit: NOT LOOKED UP: known vulnerabilities; neither pypi.org's service nor osv.dev answers from here")
    return []


def ask(service: str) -> list[dict]:
    """What one service says about each package; nothing if it cannot be reached."""
    options = ["--no-deps", "--disable-pip", "--timeout", "10", "--progress-spinner", "off", "--format", "json"]
    command = [TOOL / "bin" / "pip-audit", "--requirement", LOCK, "--vulnerability-service", service, *options]
    answer = subprocess.run(command, capture_output=True, text=True)
    try:
        return json.loads(answer.stdout)["dependencies"]
    except ValueError:
        return []


def taken_back() -> list[str]:
    """Locked releases that the index marks as yanked, with the reason; pip says it when it would install one."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed", "-r", LOCK]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode != 0:
        print(f"audit: NOT LOOKED UP: releases taken back; pip says {answer.stderr.strip().splitlines()[-1:]}")
        return []
    print("audit: the package index was asked for releases taken back")
    found = re.findall(
        r"yanked version: '(\S+)' candidate \(version (\S+).*?\n\s*(Reason for being yanked: .*)", answer.stderr
    )
    return [f"{name} {version}: taken back. {reason}" for name, version, reason in found]


if __name__ == "__main__":
    sys.exit(main())
