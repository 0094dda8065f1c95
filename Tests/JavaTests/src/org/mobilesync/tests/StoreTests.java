package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.mobilesync.DeviceIdentifier;
import org.mobilesync.SyncBatch;
import org.mobilesync.SyncException;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncOperation;
import org.mobilesync.SyncPushToken;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.database.SyncDatabase;
import org.mobilesync.internal.connection.OplogReport;
import org.mobilesync.internal.store.DeviceIdentity;
import org.mobilesync.internal.store.LocalStore;
import org.mobilesync.internal.store.PayloadCipher;
import org.mobilesync.internal.store.StoreOutcome;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.ChannelKind;
import org.mobilesync.internal.wire.Entry;

/** The local store on a real SQLite file, and the hand-outs from it with a played clock. */
class StoreTests extends OpenedStore {
    @Test
    void dataAndPositionChangeTogetherAndSurviveTheEnd() {
        StoreOutcome outcome = push(batch(0, 10, 3, 7, 10));
        assertEquals(10, outcome.acknowledgements.get(0).upto);
        reopen();
        assertEquals(10, position());
        assertEquals(ids(3, 7, 10), handOut("u1"));
        assertEquals(ids(), handOut("u1"));
    }

    @Test
    void knownBatchesAreAcknowledgedAtThePositionAndOverlapsAreStoredOnce() {
        push(batch(0, 3, 1, 2, 3));
        assertEquals(3, push(batch(0, 2, 1)).acknowledgements.get(0).upto);
        push(batch(1, 5, 2, 3, 4, 5));
        assertEquals(ids(1, 2, 3, 4, 5), handOut("u1"));
    }

    @Test
    void aGapStoresNothing() {
        push(batch(0, 3, 1));
        StoreOutcome outcome = push(batch(9, 12, 11));
        assertTrue(outcome.foundGap);
        assertTrue(outcome.acknowledgements.isEmpty());
        assertEquals(3, position());
    }

    @Test
    void dataOfAUserWaitsWhileAnotherIsBound() {
        push(batch(0, 2, 1, 2));
        assertEquals(ids(), handOut("u2"));
        assertEquals(ids(), handOut(null));
        assertEquals(ids(1, 2), handOut("u1"));
    }

    @Test
    void anUnconfirmedOplogComesAgainAfterARestartAndAConfirmedOneDoesNot() {
        push(batch(0, 2, 1, 2));
        List<SyncOplog> oplogs = handOutOplogs("u1");
        delivery.confirm(Collections.singletonList(oplogs.get(0)));
        reopen();
        assertEquals(ids(2), handOut("u1"));
        assertEquals(1, store.unreported().report("u1", 1).confirmed.size());
    }

    @Test
    void aReportIsRepeatedUntilItIsRecorded() {
        push(batch(0, 2, 1, 2));
        delivery.confirm(handOutOplogs("u1"));
        OplogReport report = store.unreported().report("u1", 7);
        assertArrayEquals(new long[] {1, 2}, report.confirmed.get(0).oplogIds.toArray());
        assertEquals(7, report.confirmed.get(0).bindNumber);
        assertTrue(store.unreported().report("u2", 1).isEmpty());
        store.unreported().recorded(report, "u1");
        assertTrue(store.unreported().report("u1", 1).isEmpty());
    }

    @Test
    void anUnconfirmedOplogComesAgainOnTheLadderAndThenItIsDead() {
        delivery.setFirstResend(100);
        push(batch(0, 1, 1));
        assertEquals(ids(1), handOut("u1"));
        for (int repeat = 0; repeat < 6; repeat++) {
            clock.advance((100L << repeat) - 1);
            delivery.processDue(clock.nowMs());
            assertEquals(ids(), handOut("u1"), "too early at step " + repeat);
            clock.advance(1);
            delivery.processDue(clock.nowMs());
            assertEquals(ids(1), handOut("u1"), "step " + repeat);
        }
        clock.advance(3_200);
        assertTrue(delivery.processDue(clock.nowMs()));
        assertEquals(ids(), handOut("u1"));
        OplogReport report = store.unreported().report("u1", 1);
        assertTrue(report.resent.get(0).dead);
        assertEquals(7, report.resent.get(0).attempts);
    }

