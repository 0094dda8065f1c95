package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.mobilesync.SyncConversation;
import org.mobilesync.SyncHistory;
import org.mobilesync.SyncOplog;
import org.mobilesync.internal.wire.ChannelKind;
import org.mobilesync.internal.wire.ChannelSummary;
import org.mobilesync.internal.wire.Entry;
import org.mobilesync.internal.wire.HistoryPage;
import org.mobilesync.internal.wire.HistoryRequest;
import org.mobilesync.internal.wire.Push;
import org.mobilesync.internal.wire.StoredAck;
import org.mobilesync.internal.wire.SummaryPage;
import org.mobilesync.internal.wire.SummaryRequest;

/** The conversations of a client over TLS against a played gateway. */
class ClientConversationTests extends PlayedClient {
    private static Entry entry(long id, String payload, String conversation) {
        Entry entry = entry(id, payload);
        entry.conversation = conversation;
        return entry;
    }

    /** Pushes 8 and 10 in the conversation "a" and 9 in "b"; the threshold has discarded everything before. */
    private PlayedGateway.Connection openWithData() throws Exception {
        PlayedGateway.Connection connection = open();
        Push push = push(ChannelKind.USER, 0, 8, 9, 10);
        push.batches.get(0).passedOverUpto = 7;
        push.batches.get(0).entries.forEach(entry -> entry.conversation = entry.oplogId == 9 ? "b" : "a");
        connection.send(push);
        connection.find(StoredAck.class, ack -> true);
        return connection;
    }

    private static String idsOf(SyncHistory history) {
        List<Long> ids = new ArrayList<>();
        for (SyncOplog oplog : history.oplogs()) ids.add(oplog.oplogId());
        return ids.toString();
    }

    private static String statesOf(List<SyncConversation> conversations) {
        List<String> states = new ArrayList<>();
        for (SyncConversation one : conversations) {
            states.add(
                one.conversation() + " " + one.last().oplogId() + " " + one.unread() + " " + one.notReceived());
        }
        return String.join(", ", states);
    }

    @Test
    void anOplogHasItsConversation() throws Exception {
        openWithData();
        client.listen("UCHAT", shown::add);
        assertEquals("a", nextShown().conversation());
        assertEquals("b", nextShown().conversation());
    }

    @Test
    void theHistoryOfAConversationContinuesAtTheServerAndExtendsNoRange() throws Exception {
        PlayedGateway.Connection connection = openWithData();
        SyncHistory local = get(client.localHistory("UCHAT", "a", 0, 4));
        assertEquals("[10, 8] true true", idsOf(local) + " " + local.hasMore() + " " + local.isComplete());
        assertEquals("[10]", idsOf(get(client.history("UCHAT", "a", 0, 1))));
        assertFalse(connection.has(HistoryRequest.class));
        CompletableFuture<SyncHistory> history = client.history("UCHAT", "a", 0, 4);
        HistoryRequest request = connection.find(HistoryRequest.class, frame -> true);
        assertEquals("a 8 2", request.conversation + " " + request.before + " " + request.count);
        HistoryPage page = new HistoryPage();
        page.requestNumber = request.requestNumber;
        page.bindNumber = 1;
        page.head = 10;
        page.entries.add(entry(3, "three", "a"));
        page.entries.add(entry(2, "two", "a"));
        connection.send(page);
        assertEquals("[10, 8, 3, 2]", idsOf(get(history)));
        assertFalse(get(history).hasMore());
        assertEquals("a", get(history).oplogs().get(3).conversation());
        // The page is stored; the channel still has its gap.
        local = get(client.localHistory("UCHAT", "a", 0, 9));
        assertEquals("[10, 8, 3, 2] false", idsOf(local) + " " + local.isComplete());
        client.history("UCHAT", 0, 9);
        HistoryRequest ofAll = connection.find(HistoryRequest.class, frame -> frame.conversation.isEmpty());
        assertEquals("8 6", ofAll.before + " " + ofAll.count);
    }

    private static ChannelSummary summary(String conversation, long last, long waiting) {
        ChannelSummary summary = new ChannelSummary();
        summary.bizType = "UCHAT";
        summary.conversation = conversation;
        summary.last = entry(last, "text " + last, conversation);
        summary.waiting = waiting;
        return summary;
    }

    private static SummaryPage page(SummaryRequest request, String next, ChannelSummary... summaries) {
        SummaryPage page = new SummaryPage();
        page.requestNumber = request.requestNumber;
        page.bindNumber = 1;
        page.more = !next.isEmpty();
        page.nextConversation = next;
        for (ChannelSummary summary : summaries) page.channels.add(summary);
        return page;
    }

    private static SummaryRequest request(PlayedGateway.Connection connection, String after) throws Exception {
        return connection.find(SummaryRequest.class,
            frame -> frame.conversationsOf.equals("UCHAT") && frame.afterConversation.equals(after));
    }

    @Test
    void theConversationsOfDeviceAndServerAreMergedNewestFirstOverAllPages() throws Exception {
        PlayedGateway.Connection connection = openWithData();
        CompletableFuture<List<SyncConversation>> conversations = client.conversations("UCHAT");
        connection.send(page(request(connection, ""), "f", summary("a", 12, 2), summary("d", 4, 0)));
        // The gateway left out the conversations up to "p".
        connection.send(page(request(connection, "f"), "p"));
        connection.send(page(request(connection, "p"), "", summary("q", 11, 1)));
        assertEquals("a 12 2 2, q 11 0 1, b 9 1 0, d 4 0 0", statesOf(get(conversations)));
        assertEquals("text 12", get(conversations).get(0).last().text());
        assertEquals("UCHAT", get(conversations).get(0).bizType());
    }

    @Test
    void aGatewayThatRepeatsAPageDoesNotKeepTheClientBusy() throws Exception {
        PlayedGateway.Connection connection = openWithData();
        CompletableFuture<List<SyncConversation>> conversations = client.conversations("UCHAT");
        connection.send(page(request(connection, ""), "f", summary("a", 12, 2)));
        connection.send(page(request(connection, "f"), "f"));
        assertEquals("a 12 2 2, b 9 1 -1", statesOf(get(conversations)));
    }

    @Test
    void theReadMarkDecidesAboutUnreadAlsoAfterARestart() throws Exception {
        openWithData();
        get(client.disconnect());
        assertEquals("a 10 2 -1, b 9 1 -1", statesOf(get(client.conversations("UCHAT"))));
        get(client.markRead("UCHAT", "a", 8));
        get(client.markRead("UCHAT", "b", 9));
        get(client.markRead("UCHAT", "b", 1));
        get(client.markRead("NEWS", "b", 1));
        assertEquals("a 10 1 -1, b 9 0 -1", statesOf(get(client.conversations("UCHAT"))));
        assertTrue(get(client.conversations("NEWS")).isEmpty());
        client.close();
        make(settings().build());
        client.bind("u1", "s1");
        assertEquals("a 10 1 -1, b 9 0 -1", statesOf(get(client.conversations("UCHAT"))));
        client.bind("u2", "s2");
        assertTrue(get(client.conversations("UCHAT")).isEmpty());
    }
}
