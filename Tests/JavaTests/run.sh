#!/usr/bin/env bash
# Builds the Java client with javac at language level 8, and runs its tests. Fails on a warning, a failed test or a
# skipped one.
#   Tests/JavaTests/run.sh           builds and tests
#   Tests/JavaTests/run.sh build     builds only
# The file .build-java/command has the command that runs a test program, one word a line; the name of the program
# follows, for example org.mobilesync.tests.ConformanceDriver. kills.py, sample.py and EndToEndTests read it.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v javac > /dev/null || [ ! -f /usr/share/java/junit-jupiter-engine.jar ]; then
    deploy/scripts/packages.sh openjdk-17-jdk-headless junit5 libxerial-sqlite-jdbc-java libandroid-json-org-java >&2
fi
jars=/usr/share/java
library=Shared/Client/Java
out=$PWD/.build-java
jar_path() { # NAME…: the class path of these jars
    printf "$jars/%s.jar:" "$@"
}
junit=$(jar_path junit-jupiter-api opentest4j apiguardian-api)
launcher=$(jar_path junit-platform-{console,launcher,engine,commons,reporting} junit-jupiter-{engine,params} picocli)
runtime=$jars/sqlite-jdbc.jar:$jars/slf4j-api.jar:$jars/json-android.jar
native=/usr/lib/$(uname -m)-linux-gnu/jni

compile() { # FOLDER CLASSPATH SOURCE…: language level 8, warnings are errors
    local folder=$1 classpath=$2
    shift 2
    mkdir -p "$folder"
    # The notice that level 8 is old is no fault of the code.
    find "$@" -name '*.java' -print0 |
        xargs -0 javac --release 8 -encoding UTF-8 -Xlint:all,-options -Werror -cp "$classpath" -d "$folder"
}

deploy/scripts/generate-java-messages.py --check
rm -rf "$out"
compile "$out/client" '' "$library/src/main/java"
compile "$out/guide" "$out/client" "$library/src/guide/java" Tests/JavaTests/stand-ins
compile "$out/tests" "$out/client:$out/guide:$runtime:$junit" Tests/JavaTests/src Tests/JavaTests/sample
classpath=$out/client:$out/guide:$out/tests:$runtime
printf '%s\n' java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC "-Djava.library.path=$native" -cp "$classpath" \
    > "$out/command"
[ "${1:-}" != build ] || exit 0
report=$(mktemp)
trap 'rm -f "$report"' EXIT
java "-Djava.library.path=$native" -Dorg.sqlite.lib.path="$native" -cp "$classpath:$junit$launcher" \
    org.junit.platform.console.ConsoleLauncher --scan-classpath "$out/tests" --include-classname '.*Tests$' \
    --disable-banner --disable-ansi-colors --details=tree | tee "$report"
line() { # COUNT WORD: whether the report has this line
    grep -Eq "^\[ +$1 tests $2 +\]$" "$report"
}
if ! line '[1-9][0-9]*' successful || ! line 0 skipped || ! line 0 failed; then
    echo "Tests/JavaTests/run.sh: a Java test failed or was skipped" >&2
    exit 1
fi
