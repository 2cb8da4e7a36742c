"""Another time of day for one process."""

import pathlib
import struct
import subprocess

from .program import ROOT

SOURCE = pathlib.Path(__file__).with_name("clock.c")
LIBRARY = ROOT / "target/sdks/conformance/clock.so"


def build():
    """Needs a C compiler, as everything here that links does."""
    LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    fresh = LIBRARY.with_suffix(".new")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(fresh), str(SOURCE)], check=True)
    fresh.rename(LIBRARY)


class Clock:
    """Its processes see it move at once when it is set."""

    def __init__(self, directory, offset_s=0):
        self.file = open(pathlib.Path(directory) / "clock", "w+b", buffering=0)
        self.set(offset_s)
        self.env = {"LD_PRELOAD": str(LIBRARY), "CONFORMANCE_CLOCK": self.file.name}

    def set(self, offset_s):
        self.file.seek(0)
        self.file.write(struct.pack("=q", offset_s))