    @Test
    void timeWithoutAConnectionDoesNotCount() {
        delivery.setFirstResend(100);
        push(batch(0, 1, 1));
        handOut("u1");
        isCounted = false;
        delivery.updateClocks(clock.nowMs());
        clock.advance(1_000_000);
        assertEquals(Long.MAX_VALUE, delivery.nextDueMs(clock.nowMs()));
        isCounted = true;
        delivery.updateClocks(clock.nowMs());
        assertEquals(100, delivery.nextDueMs(clock.nowMs()) - clock.nowMs());
    }

    @Test
    void fiftyHandOutsForAnyCauseMakeALetterDead() {
        push(batch(0, 1, 1));
        for (int start = 0; start < 50; start++) {
            assertEquals(ids(1), handOut("u1"), "start " + start);
            reopen();
        }
        assertEquals(ids(), handOut("u1"));
        assertTrue(store.unreported().report("u1", 1).resent.get(0).dead);
    }

    @Test
    void aTombstoneDropsTheOplogThatTheAppNeverSawAndTellsOfTheOther() {
        ChannelBatch both = batch(0, 6, 5, 6);
        both.entries.get(1).recalls = 5;
        push(both);
        assertEquals(ids(), handOut("u1"));
        push(batch(6, 7, 7));
        delivery.confirm(handOutOplogs("u1"));
        ChannelBatch recall = batch(7, 8, 8);
        recall.entries.get(0).recalls = 7;
        push(recall);
        assertEquals(7, handOutOplogs("u1").get(0).recalls());
        assertTrue(store.history().history("UCHAT", null, "u1", 0, 10).allStored().isEmpty());
    }

    @Test
    void aRereadIsStoredOnceAndMovesNoPosition() {
        push(batch(0, 10, 10));
        delivery.confirm(handOutOplogs("u1"));
        ChannelBatch reread = batch(2, 900, 3, 10);
        reread.reread = -1;
        assertEquals(-1, push(reread).rereads.get(0));
        assertEquals(ids(3), handOut("u1"), "the app has confirmed 10");
        assertEquals(10, position());
        assertEquals(1, push(reread).rereads.size());
        assertEquals(ids(), handOut("u1"));
    }

    @Test
    void dataThatTheStoreLostComesAsAReplay() {
        ChannelBatch again = batch(0, 6, 5, 6);
        again.againUpto = 5;
        assertTrue(push(again).isRolledBack);
        List<SyncOplog> oplogs = handOutOplogs("u1");
        assertTrue(oplogs.get(0).isReplay());
        assertFalse(oplogs.get(1).isReplay());
    }

    @Test
    void anExpiredOplogIsNotHandedOutAndTheDevicesClockDoesNotDecide() {
        ChannelBatch batch = batch(0, 2, 1, 2);
        batch.entries.get(0).validUntilMs = 5_000;
        push(batch);
        store.clock().setServiceTime(4_000);
        clock.setWall(99_000_000);
        clock.advance(1_000);
        assertEquals(ids(2), handOut("u1"));
        assertTrue(store.unreported().report("u1", 1).isEmpty());
    }

