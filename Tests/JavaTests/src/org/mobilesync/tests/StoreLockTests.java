package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mobilesync.SyncException;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.internal.Clock;
import org.mobilesync.internal.store.DeviceIdentity;
import org.mobilesync.internal.store.LocalStore;
import org.mobilesync.internal.store.PayloadCipher;

/** The lock that limits a store to one client, in this process and in others. */
class StoreLockTests {
    @TempDir
    Path folder;

    private static LocalStore open(Path path) {
        return LocalStore.open(path.toString(), JdbcDatabase::open, "app", new DeviceIdentity("d1", null),
            PayloadCipher.of(null), 100_000_000, Clock.SYSTEM);
    }

    /** Opens a store as another process. Prints "opened", or the code of the error. */
    public static void main(String[] arguments) {
        try {
            open(Paths.get(arguments[0])).close();
            System.out.println("opened");
        } catch (SyncException error) {
            System.out.println(error.code());
        }
    }

    private static String openInAnotherProcess(Path path) throws Exception {
        Process process = new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-XX:TieredStopAtLevel=1",
            "-Djava.library.path=" + System.getProperty("java.library.path"), "-cp",
            System.getProperty("java.class.path"), StoreLockTests.class.getName(), path.toString())
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (BufferedReader output =
            new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
            String line = output.readLine();
            process.waitFor();
            return line;
        }
    }

    @Test
    void aRefusedSecondClientLeavesTheLockOfTheFirst() throws Exception {
        Path path = folder.resolve("s");
        Path other = Files.createSymbolicLink(folder.resolve("link"), folder).resolve("s");
        try (LocalStore first = open(path)) {
            for (Path same : new Path[] {path, other}) {
                SyncException error = assertThrows(SyncException.class, () -> open(same));
                assertEquals(SyncException.Code.STORE_IN_USE, error.code());
            }
            assertEquals("STORE_IN_USE", openInAnotherProcess(path));
            assertEquals(0, first.channels().syncPoints("u1", 1).size());
        }
        assertEquals("opened", openInAnotherProcess(path));
        open(path).close();
    }

    @Test
    void aSecondCloseDoesNotReleaseTheStoreOfTheNextClient() {
        Path path = folder.resolve("s");
        LocalStore first = open(path);
        first.close();
        try (LocalStore second = open(path)) {
            first.close();
            assertEquals(SyncException.Code.STORE_IN_USE, assertThrows(SyncException.class, () -> open(path)).code());
            assertEquals(0, second.channels().syncPoints("u1", 1).size());
        }
    }

    @Test
    void anInterruptedWaitLeavesTheLockOfTheFirst() throws Exception {
        Path path = folder.resolve("s");
        try (LocalStore first = open(path)) {
            Thread.currentThread().interrupt();
            SyncException error = assertThrows(SyncException.class, () -> open(path));
            assertTrue(Thread.interrupted());
            assertEquals(SyncException.Code.STORE, error.code());
            assertEquals("STORE_IN_USE", openInAnotherProcess(path));
            assertEquals(0, first.channels().syncPoints("u1", 1).size());
        }
    }
}
