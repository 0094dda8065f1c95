#!/usr/bin/env python3
"""The statements on known vulnerabilities of a release (VEX), OpenVEX 0.2.0.

vex.py VERSION SECONDS > vex.openvex.json      SECONDS: the time of the statements, since 1970

Debian's changelog of librabbitmq lists the vulnerabilities. 0.11.0-1+deb12u3 has the repairs of all of them.
"""

import datetime
import json
import sys
import uuid

LIBRARY = "pkg:deb/debian/librabbitmq4"
REPAIRED = "0.11.0-1+deb12u3"
# CVE-2023-35789 is of the commands amqp-publish and amqp-consume, which read a password from their arguments.
OF_COMMANDS = ["CVE-2023-35789"]
OF_LIBRARY = ["CVE-2026-44235", "CVE-2026-44236", "CVE-2026-59986", "CVE-2026-61547"]


def statements(version):
    service = f"mobile-sync-service@{version}"
    archive = f"pkg:generic/{service}?file_name=mobile-sync-service-{version}-linux"
    packages = [f"pkg:deb/{name}@{version}-1" for name in ("mobile-sync-service", "mobile-sync-service-tool")]
    image = f"pkg:oci/{service}"

    def statement(name, products, status, **more):
        found = [{"@id": product, "subcomponents": [{"@id": LIBRARY}]} for product in products]
        return {"vulnerability": {"name": name}, "products": found, "status": status, **more}

    for name in OF_COMMANDS:
        yield statement(
            name, [archive, *packages, image], "not_affected", justification="vulnerable_code_not_present",
            impact_statement="The vulnerability is in commands of rabbitmq-c, which no file of the release contains.")
    for name in OF_LIBRARY:
        yield statement(
            name, [archive], "not_affected", justification="component_not_present",
            impact_statement=f"The archive uses the system's librabbitmq4. Debian 12 has the repair in {REPAIRED}; "
            "deploy/up refuses an older one there.")
        yield statement(
            name, packages, "fixed", status_notes=f"The packages depend on librabbitmq4 {REPAIRED} or newer.")
        yield statement(name, [image], "fixed", status_notes=f"The image has librabbitmq4 {REPAIRED} or newer.")


def main():
    version, seconds = sys.argv[1], int(sys.argv[2])
    instant = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat().replace("+00:00", "Z")
    found = list(statements(version))
    identity = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([version, instant, found]))
    json.dump(
        {
            "@context": "https://openvex.dev/ns/v0.2.0", "@id": f"urn:uuid:{identity}",
            "author": "Mobile Sync Service", "timestamp": instant, "version": 1, "statements": found,
        },
        sys.stdout, indent=1)
    print()


main()
