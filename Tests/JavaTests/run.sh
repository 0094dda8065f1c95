#!/usr/bin/env bash
# Builds the Java client with javac at language level 8, and runs its tests. Fails on a warning, a failed test or a
# skipped one.
#   Tests/JavaTests/run.sh           builds and tests
#   Tests/JavaTests/run.sh build     builds only
# The file .build-java/command has the command that runs a test program, one word a line; the name of the program
# follows, for example org.mobilesync.tests.ConformanceDriver. kills.py, sample.py, mssctl torture and EndToEndTests
# read it.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v javac > /dev/null || [ ! -f /usr/share/java/junit-jupiter-engine.jar ] ||
    [ ! -f /usr/share/java/json-lib.jar ]; then
    deploy/scripts/packages.sh openjdk-17-jdk-headless junit5 libxerial-sqlite-jdbc-java libandroid-json-org-java \
        libjson-java libhttpclient-java libcommons-httpclient-java >&2
fi
jars=/usr/share/java
library=Shared/Client/Java
out=$PWD/.build-java
jar_path() { # NAME…: the class path of these jars
    printf "$jars/%s.jar:" "$@"
}
junit=$(jar_path junit-jupiter-api opentest4j apiguardian-api)
launcher=$(jar_path junit-platform-{console,launcher,engine,commons,reporting} junit-jupiter-{engine,params} picocli)
backend=$(jar_path json-lib httpclient httpcore commons-{httpclient,logging,codec,lang,collections3,beanutils} ezmorph)
runtime=$jars/sqlite-jdbc.jar:$jars/slf4j-api.jar:$jars/json-android.jar
native=/usr/lib/$(uname -m)-linux-gnu/jni

compile() { # NAME CLASSPATH SOURCE…: language level 8, warnings are errors; NAME.jar has the classes
    local name=$1 classpath=$2
    shift 2
    mkdir -p "$out/$name"
    # That level 8 is old, and that a package of Debian names jars that are not there, is no fault of the code.
    find "$@" -name '*.java' -print0 |
        xargs -0 javac --release 8 -encoding UTF-8 -Xlint:all,-options,-path -Werror -cp "$classpath" -d "$out/$name"
    jar --create --no-compress --file "$out/$name.jar" -C "$out/$name" .
}

deploy/scripts/generate-java-messages.py --check
rm -rf "$out"
compile client '' "$library/src/main/java"
compile guide "$out/client" "$library/src/guide/java" Tests/JavaTests/stand-ins
compile samples "$out/client:$out/guide:$backend" Tests/JavaTests/backend-sample
compile field "$out/client:$runtime" deploy/samples/field-service/java
compile tests "$out/client:$out/guide:$out/samples:$runtime:$junit" Tests/JavaTests/src Tests/JavaTests/sample
classpath=$out/client.jar:$out/guide.jar:$out/samples.jar:$out/field.jar:$out/tests.jar:$runtime:$backend
# Without the archive of classes a program runs too, but needs twice the time to start.
archive=$out/classes.jsa
printf '%s\n' java -XX:SharedArchiveFile="$archive" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC \
    "-Djava.library.path=$native" -cp "$classpath" > "$out/command"
java -XX:ArchiveClassesAtExit="$archive" -Xlog:disable -XX:TieredStopAtLevel=1 -XX:+UseSerialGC \
    "-Djava.library.path=$native" -cp "$classpath" org.mobilesync.tests.ArchiveTraining
[ "${1:-}" != build ] || exit 0
report=$(mktemp)
trap 'rm -f "$report"' EXIT
# Most tests wait for a connection or a lock, so several run at once.
parallel=junit.jupiter.execution.parallel
java "-Djava.library.path=$native" -Dorg.sqlite.lib.path="$native" -cp "$classpath:$junit$launcher" \
    org.junit.platform.console.ConsoleLauncher --scan-classpath "$out/tests.jar" --include-classname '.*Tests$' \
    --config $parallel.enabled=true --config $parallel.mode.default=concurrent \
    --config $parallel.config.strategy=fixed --config $parallel.config.fixed.parallelism=4 \
    --disable-banner --disable-ansi-colors --details=tree | tee "$report"
line() { # COUNT WORD: whether the report has this line
    grep -Eq "^\[ +$1 tests $2 +\]$" "$report"
}
if ! line '[1-9][0-9]*' successful || ! line 0 skipped || ! line 0 failed; then
    echo "Tests/JavaTests/run.sh: a Java test failed or was skipped" >&2
    exit 1
fi