    @Test
    void aFullStoreDropsConfirmedOplogsAndThenTakesNothing() {
        store.close();
        open(JdbcDatabase::open, 1_000_000);
        long position = 0;
        for (int round = 0; round < 40; round++) {
            delivery.confirm(handOutOplogs("u1"));
            store.unreported().recorded(store.unreported().report("u1", 1), "u1");
            ChannelBatch batch = batch(position, position + 10);
            for (long id = position + 1; id <= position + 10; id++) {
                Entry entry = entry(id);
                entry.payload = new byte[8_000];
                batch.entries.add(entry);
            }
            StoreOutcome outcome = store.pushes().store(Collections.singletonList(batch), "u1", 1);
            assertTrue(outcome != null, "confirmed oplogs make room");
            delivery.markUnread(outcome.filledChannels);
            position += 10;
        }
        ChannelBatch large = batch(position, position + 200);
        for (long id = position + 1; id <= position + 200; id++) {
            Entry entry = entry(id);
            entry.payload = new byte[8_000];
            large.entries.add(entry);
        }
        assertNull(store.pushes().store(Collections.singletonList(large), "u1", 1));
        assertEquals(position, position());
    }

    @Test
    void aFullDiskStoresNothingOfTheStepAndSaysSo() {
        store.close();
        open(path -> {
            SyncDatabase database = JdbcDatabase.open(path);
            // SQLite answers SQLITE_FULL beyond this size, as on a full disk.
            database.query(row -> row.getLong(0), "PRAGMA max_page_count = 60");
            return database;
        }, LIMIT);
        push(batch(0, 1, 1));
        ChannelBatch large = batch(1, 3, 2);
        Entry entry = entry(3);
        entry.payload = new byte[400_000];
        large.entries.add(entry);
        SyncException error = assertThrows(SyncException.class, () -> push(large));
        assertEquals(SyncException.Code.STORE_FULL, error.code());
        assertTrue(error.getMessage().contains("free space"), error.getMessage());
        assertEquals(1, position());
        assertEquals(ids(1), handOut("u1"));
        assertEquals(3, push(batch(1, 3, 2, 3)).acknowledgements.get(0).upto);
    }

    @Test
    void aDamagedStoreIsReplacedMovedAsideAndCounted() throws Exception {
        String storeId = store.file().storeId();
        byte[] secret = store.device().secret();
        store.close();
        Path file = folder.resolve("s");
        Files.deleteIfExists(folder.resolve("s-wal"));
        String text = "this is no database, and it is long enough to be read as one";
        Files.write(file, text.getBytes(StandardCharsets.UTF_8));
        open();
        assertTrue(store.file().replacedDamaged());
        assertEquals(1, store.file().replacements());
        assertTrue(Files.exists(folder.resolve("s.damaged")));
        assertNotEquals(storeId, store.file().storeId());
        assertFalse(Arrays.equals(secret, store.device().secret()));
        reopen();
        assertFalse(store.file().replacedDamaged());
        assertEquals(1, store.file().replacements());
    }

    @Test
    void theAppsSecretIsThatOfANewStoreAndAStoreKeepsItsOwn() {
        byte[] given = DeviceIdentifier.secretFromSeed("seed");
        String path = folder.resolve("given").toString();
        for (byte[] secret : new byte[][] {given, DeviceIdentifier.secretFromSeed("other"), null}) {
            try (LocalStore opened = LocalStore.open(path, JdbcDatabase::open, "app", new DeviceIdentity("d1", secret),
                cipher, LIMIT, clock)) {
                assertArrayEquals(given, opened.device().secret());
            }
        }
        assertEquals(32, store.device().secret().length);
    }

    @Test
    void aStoreOfAnotherDeviceAndOneInUseAreRefused() {
        String path = folder.resolve("s").toString();
        SyncException inUse = assertThrows(SyncException.class,
            () -> LocalStore.open(path, JdbcDatabase::open, "app", new DeviceIdentity("d1", null),
                PayloadCipher.of(null), LIMIT, clock));
        assertEquals(SyncException.Code.STORE_IN_USE, inUse.code());
        store.close();
        SyncException foreign = assertThrows(SyncException.class,
            () -> LocalStore.open(path, JdbcDatabase::open, "app", new DeviceIdentity("d2", null),
                PayloadCipher.of(null), LIMIT, clock));
        assertEquals(SyncException.Code.FOREIGN_STORE, foreign.code());
        assertTrue(foreign.getMessage().contains("d1"), foreign.getMessage());
        open();
    }

