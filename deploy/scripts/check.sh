#!/usr/bin/env bash
# The checks that need no build: formatting, shell scripts. Each failure names the repairing command.
set -euo pipefail
cd "$(dirname "$0")/../.."
failed=''
complain() { echo "check: $1" >&2; failed=yes; }

stray=$(git ls-files | cut -d/ -f1 | sort -u | grep -vxE \
    'Package.swift|README.md|LICENSE|docker-compose.yml|Services|Shared|Tests|deploy|\.[a-z-]+' || true)
[ -z "$stray" ] || complain "these do not belong at the top: $stray"

mapfile -t swift_files < <(git ls-files '*.swift' | grep -v '\.pb\.swift$')
swift format lint --strict --configuration .swift-format "${swift_files[@]}" ||
    complain "formatting: swift format --configuration .swift-format -i <files>"
if command -v shellcheck > /dev/null; then
    shellcheck -x deploy/{up,down,test,release,fuzz,known-bad} deploy/{apple,scripts,bench,faults}/*.sh \
        Tests/JavaTests/run.sh Tests/AppPackage/*.sh deploy/stand-ins/{*.sh,*/*.sh,swift/swift} \
        deploy/systemd/{postinst,prerm} .ci/run ||
        complain "shell scripts: see above"
fi
deploy/scripts/house-figures.py --check || complain "a type over 600 lines in all its files, or a column by position"
deploy/scripts/mutate.py --check || complain "Tests/KnownBad/Mutations: change the mutation with its source"
[ -z "$failed" ]
