package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.mobilesync.SyncConversation;
import org.mobilesync.SyncOplog;
import org.mobilesync.internal.store.HistoryStore;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.ChannelKind;
import org.mobilesync.internal.wire.ChannelSummary;
import org.mobilesync.internal.wire.Entry;
import org.mobilesync.internal.wire.HistoryPage;

/** The conversations in a local store: their oplogs, their history and their read marks. */
class StoreConversationTests extends OpenedStore {
    private static Entry entry(long id, String conversation) {
        Entry entry = entry(id);
        entry.conversation = conversation;
        return entry;
    }

    private static ChannelBatch batch(long after, Entry... entries) {
        ChannelBatch batch = batch(after, entries[entries.length - 1].oplogId);
        batch.entries.addAll(Arrays.asList(entries));
        return batch;
    }

    private static HistoryPage page(long head, Entry... entries) {
        HistoryPage page = new HistoryPage();
        page.head = head;
        page.entries.addAll(Arrays.asList(entries));
        return page;
    }

    private static List<Long> idsOf(List<SyncOplog> oplogs) {
        return oplogs.stream().map(SyncOplog::oplogId).collect(Collectors.toList());
    }

    private HistoryStore.LocalPart history(String conversation, long before) {
        return store.history().history("UCHAT", conversation, "u1", before, 10);
    }

    /** Returns newest oplog and unread count of each conversation. */
    private Map<String, String> conversations(String userId) {
        Map<String, String> states = new TreeMap<>();
        for (SyncConversation one : store.history().conversations("UCHAT", userId)) {
            states.put(one.conversation(), one.last().oplogId() + " " + one.unread());
        }
        return states;
    }

    @Test
    void theConversationOfAnOplogIsHandedOutAlsoAfterARestart() {
        push(batch(0, entry(1, "a"), entry(2, "")));
        reopen();
        List<SyncOplog> oplogs = handOutOplogs("u1");
        assertEquals("a", oplogs.get(0).conversation());
        assertNull(oplogs.get(1).conversation());
    }

    @Test
    void theCompleteRangeOfTheChannelHoldsForEachConversation() {
        ChannelBatch batch = batch(0, entry(98, "a"), entry(99, "b"), entry(100, "a"));
        batch.passedOverUpto = 97;
        push(batch);
        assertEquals(ids(100, 98), idsOf(history("a", 0).complete()));
        assertEquals(ids(98), idsOf(history("a", 100).complete()));
        assertEquals(98, history("a", 0).requestBefore());
        assertTrue(history("c", 0).complete().isEmpty());
    }

    @Test
    void aPageOfAConversationIsStoredAndDoesNotExtendTheRange() {
        ChannelBatch batch = batch(0, entry(99, "b"), entry(100, "a"));
        batch.passedOverUpto = 98;
        push(batch);
        HistoryPage page = page(100, entry(50, "a"), entry(40, "a"));
        assertEquals(ids(50, 40), idsOf(store.history().storePage(page, "UCHAT", "a", "u1", 99)));
        assertEquals(ids(100, 50, 40), idsOf(history("a", 0).allStored()));
        assertEquals(ids(100), idsOf(history("a", 0).complete()));
        assertEquals(99, history("a", 0).requestBefore());
        assertEquals(ids(100, 99), idsOf(history(null, 0).complete()));
        // A page of the whole channel extends it.
        store.history().storePage(page(100, entry(50, "a"), entry(45, ""), entry(40, "a")), "UCHAT", null, "u1", 99);
        assertEquals(ids(100, 50, 40), idsOf(history("a", 0).complete()));
        assertEquals(HistoryStore.NOTHING_OLDER, history("a", 0).requestBefore());
    }

