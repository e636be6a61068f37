"""Puts the program `bough` among the scripts of a wheel, where the environment names one.

`cargo xtask package wheel` sets BOUGH_WHEEL_PROGRAM and BOUGH_WHEEL_PLATFORM. Without them the wheel is the client alone, for
every platform, and the client takes the `bough` on the PATH.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        program = os.environ.get("BOUGH_WHEEL_PROGRAM")
        if program and version == "standard":
            build_data["shared_scripts"][program] = Path(program).name
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{os.environ['BOUGH_WHEEL_PLATFORM']}"
