"""The versions of the peers, read from the files that pin them, so that no table can name a different one."""

import json
import re

from .tools import PEERS


def version(peer):
    directory = PEERS / peer
    for file, read in READERS.items():
        if (directory / file).exists():
            return read((directory / file).read_text(), peer)
    raise FileNotFoundError(f"nothing pins {peer}")


def from_package_json(text, peer):
    return json.loads(text)["dependencies"][peer]


def first(pattern):
    return lambda text, peer: re.search(pattern.replace("PEER", re.escape(peer)), text, re.MULTILINE)[1]


READERS = {
    "package.json": from_package_json,
    "requirements.txt": first(r"^PEER==(\S+)$"),
    "Cargo.toml": first(r'^PEER = .*"=([\d.]+)"'),
    # The peer's own module is the first one that its go.mod requires.
    "go.mod": first(r"^require \S+ v(\S+)"),
    "pom.xml": first(r"<artifactId>PEER</artifactId>\s*<version>([\d.]+)</version>"),
}