    @Test
    void aStoreOfANewerVersionStaysUnchanged() throws Exception {
        store.close();
        SyncDatabase database = JdbcDatabase.open(folder.resolve("s").toString());
        database.execute("PRAGMA user_version = 99");
        database.close();
        SyncException error = assertThrows(SyncException.class, this::open);
        assertTrue(error.getMessage().contains("newer version"), error.getMessage());
        database = JdbcDatabase.open(folder.resolve("s").toString());
        database.execute("PRAGMA user_version = 3");
        database.close();
        open();
    }

    @Test
    void aNewIdentityKeepsTheUsersPositionsAndForgetsTheDevicesOwn() {
        ChannelBatch device = batch(0, 4, 4);
        device.kind = ChannelKind.DEVICE;
        push(device, batch(0, 2, 2));
        String former = store.device().deviceId();
        store.device().replaceIdentity();
        assertNotEquals(former, store.device().deviceId());
        assertTrue(store.channels().syncPoints(null, 10_000).isEmpty());
        assertEquals(2, position());
        reopen();
        assertNotEquals(former, store.device().deviceId());
        assertEquals(2, handOut("u1").size(), "data of the former id stays available");
    }

    @Test
    void connectionNumbersRiseAndTheTokenIsKept() {
        long first = store.device().countConnection();
        assertTrue(store.device().setPushToken(SyncPushToken.fcm("token")));
        assertFalse(store.device().setPushToken(SyncPushToken.fcm("token")));
        reopen();
        assertTrue(store.device().countConnection() > first);
        assertEquals("token", store.device().pushToken().token);
    }

    @Test
    void operationsStayInOrderUntilTheServiceHasThem() {
        List<SyncOperation> operations = new ArrayList<>();
        for (int number = 0; number < 70; number++) {
            operations.add(new SyncOperation("o" + number, "ORDER", "17", "update", new byte[1_000],
                Collections.<SyncOperation>emptyList()));
        }
        store.outbox().add(operations, "u1");
        store.outbox().add(operations.subList(0, 3), "u1");
        assertEquals(70, store.outbox().pending("u1").size());
        assertEquals(64, store.outbox().nextFrame("u1", 200_000).size());
        assertEquals(9, store.outbox().nextFrame("u1", 10_000).size());
        assertEquals(Collections.singletonList("o69"), store.outbox().cancel(Arrays.asList("o0", "o69"), "u1"));
        reopen();
        assertEquals("o0", store.outbox().nextFrame("u1", 1).get(0).operationId);
    }

    @Test
    void resultsOfTheServiceAreReadByTheClientAndHandedOutOnce() {
        SyncOperation operation =
            new SyncOperation("o1", "ORDER", "17", "update", new byte[0], Collections.<SyncOperation>emptyList());
        store.outbox().add(Collections.singletonList(operation), "u1");
        ChannelBatch results = batch(0, 1, 1);
        results.kind = ChannelKind.DEVICE;
        results.bizType = "MSS_RESULTS";
        results.entries.get(0).payload = ("{\"results\": [{\"operationId\": \"o1\", \"accepted\": true, \"code\": 200,"
            + " \"timestamp\": 5, \"import\": {\"n\": 1.50}}, {\"operationId\": \"unknown\"}, 7]}")
            .getBytes(StandardCharsets.UTF_8);
        push(results);
        assertEquals(ids(), handOut("u1"));
        assertEquals("{\"n\": 1.50}", store.outbox().result("u1", 0).result().imported());
        assertNull(store.outbox().result("u2", 0));
        store.outbox().confirm(store.outbox().result("u1", 0).result());
        assertNull(store.outbox().result("u1", 0));
        assertEquals(0, store.outbox().pending("u1").size());
        assertEquals(1, store.unreported().report(null, 0).confirmed.size());
    }

