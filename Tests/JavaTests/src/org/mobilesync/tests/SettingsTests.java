package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mobilesync.DeviceIdentifier;
import org.mobilesync.MetaConfig;
import org.mobilesync.SyncConfiguration;
import org.mobilesync.SyncException;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.internal.json.JsonText;

/** The files that an app is built with, and JSON texts. */
class SettingsTests {
    private static MetaConfig parse(String json) {
        return MetaConfig.parse(json.replace('\'', '"').getBytes(StandardCharsets.UTF_8), "meta.config");
    }

    @Test
    void aMetaConfigNamesGatewayInstanceAndKey() {
        MetaConfig meta = parse("{'syncserver': 'gw.example', 'syncport': '443', 'workspaceId': 'demo', 'appId': 'app',"
            + " 'appKey': 'k1', 'appSecret': 'MDEyMzQ1Njc4OWFiY2RlZg==', 'unknown': [1]}");
        assertEquals("gw.example 443 demo_app", meta.host() + " " + meta.port() + " " + meta.instanceId());
        assertEquals(7443, parse("{'syncserver': 'gw', 'syncport': 7443, 'instanceId': 'whole'}").port());
    }

    @Test
    void anErrorNamesTheFileTheMemberAndItsForm() {
        String[][] broken = {
            {"[]", "JSON object"},
            {"{'syncport': 1, 'instanceId': 'a'}", "syncserver is missing"},
            {"{'syncserver': 'https://gw', 'syncport': 1, 'instanceId': 'a'}", "without https://"},
            {"{'syncserver': 'gw', 'instanceId': 'a'}", "syncport is missing"},
            {"{'syncserver': 'gw', 'syncport': 65536, 'instanceId': 'a'}", "1 to 65535"},
            {"{'syncserver': 'gw', 'syncport': 1, 'appId': 'a'}", "workspaceId is missing"},
            {"{'syncserver': 'gw', 'syncport': 1, 'workspaceId': 7, 'appId': 'a'}", "workspaceId is not usable"},
            {"{'syncserver': 'gw', 'syncport': 1, 'instanceId': 'x', 'workspaceId': 'w', 'appId': 'a'}", "w_a"},
            {"{'syncserver': 'gw', 'syncport': 1, 'instanceId': 'a', 'appKey': 'k', 'appSecret': '?'}", "Base64"},
        };
        for (String[] one : broken) {
            SyncException error = assertThrows(SyncException.class, () -> parse(one[0]), one[0]);
            assertEquals(SyncException.Code.INVALID_ARGUMENT, error.code());
            assertTrue(error.getMessage().contains("meta.config"), error.getMessage());
            assertTrue(error.getMessage().contains(one[1]), error.getMessage());
        }
    }

    @Test
    void aDeviceIdStaysTheSame(@TempDir Path folder) throws Exception {
        String id = DeviceIdentifier.load(folder.toString());
        assertEquals(id, DeviceIdentifier.load(folder.toString()));
        assertEquals(36, id.length());
        Files.write(folder.resolve("device-id"), "given\n".getBytes(StandardCharsets.UTF_8));
        assertEquals("given", DeviceIdentifier.load(folder.toString()));
        SyncException error = assertThrows(SyncException.class,
            () -> DeviceIdentifier.load(folder.resolve("missing").toString()));
        assertEquals(SyncException.Code.STORE, error.code());
    }

    @Test
    void aSeedHasOneIdAndOneSecret() {
        // Another id would make all devices new ones.
        assertEquals("0d34f12213bfe0988a07f9410262be40", DeviceIdentifier.fromSeed("9774:app"));
        assertNotEquals(DeviceIdentifier.fromSeed("9774:app"), DeviceIdentifier.fromSeed("9774:other"));
        assertEquals(32, DeviceIdentifier.secretFromSeed("9774:app").length);
    }

    @Test
    void aDeviceSecretHas16To64Bytes() {
        for (int length : new int[] {15, 65}) {
            SyncConfiguration.Builder builder = SyncConfiguration.builder().gateway("gw", 443).instanceId("app")
                .deviceId("d1").store("s", JdbcDatabase::open).deviceSecret(new byte[length]);
            SyncException error = assertThrows(SyncException.class, builder::build);
            assertTrue(error.getMessage().contains("16 to 64"), error.getMessage());
        }
    }

    @Test
    void aSliceKeepsItsSpelling() {
        String json = " { \"a\" : 1.50e+2 , \"b\":[ {\"c\":\"\\\"]\"} ,null] , \"a\" : -0 } ";
        assertEquals("-0", JsonText.members(json).get("a"));
        assertEquals("[ {\"c\":\"\\\"]\"} ,null]", JsonText.members(json).get("b"));
        assertEquals(Arrays.asList("{\"c\":\"\\\"]\"}", "null"), JsonText.elements(JsonText.members(json).get("b")));
    }

    @Test
    void otherTextsAreNoJson() {
        for (String text : new String[] {"", "{", "{\"a\"}", "{\"a\":}", "{\"a\":01}", "{\"a\":1,}", "{\"a\":tru}",
            "{\"a\":\"\\x\"}", "{\"a\":\"\n\"}", "{\"a\":1}x", "[1]"}) {
            assertNull(JsonText.members(text), text);
        }
        StringBuilder deep = new StringBuilder("{\"a\":");
        for (int depth = 0; depth < 100_000; depth++) deep.append('[');
        assertNull(JsonText.members(deep.toString()));
    }

    @Test
    void anyTextPassesThroughAString() {
        String text = "quote \" slash \\ \u0001\t\r\n \ud83d\ude00 \u20ac";
        assertEquals(text, JsonText.string(JsonText.quoted(text)));
        assertEquals("\u20ac/", JsonText.string("\"\\u20AC\\/\""));
        assertNull(JsonText.string("7"));
    }
}
