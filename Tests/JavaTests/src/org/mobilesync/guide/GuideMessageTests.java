package org.mobilesync.guide;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.alipay.mobile.rome.longlinkservice.syncmodel.SyncMessage;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.json.JSONArray;
import org.junit.jupiter.api.Test;
import org.mobilesync.SyncBatch;
import org.mobilesync.SyncOplog;

/** The guide's form of a batch (K6). */
class GuideMessageTests {
    private static SyncOplog.Builder oplog(long id, String payload) {
        SyncOplog.Builder oplog = new SyncOplog.Builder();
        oplog.bizType = "UCHAT";
        oplog.oplogId = id;
        oplog.payload = payload.getBytes(StandardCharsets.UTF_8);
        oplog.createdAtMs = 1_700_000_000_000L;
        return oplog;
    }

    @Test
    void theMembersAreThoseOfTheGuideAndOursComeOnlyWithAValue() {
        SyncOplog.Builder binary = oplog(8, "bytes");
        binary.isBinary = true;
        SyncOplog.Builder tombstone = oplog(9, "");
        tombstone.recalls = 7;
        tombstone.isReplay = true;
        SyncMessage message = GuideMessage.of(new SyncBatch(
            Arrays.asList(oplog(7, "{\"name\":\"James\"}").build(), binary.build(), tombstone.build()), true));
        assertEquals("[{\"pl\":\"{\\\"name\\\":\\\"James\\\"}\",\"mk\":7,\"mct\":1700000000000},"
            + "{\"pl\":\"Ynl0ZXM=\",\"isB\":1,\"mk\":8,\"mct\":1700000000000},"
            + "{\"pl\":\"\",\"mk\":9,\"mct\":1700000000000,\"recalls\":7,\"isReplay\":1}]", message.msgData);
        assertEquals("UCHAT 9", message.toString());
        assertTrue(message.hasMore);
        assertNull(message.userId);
    }

    @Test
    void anAppsJsonParserReadsAnyTextUnchanged() throws Exception {
        String text = "quote \" slash \\ / \u0001\t\r\n \ud83d\ude00 \u2028 </script>";
        SyncMessage message = GuideMessage.of(new SyncBatch(Arrays.asList(oplog(1, text).build()), false));
        assertEquals(text, new JSONArray(message.msgData).getJSONObject(0).getString("pl"));
    }

    @Test
    void callsBeforeTheStartHaveNoEffect() {
        GuideClient client = new GuideClient();
        client.setUserId("u1");
        client.setForeground(true);
        client.register("UCHAT", message -> { });
        client.unregister("UCHAT");
        client.confirm(new SyncMessage());
        client.unbind();
        assertEquals(false, client.bind(null));
        assertEquals(false, client.isConnected());
    }
}
