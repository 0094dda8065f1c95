package org.mobilesync.guide;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mobilesync.database.DatabaseOpener;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.internal.Clock;

/** The identity of the device for the guide's API (K5), and the client below it. */
class GuideClientTests {
    /** An app that is installed into a folder. It never connects, because it is in the background. */
    private static final class App implements GuidePlatform {
        private final Path folder;
        private final String seed;

        App(Path folder, String seed) throws Exception {
            this.folder = Files.createDirectories(folder);
            this.seed = seed;
        }

        @Override
        public byte[] asset(String name) {
            String meta = "{\"syncserver\": \"localhost\", \"syncport\": 443, \"instanceId\": \"app\"}";
            return name.equals("meta.config") ? meta.getBytes(StandardCharsets.UTF_8) : null;
        }

        @Override
        public String folder() {
            return folder.toString();
        }

        @Override
        public String deviceSeed() {
            return seed;
        }

        @Override
        public DatabaseOpener database() {
            return JdbcDatabase::open;
        }

        @Override
        public Clock clock() {
            return Clock.SYSTEM;
        }

        @Override
        public String appVersion() {
            return "1.0.0";
        }

        @Override
        public String osVersion() {
            return "14";
        }
    }

    @TempDir
    Path folder;

    /** Returns the device ids before and after the start of an app, which are the same. */
    private String deviceId(String install, String seed, String given) throws Exception {
        App app = new App(folder.resolve(install), seed);
        GuideClient guide = new GuideClient();
        guide.setDeviceId(given);
        String before = guide.deviceId(app);
        assertNull(guide.client());
        guide.start(app);
        assertNotNull(guide.client());
        assertEquals(before, guide.client().deviceId());
        guide.shutDown();
        assertNull(guide.client());
        return before;
    }

    @Test
    void aReinstalledAppHasTheSameDeviceIdWithASeedOfThePlatform() throws Exception {
        String first = deviceId("first", "9774:app", null);
        assertEquals(first, deviceId("first", "9774:app", null));
        assertEquals(first, deviceId("second", "9774:app", null));
        assertNotEquals(first, deviceId("third", "other:app", null));
    }

    @Test
    void anInstalledAppKeepsItsIdWhenTheSeedComesLaterOrIsMissing() throws Exception {
        String first = deviceId("first", null, null);
        assertEquals(first, deviceId("first", "9774:app", null));
        assertEquals(first, deviceId("first", null, null));
        String second = deviceId("second", "9774:app", null);
        assertEquals(second, deviceId("second", null, null));
        assertEquals(second, deviceId("second", "other:app", null));
    }

    @Test
    void withoutASeedTheDeviceIdIsInTheAppsFolder() throws Exception {
        String first = deviceId("first", null, null);
        assertEquals(first, deviceId("first", null, null));
        assertNotEquals(first, deviceId("second", null, null));
    }

    @Test
    void theAppsOwnDeviceIdComesFirst() throws Exception {
        assertEquals("utdid-1", deviceId("first", "9774:app", "utdid-1"));
    }
}
