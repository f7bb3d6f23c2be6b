"""A reader of as much of XML Schema as `junit-10.xsd` uses to say which children and attributes an element has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

_XS = "{http://www.w3.org/2001/XMLSchema}"


def complaints(document: ET.Element, schema: Path) -> Iterator[str]:
    """Where the document is not what the schema says: unknown elements, and unknown or missing attributes."""
    declared = {each.attrib["name"]: each for each in ET.parse(schema).getroot().findall(f"{_XS}element")}
    for element in document.iter():
        of = declared.get(element.tag)
        if of is None:
            yield f"<{element.tag}> is not declared"
            continue
        attributes = {each.attrib["name"]: each for each in of.iter(f"{_XS}attribute")}
        required = {name for name, each in attributes.items() if each.get("use") == "required"}
        children = {each.attrib["ref"] for each in of.iter(f"{_XS}element") if "ref" in each.attrib}
        yield from (f"<{element.tag} {name}=…> is not declared" for name in set(element.attrib) - set(attributes))
        yield from (f"<{element.tag}> needs {name}" for name in required - set(element.attrib))
        yield from (f"<{child.tag}> in <{element.tag}>" for child in element if child.tag not in children)
