#!/usr/bin/env bash
# Checks what Objective-C sees of MobileSyncLegacy, as far as a compiler without Apple's SDK can: the compiler reads the
# classes for Objective-C with stand-ins for Foundation, MobileSync and the parts below, writes the header that Xcode
# would write, and the guide's sample in Objective-C is compiled against this header, without making a program.
# Not checked: the bodies of the Swift methods (the ordinary build has those, but for #if canImport(ObjectiveC)), the
# real Foundation, and the run.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
standins=Tests/AppPackage/ObjectiveC
face=Shared/Client/MobileSyncLegacy
export CLANG_MODULE_CACHE_PATH=$work/cache
# frontend ARGUMENT…: the compiler with Objective-C, which Linux does not have by default.
frontend() {
    swiftc -frontend -parse-as-library -swift-version 6 -enable-objc-interop -disable-availability-checking \
        -enable-upcoming-feature InternalImportsByDefault -experimental-skip-all-function-bodies \
        -module-cache-path "$work/cache" -I "$work" -I "$standins/Headers" "$@"
}
frontend -emit-module -module-name ObjectiveC -import-underlying-module "$standins/ObjectiveC.swift" \
    -o "$work/ObjectiveC.swiftmodule"
frontend -emit-module -module-name Foundation -import-underlying-module "$standins/Foundation.swift" \
    -o "$work/Foundation.swiftmodule"
frontend -emit-module -module-name MobileSync "$standins/MobileSync.swift" -o "$work/MobileSync.swiftmodule"
mkdir "$work/include"
frontend -typecheck -module-name MobileSyncLegacy -emit-objc-header-path "$work/include/MobileSyncLegacy-Swift.h" \
    "$face"/{MPSyncInterface,MPSyncApplication,MPSyncNetConnectType,MPaaSInterface,MPLogger,UTDevice}.swift \
    "$standins/CompatibilityCore.swift"
printf 'module MobileSyncLegacy {\n    header "MobileSyncLegacy-Swift.h"\n    export *\n}\n' \
    > "$work/include/module.modulemap"
# The guide's category replaces userId of the class, which the compiler warns of.
clang -x objective-c -fmodules -fmodules-cache-path="$work/cache" -fobjc-runtime=macosx-13 -fobjc-arc -fsyntax-only \
    -Wall -Wextra -Werror -Wno-objc-protocol-method-implementation -I "$work/include" -I "$standins/Headers" \
    -I "$face/ObjectiveC" Tests/LegacySamples/ObjectiveC/Demo.m