    @Test
    void oplogsOfAPageAboveTheRangeAreNoPartOfACompleteHistory() {
        store.history().storePage(page(70, entry(60, "a")), "UCHAT", "a", "u1", 0);
        assertTrue(history(null, 0).complete().isEmpty());
        assertEquals(0, history(null, 0).requestBefore());
        push(batch(0, entry(50, "")));
        assertEquals(ids(60, 50), idsOf(history(null, 0).allStored()));
        assertTrue(history(null, 0).complete().isEmpty());
        assertEquals(0, history(null, 0).requestBefore(), "the gateway is asked from the newest oplog on");
        // The app receives the oplog when it arrives.
        push(batch(50, entry(55, ""), entry(60, "a")));
        assertEquals(ids(50, 55, 60), handOut("u1"));
        assertEquals(ids(60, 55, 50), idsOf(history(null, 0).complete()));
    }

    @Test
    void aKnownOplogStaysAsItIsWhenAPageHasIt() {
        push(batch(0, entry(1, "a")));
        delivery.confirm(handOutOplogs("u1"));
        store.history().storePage(page(1, entry(1, "a")), "UCHAT", "a", "u1", 0);
        assertEquals(1, store.unreported().report("u1", 1).confirmed.size());
        assertEquals(ids(), handOut("u1"));
    }

    @Test
    void unreadCountsNeitherTombstonesNorRecalledOplogs() {
        push(batch(0, entry(1, "a"), entry(2, "a"), entry(3, "b"), entry(4, ""), entry(5, "c")));
        delivery.confirm(handOutOplogs("u1"));
        Entry ofA = entry(6, "");
        ofA.recalls = 2;
        Entry ofB = entry(7, "b");
        ofB.recalls = 3;
        push(batch(5, ofA, ofB));
        assertEquals("{a=1 1, c=5 1}", conversations("u1").toString());
        assertTrue(conversations("u2").isEmpty());
    }

    @Test
    void aReadMarkNeverGoesDownAndSurvivesTheEnd() {
        push(batch(0, entry(1, "a"), entry(2, "a"), entry(3, "a"), entry(4, "b")));
        store.history().markRead("UCHAT", "a", "u1", 2);
        store.history().markRead("UCHAT", "a", "u1", 1);
        store.history().markRead("UCHAT", "a", "u1", -5);
        assertEquals("{a=3 1, b=4 1}", conversations("u1").toString());
        reopen();
        assertEquals("{a=3 1, b=4 1}", conversations("u1").toString());
        store.history().markRead("UCHAT", "a", "u1", 3);
        assertEquals("{a=3 0, b=4 1}", conversations("u1").toString());
    }

    @Test
    void deletedDataTakesItsReadMarksAlong() {
        push(batch(0, entry(1, "a")));
        store.history().markRead("UCHAT", "a", "u1", 5);
        store.suspended().deleteData("UCHAT", "u1");
        push(batch(1, entry(2, "a")));
        assertEquals("{a=2 1}", conversations("u1").toString());
    }

    @Test
    void aReadMarkBelongsToTheUserAndNeedsTheChannel() {
        store.history().markRead("UCHAT", "a", "u1", 9);
        push(batch(0, entry(1, "a")));
        store.pushes().store(Arrays.asList(batch(0, entry(1, "a"))), "u2", 1);
        store.history().markRead("UCHAT", "a", "u2", 1);
        assertEquals("{a=1 1}", conversations("u1").toString());
        assertEquals("{a=1 0}", conversations("u2").toString());
    }

    @Test
    void theServersSummaryIsMergedWithTheLocalOneOfTheSameUser() {
        push(batch(0, entry(1, "a"), entry(2, "a")));
        SyncConversation local = store.history().conversations("UCHAT", "u1").get(0);
        ChannelSummary server = new ChannelSummary();
        server.bizType = "UCHAT";
        server.conversation = "a";
        server.waiting = 3;
        assertEquals("2 2 3", state(store.history().merged(server, "u1", local)));
        assertNull(store.history().merged(server, "u1", (SyncConversation) null));
        server.last = entry(9, "a");
        assertEquals("9 2 3", state(store.history().merged(server, "u1", local)));
        assertEquals("9 0 3", state(store.history().merged(server, "u2", local)));
        server.kind = ChannelKind.DEVICE;
        assertEquals("9 0 3", state(store.history().merged(server, "u1", local)));
    }

    private static String state(SyncConversation one) {
        return one.last().oplogId() + " " + one.unread() + " " + one.notReceived();
    }
}
