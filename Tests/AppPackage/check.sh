#!/usr/bin/env bash
# Checks what an app needs that uses the client modules. Needs a debug build of the project, and no network when the
# project's packages are in SwiftPM's cache.
#   1. An app that depends on MobileSync resolves the packages of client-packages.txt and no others: none of a server.
#      Each of them supports the systems of the project's manifest.
#   2. The client modules use nothing newer than these systems (newer_apis.py says what it cannot check).
#   3. Objective-C sees the compatibility API (objective-c.sh says what it cannot check).
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "Tests/AppPackage/check.sh: $1" >&2
    exit 1
}

mkdir -p "$work/app/Sources/App"
echo 'import MobileSync' > "$work/app/Sources/App/App.swift"
cat > "$work/app/Package.swift" << END
// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "app", platforms: [.iOS(.v16), .macOS(.v13)],
    dependencies: [.package(path: "$PWD", traits: [])],
    targets: [
        .target(name: "App", dependencies: [.product(name: "MobileSync", package: "$(basename "$PWD")")])
    ])
END
swift package --package-path "$work/app" --skip-update show-dependencies > "$work/log" 2>&1 ||
    fail "the app's packages cannot be resolved: $(tail -n 5 "$work/log")"
sed -n 's/^ *"identity" : "\(.*\)",$/\1/p' "$work/app/Package.resolved" > "$work/resolved"
diff Tests/AppPackage/client-packages.txt "$work/resolved" >&2 ||
    fail "an app resolves other packages than those of client-packages.txt (left)"

# The packages that say nothing support all systems.
for package in "$PWD" "$work"/app/.build/checkouts/*; do
    swift package --package-path "$package" --scratch-path "$work/scratch" dump-package > "$work/manifest"
    python3 - "$package" "$work/manifest" << 'END' || fail "a package needs a newer system than iOS 16 or macOS 13"
import json, sys
least = {"ios": 16, "macos": 13}
for platform in json.load(open(sys.argv[2]))["platforms"]:
    name, version = platform["platformName"], float(platform["version"])
    if version > least.get(name, version):
        sys.exit(f"{sys.argv[1]}: {name} {version}")
END
done

Tests/AppPackage/objective-c.sh || fail "the compatibility API for Objective-C, or its sample, does not compile"
Tests/AppPackage/newer_apis.py || fail "the client modules use declarations that iOS 16 or macOS 13 does not have"
