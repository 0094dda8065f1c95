#!/usr/bin/env python3
"""The list of parts (SBOM) of a build, CycloneDX 1.6: the Swift packages that it links, with their versions.

sbom.py VERSION < `swift package show-dependencies --format json` > sbom.cdx.json

What comes from Debian stands in the image's own package database, which scanners read.
"""

import json
import sys


def packages(node, found):
    """Every package below, by its name; a package is there once."""
    for child in node["dependencies"]:
        found[child["identity"]] = child
        packages(child, found)
    return found


def reference(package):
    place = package["url"].removeprefix("https://").removesuffix(".git")
    return f"pkg:swift/{place}@{package['version']}"


def main():
    version = sys.argv[1]
    root = json.load(sys.stdin)
    found = packages(root, {})
    components = [
        {
            "type": "library", "bom-ref": reference(package), "name": package["name"], "version": package["version"],
            "purl": reference(package), "externalReferences": [{"type": "vcs", "url": package["url"]}],
        }
        for _, package in sorted(found.items())
    ]
    dependencies = [
        {"ref": ref, "dependsOn": sorted({reference(found[child["identity"]]) for child in node["dependencies"]})}
        for ref, node in [("mobile-sync-service", root)] + [(reference(one), one) for _, one in sorted(found.items())]
    ]
    json.dump(
        {
            "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
            "metadata": {
                "component": {
                    "type": "application", "bom-ref": "mobile-sync-service", "name": "mobile-sync-service",
                    "version": version, "licenses": [{"license": {"id": "Apache-2.0"}}],
                }
            },
            "components": components, "dependencies": dependencies,
        },
        sys.stdout, indent=1)
    print()


main()
