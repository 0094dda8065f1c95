#!/usr/bin/env bash
# Builds MobileSyncKit.xcframework, the client modules as one static library for iOS, and packs it with its podspec.
# NOT RUN HERE: it needs macOS with Xcode 26 or newer, and this project is built on Linux.
#   deploy/apple/xcframework.sh FOLDER    writes FOLDER/MobileSyncKit.zip
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:?deploy/apple/xcframework.sh: name the folder for the result}
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

libraries=()
build() { # SDK TRIPLE: builds the library and its modules for one platform
    MSS_XCFRAMEWORK=1 swift build --configuration release --product MobileSyncKit --scratch-path "$work/build-$1" \
        --traits OfflineResources --triple "$2" --sdk "$(xcrun --sdk "$1" --show-sdk-path)"
    mkdir "$work/$1"
    cp "$work/build-$1/release/libMobileSyncKit.a" "$work/$1"
    cp -R "$work/build-$1"/release/Modules/*.swiftmodule "$work/$1"
    libraries+=(-library "$work/$1/libMobileSyncKit.a")
}
build iphoneos arm64-apple-ios16.0
build iphonesimulator arm64-apple-ios16.0-simulator

xcodebuild -create-xcframework -allow-internal-distribution "${libraries[@]}" \
    -output "$work/pod/MobileSyncKit.xcframework"
cp LICENSE deploy/apple/MobileSyncKit.podspec "$work/pod"
(cd "$work/pod" && zip --quiet --recurse-paths "$work/MobileSyncKit.zip" .)
mv "$work/MobileSyncKit.zip" "$folder"
