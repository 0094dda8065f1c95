#!/usr/bin/env bash
# Generates the Swift code of both wires from their .proto files. With --check: fails when the checked-in code differs.
set -euo pipefail
cd "$(dirname "$0")/../.."
command -v protoc >/dev/null || { echo "protoc is missing: apt-get install protobuf-compiler" >&2; exit 69; }
[ -d .build/checkouts/swift-protobuf ] || swift package resolve
swift build --package-path .build/checkouts/swift-protobuf --scratch-path "$PWD/.build-protoc" \
    --product protoc-gen-swift
plugin="$PWD/.build-protoc/debug/protoc-gen-swift"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
generate() { # folder, file
    protoc --plugin=protoc-gen-swift="$plugin" --proto_path="Shared/$1" --swift_out="$out" \
        --swift_opt=Visibility=Package --swift_opt=UseAccessLevelOnImports=true "$2.proto"
    if [ "${check:-}" ]; then
        diff -u "Shared/$1/Generated/$2.pb.swift" "$out/$2.pb.swift"
    else
        mkdir -p "Shared/$1/Generated"
        mv "$out/$2.pb.swift" "Shared/$1/Generated/"
    fi
}
[ "${1:-}" = --check ] && check=yes
generate Messages/BusMessages bus_messages
generate Device/DeviceProtocol device_packet