    private FailingDatabase openFailing() {
        store.close();
        FailingDatabase[] database = new FailingDatabase[1];
        open(path -> database[0] = new FailingDatabase(path, "no statement has this text"), LIMIT);
        return database[0];
    }

    @Test
    void aHandOutThatCannotBeReadIsNotCountedAndComesNext() {
        FailingDatabase database = openFailing();
        push(batch(0, 3, 1, 2, 3));
        database.failOnce("SELECT oplog_id, payload", 1);
        assertThrows(SyncException.class, () -> handOut("u1"));
        List<SyncOplog> oplogs = handOutOplogs("u1");
        assertEquals(3, oplogs.size());
        assertEquals(1, oplogs.get(0).oplogId());
        assertEquals(1, oplogs.get(0).attempt());
    }

    @Test
    void aFailureInsideABatchShortensItAndTheRestComesNext() {
        FailingDatabase database = openFailing();
        push(batch(0, 4, 1, 2, 3, 4));
        database.failOnce("UPDATE oplog SET state = ?, was_shown", 3);
        SyncBatch first = delivery.next(null, "u1", 100, clock.nowMs());
        assertEquals(2, first.oplogs().size());
        assertTrue(first.hasMore());
        assertEquals(1, failures.size());
        SyncBatch second = delivery.next(null, "u1", 100, clock.nowMs());
        assertEquals(3, second.oplogs().get(0).oplogId());
        assertEquals(1, second.oplogs().get(0).attempt());
        assertEquals(2, second.oplogs().size());
    }

    @Test
    void aBatchWhoseRestCannotBeCountedIsStillHandedOut() {
        FailingDatabase database = openFailing();
        push(batch(0, 2, 1, 2));
        // The first read fills the page of ids.
        database.failOnce("SELECT oplog_id FROM oplog", 2);
        assertEquals(1, delivery.next(null, "u1", 1, clock.nowMs()).oplogs().size());
        assertEquals(1, failures.size());
        assertEquals(ids(2), handOut("u1"));
    }

    @Test
    void afterAFailureTheDatabaseFlushesTheNextTransactionAgain() throws Exception {
        SyncDatabase database = JdbcDatabase.open(folder.resolve("flush").toString());
        // SQLite refuses the PRAGMA that ends the step while a transaction is open.
        database.withoutFlush(() -> database.execute("BEGIN"));
        database.execute("COMMIT");
        assertEquals(1, database.query(row -> row.getLong(0), "PRAGMA synchronous").get(0));
        assertEquals(2, database.inTransaction(
            () -> database.query(row -> row.getLong(0), "PRAGMA synchronous").get(0)));
        database.close();
    }

    @Test
    void suspendedDataWaitsAndUnsubscribedDataIsGone() {
        push(batch(0, 2, 1, 2));
        store.suspended().set("UCHAT", true);
        assertEquals(ids(), handOut("u1"));
        store.suspended().set("UCHAT", false);
        assertEquals(ids(1, 2), handOut("u1"));
        store.suspended().deleteData("UCHAT", "u1");
        assertTrue(store.history().history("UCHAT", null, "u1", 0, 10).allStored().isEmpty());
        assertEquals(2, position());
        for (int number = 0; number < 200; number++) store.suspended().set("T" + number, true);
        assertThrows(SyncException.class, () -> store.suspended().set("ONE-MORE", true));
        reopen();
        assertEquals(200, store.suspended().list().size());
    }

    @Test
    void theLocalHistoryEndsAtItsFirstGap() {
        ChannelBatch batch = batch(0, 100, 99, 100);
        batch.passedOverUpto = 98;
        push(batch);
        assertEquals(99, store.history().history("UCHAT", null, "u1", 0, 10).requestBefore());
        assertEquals(2, store.history().history("UCHAT", null, "u1", 0, 10).complete().size());
    }
}
