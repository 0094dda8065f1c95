package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.mobilesync.SyncAppKey;
import org.mobilesync.SyncChannelSummary;
import org.mobilesync.SyncClient;
import org.mobilesync.SyncException;
import org.mobilesync.SyncHistory;
import org.mobilesync.SyncIdentity;
import org.mobilesync.SyncOperation;
import org.mobilesync.SyncOperationResult;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncParameterKind;
import org.mobilesync.SyncParameterValue;
import org.mobilesync.SyncPushToken;
import org.mobilesync.SyncTrust;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.database.SyncDatabase;
import org.mobilesync.internal.wire.Bind;
import org.mobilesync.internal.wire.ChannelKind;
import org.mobilesync.internal.wire.ChannelSummary;
import org.mobilesync.internal.wire.Close;
import org.mobilesync.internal.wire.ConfirmReport;
import org.mobilesync.internal.wire.Foreground;
import org.mobilesync.internal.wire.HistoryPage;
import org.mobilesync.internal.wire.HistoryRequest;
import org.mobilesync.internal.wire.OperationsTaken;
import org.mobilesync.internal.wire.Push;
import org.mobilesync.internal.wire.RequestRefusal;
import org.mobilesync.internal.wire.StoredAck;
import org.mobilesync.internal.wire.SubmitOperations;
import org.mobilesync.internal.wire.SummaryPage;
import org.mobilesync.internal.wire.SummaryRequest;

/** The client over TLS against a played gateway, with a real store. */
class ClientTests extends PlayedClient {
    // Connection.

    @Test
    void dataIsStoredAcknowledgedHandedOutConfirmedAndReported() throws Exception {
        PlayedGateway.Connection connection = open();
        client.listen("UCHAT", oplog -> {
            shown.add(oplog);
            client.confirm(oplog);
        });
        connection.send(push(ChannelKind.USER, 0, 3, 7));
        connection.find(StoredAck.class, ack -> ack.channels.get(0).upto == 7);
        assertEquals("oplog 3", nextShown().text());
        assertEquals(7, nextShown().oplogId());
        connection.find(ConfirmReport.class, report -> !report.channels.isEmpty());
        assertEquals(2, client.counters().oplogsStored());
        assertTrue(client.isConnected());
    }

    @Test
    void aCutConnectionIsMadeAgainWithThePositions() throws Exception {
        PlayedGateway.Connection connection = open();
        connection.send(push(ChannelKind.USER, 0, 5));
        connection.find(StoredAck.class, ack -> true);
        connection.cut();
        PlayedGateway.Connection again = gateway.open();
        assertEquals(5, again.connect().bind.syncPoints.get(0).oplogId);
        assertTrue(again.connect().connectionNumber > connection.connect().connectionNumber);
        events.find("lost");
    }

    @Test
    void aRefusedCertificateNamesTheExpectedAuthority() throws Exception {
        try (PlayedGateway other = new PlayedGateway(PlayedGateway.Keys.STRANGER)) {
            client.close();
            make(settings().gateway("127.0.0.1", other.port()).build());
            client.connect();
            String event = events.find("lost the gateway's certificate is refused");
            assertTrue(event.contains("CN=right"), event);
            assertTrue(event.contains("CN=stranger"), event);
        }
    }

    @Test
    void aGatewayThatRequiresAClientCertificateAcceptsTheClientWithOne() throws Exception {
        PlayedGateway.Keys own = PlayedGateway.Keys.STRANGER;
        try (PlayedGateway strict = PlayedGateway.requiring(own, PlayedGateway.Keys.RIGHT)) {
            client.close();
            make(settings().gateway("127.0.0.1", strict.port()).build());
            client.connect();
            events.find("lost");
            client.close();
        }
        try (PlayedGateway strict = PlayedGateway.requiring(own, PlayedGateway.Keys.RIGHT)) {
            make(settings().gateway("127.0.0.1", strict.port()).identity(own.identity()).build());
            client.connect();
            strict.open();
            events.find("status CONNECTED");
        }
    }

    @Test
    void aCloseForGoodStopsUntilTheAppConnects() throws Exception {
        PlayedGateway.Connection connection = open();
        Close close = new Close();
        close.code = 5_001;
        connection.send(close);
        events.find("closedForGood 5001");
        assertTrue(gateway.isLeftAlone(1_500));
        client.connect();
        gateway.open();
    }

    @Test
    void disconnectEndsTheConnectionAndConnectMakesItAgain() throws Exception {
        PlayedGateway.Connection connection = open();
        get(client.disconnect());
        connection.find(Close.class, close -> close.code == 1_000);
        connection.awaitEnd();
        assertTrue(gateway.isLeftAlone(300));
        client.connect();
        gateway.open();
    }

    @Test
    void closeSendsAClose1000AlsoWhenAListenerCallsIt() throws Exception {
        PlayedGateway.Connection connection = open();
        client.listen("UCHAT", oplog -> client.close());
        connection.send(push(ChannelKind.USER, 0, 1));
        connection.find(Close.class, close -> close.code == 1_000);
        connection.awaitEnd();
        client.close();
        make(settings().build());
    }

    @Test
    void closeWaitsForTheListenersCallSoThatItsConfirmationIsOnTheDisk() throws Exception {
        PlayedGateway.Connection connection = open();
        CountDownLatch called = new CountDownLatch(1);
        client.listen("UCHAT", oplog -> {
            called.countDown();
            client.confirm(oplog).join();
            shown.add(oplog);
        });
        connection.send(push(ChannelKind.USER, 0, 1));
        assertTrue(called.await(LIMIT_SECONDS, TimeUnit.SECONDS));
        client.close();
        assertEquals(1, nextShown().oplogId());
    }

    @Test
    void theBackgroundEndsTheConnectionAtOnceWhereItIsSetSo() throws Exception {
        client.close();
        make(settings().backgroundTimeMs(0).build());
        PlayedGateway.Connection connection = open();
        client.setForeground(false);
        connection.awaitEnd();
        assertTrue(gateway.isLeftAlone(300));
        client.setForeground(true);
        gateway.open();
    }

    @Test
    void theForegroundIsReported() throws Exception {
        PlayedGateway.Connection connection = open();
        client.setForeground(false);
        connection.find(Foreground.class, frame -> !frame.foreground);
    }

    @Test
    void anotherNetworkMakesANewConnectionAndNoNetworkNone() throws Exception {
        PlayedGateway.Connection connection = open();
        client.networkChanged(true, "wifi");
        connection.awaitEnd();
        PlayedGateway.Connection again = gateway.open();
        client.networkChanged(false, "wifi");
        again.awaitEnd();
        assertTrue(gateway.isLeftAlone(300));
    }

    @Test
    void aConnectIsSignedWithTheAppsKey() throws Exception {
        client.close();
        make(settings().appKey(new SyncAppKey("k1", "MDEyMzQ1Njc4OWFiY2RlZg==")).build());
        client.connect();
        assertEquals("k1", gateway.next().connect().signature.keyId);
    }

    // User.

    @Test
    void anotherUserIsBoundOnTheOpenConnectionAndDataOfTheFirstWaits() throws Exception {
        PlayedGateway.Connection connection = open();
        connection.send(push(ChannelKind.USER, 0, 1));
        connection.find(StoredAck.class, ack -> true);
        client.bind("u2", "s2");
        connection.find(Bind.class, bind -> bind.bindNumber == 2 && bind.userId.equals("u2"));
        connection.acceptBind(2);
        events.find("bound u2");
        client.listen("UCHAT", shown::add);
        connection.send(push(ChannelKind.DEVICE, 0, 8));
        assertEquals(8, nextShown().oplogId());
        client.bind("u1", "s1");
        assertEquals("u1", nextShown().userId());
    }

    @Test
    void anInvalidSessionIsToldAndACode4000SignsOut() throws Exception {
        PlayedGateway.Connection connection = open();
        Close close = new Close();
        close.code = 4_000;
        connection.send(close);
        PlayedGateway.Connection again = gateway.next();
        assertEquals(null, again.connect().bind);
        client.bind("u1", "s2");
        again.find(Bind.class, bind -> bind.sessionId.equals("s2"));
    }

    // Listeners.

    @Test
    void aListenerThatFailsIsToldAndItsDataStaysUnconfirmed() throws Exception {
        PlayedGateway.Connection connection = open();
        client.listen("UCHAT", oplog -> {
            throw new IllegalStateException("the app's fault");
        });
        connection.send(push(ChannelKind.USER, 0, 1));
        events.find("listenerFailed the app's fault");
        client.close();
        make(settings().build());
        client.listen("UCHAT", shown::add);
        client.bind("u1", "s1");
        assertEquals(2, nextShown().attempt());
    }

    @Test
    void batchesHaveUpToTheirLimitAndSayWhetherMoreFollows() throws Exception {
        PlayedGateway.Connection connection = open();
        connection.send(push(ChannelKind.USER, 0, 1, 2, 3, 4, 5));
        connection.find(StoredAck.class, ack -> true);
        BlockingQueue<String> batches = new LinkedBlockingQueue<>();
        client.listenInBatches("UCHAT", 3, batch -> {
            batches.add(batch.oplogs().size() + " " + batch.hasMore());
            client.confirm(batch);
        });
        assertEquals("3 true", batches.poll(LIMIT_SECONDS, TimeUnit.SECONDS));
        assertEquals("2 false", batches.poll(LIMIT_SECONDS, TimeUnit.SECONDS));
    }

    @Test
    void dataThatWasOnItsWayToAListenerWaitsWhenAnotherUserIsBound() throws Exception {
        PlayedGateway.Connection connection = open();
        client.listen("UCHAT", shown::add);
        CountDownLatch release = blockListener(connection);
        connection.send(push(ChannelKind.USER, 0, 1, 2));
        connection.find(StoredAck.class, ack -> ack.channels.get(0).bizType.equals("UCHAT"));
        get(client.bind("u2", "s2"));
        release.countDown();
        assertEquals(null, shown.poll(300, TimeUnit.MILLISECONDS));
        client.bind("u1", "s1");
        SyncOplog first = nextShown();
        assertEquals(1, first.oplogId());
        assertEquals(1, first.attempt());
        assertEquals(2, nextShown().oplogId());
    }

    @Test
    void anEndedRegistrationReceivesNothingAndTheDataWaits() throws Exception {
        PlayedGateway.Connection connection = open();
        Runnable endListening = client.listen("UCHAT", oplog -> {
            throw new IllegalStateException("called after its end");
        });
        endListening.run();
        connection.send(push(ChannelKind.USER, 0, 1));
        connection.find(StoredAck.class, ack -> true);
        client.listen("UCHAT", shown::add);
        assertEquals(1, nextShown().attempt());
    }

    // Wake-up, lists, operations.

    @Test
    void aNewPushTokenIsReportedAtOnceAndTheSameOneIsNot() throws Exception {
        PlayedGateway.Connection connection = open();
        client.setPushToken(SyncPushToken.fcm("abc:def"));
        connection.awaitEnd();
        PlayedGateway.Connection again = gateway.open();
        assertEquals("abc:def", again.connect().pushToken.token);
        assertEquals(2, again.connect().pushToken.provider);
        get(client.setPushToken(SyncPushToken.fcm("abc:def")));
        assertTrue(gateway.isLeftAlone(300));
    }

    @Test
    void theHistoryIsReadFromTheStoreAndThenFromTheServer() throws Exception {
        PlayedGateway.Connection connection = open();
        Push push = push(ChannelKind.USER, 0, 9, 10);
        push.batches.get(0).passedOverUpto = 8;
        connection.send(push);
        connection.find(StoredAck.class, ack -> true);
        SyncHistory local = get(client.localHistory("UCHAT", 0, 4));
        assertEquals("2 true true", local.oplogs().size() + " " + local.hasMore() + " " + local.isComplete());
        assertFalse(connection.has(HistoryRequest.class));
        CompletableFuture<SyncHistory> history = client.history("UCHAT", 0, 4);
        HistoryRequest request = connection.find(HistoryRequest.class, frame -> true);
        assertEquals(9, request.before);
        assertEquals(2, request.count);
        HistoryPage page = new HistoryPage();
        page.requestNumber = request.requestNumber;
        page.bindNumber = 1;
        page.head = 10;
        page.entries.add(entry(8, "eight"));
        page.entries.add(entry(7, "seven"));
        page.more = true;
        page.next = 7;
        connection.send(page);
        SyncHistory result = get(history);
        assertEquals("[10, 9, 8, 7]", Arrays.toString(
            result.oplogs().stream().mapToLong(SyncOplog::oplogId).toArray()));
        assertTrue(result.hasMore());
        assertTrue(result.isComplete());
        // The same part is now in the store.
        assertEquals(4, get(client.history("UCHAT", 0, 4)).oplogs().size());
        assertEquals(10, get(client.localHistory("UCHAT", 0, 1)).oplogs().get(0).oplogId());
        connection.cut();
    }

    @Test
    void aRefusedHistoryIsAnError() throws Exception {
        PlayedGateway.Connection connection = open();
        CompletableFuture<SyncHistory> history = client.history("UCHAT", 0, 4);
        refuseHistory(connection, RequestRefusal.NOT_ELIGIBLE);
        assertEquals(SyncException.Code.NOT_ELIGIBLE, failure(history));
    }

    @Test
    void withoutAConnectionListsHaveTheLocalPart() throws Exception {
        PlayedGateway.Connection connection = open();
        connection.send(push(ChannelKind.USER, 0, 9));
        connection.find(StoredAck.class, ack -> true);
        get(client.disconnect());
        assertEquals(1, get(client.history("UCHAT", 0, 4)).oplogs().size());
        SyncChannelSummary summary = get(client.channelSummaries()).get(0);
        assertEquals(1, summary.unconfirmed());
        assertEquals(SyncChannelSummary.UNKNOWN, summary.notReceived());
    }

    @Test
    void theSummaryMergesDeviceAndServer() throws Exception {
        PlayedGateway.Connection connection = open();
        connection.send(push(ChannelKind.USER, 0, 9));
        connection.find(StoredAck.class, ack -> true);
        CompletableFuture<List<SyncChannelSummary>> summaries = client.channelSummaries();
        SummaryPage page = new SummaryPage();
        page.requestNumber = connection.find(SummaryRequest.class, frame -> true).requestNumber;
        ChannelSummary channel = new ChannelSummary();
        channel.bizType = "UCHAT";
        channel.head = 12;
        channel.last = entry(12, "newest");
        channel.waiting = 3;
        page.channels.add(channel);
        connection.send(page);
        SyncChannelSummary summary = get(summaries).get(0);
        assertEquals("newest", summary.last().text());
        assertEquals(3, summary.notReceived());
        assertEquals(1, summary.unconfirmed());
    }

    @Test
    void anOperationIsSentAndItsResultIsHandedOutUntilItIsConfirmed() throws Exception {
        client.bind("u1", "s1");
        get(client.submit(Collections.singletonList(new SyncOperation(
            "o1", "ORDER", "17", "update", new byte[] {1}, Collections.<SyncOperation>emptyList()))));
        client.connect();
        PlayedGateway.Connection connection = gateway.open();
        SubmitOperations frame = connection.find(SubmitOperations.class, submit -> true);
        assertEquals("o1", frame.operations.get(0).operationId);
        OperationsTaken taken = new OperationsTaken();
        taken.number = frame.number;
        connection.send(taken);
        Push push = push(ChannelKind.DEVICE, 0, 1);
        push.batches.get(0).bizType = "MSS_RESULTS";
        push.batches.get(0).entries.get(0).payload =
            "{\"results\":[{\"operationId\":\"o1\",\"accepted\":true,\"code\":201,\"timestamp\":5}]}"
                .getBytes(StandardCharsets.UTF_8);
        connection.send(push);
        BlockingQueue<SyncOperationResult> results = new LinkedBlockingQueue<>();
        client.listenForResults(results::add);
        SyncOperationResult result = results.poll(LIMIT_SECONDS, TimeUnit.SECONDS);
        assertEquals(201, result.code());
        assertEquals("ORDER", result.component());
        get(client.confirm(result));
        assertEquals(0, get(client.pendingOperations()).size());
    }

    // Store.

    @Test
    void aFullDiskAcknowledgesNothingAndTheDataComesWhenThereIsSpace() throws Exception {
        client.close();
        boolean[] isFull = {true};
        make(settings().store(folder.resolve("small").toString(), path -> {
            SyncDatabase database = JdbcDatabase.open(path);
            String pages = isFull[0] ? "70" : "100000";
            database.query(row -> row.getLong(0), "PRAGMA max_page_count = " + pages);
            return database;
        }).build());
        client.listen("UCHAT", shown::add);
        PlayedGateway.Connection connection = open();
        Push large = push(ChannelKind.USER, 0, 1, 2);
        large.batches.get(0).entries.get(0).payload = new byte[400_000];
        connection.send(large);
        events.find("storeFailed STORE_FULL");
        connection.awaitEnd();
        assertFalse(connection.has(StoredAck.class));
        assertEquals(0, client.counters().oplogsStored());
        assertTrue(client.counters().storeFailures() > 0);
        client.close();
        isFull[0] = false;
        make(settings().appVersion("2.0").store(folder.resolve("small").toString(), JdbcDatabase::open).build());
        client.listen("UCHAT", shown::add);
        PlayedGateway.Connection again = open();
        // The former client may have connected again before it was closed.
        while (!again.connect().appVersion.equals("2.0")) again = gateway.open();
        again.send(large);
        again.find(StoredAck.class, ack -> ack.channels.get(0).upto == 2);
        assertEquals(1, nextShown().oplogId());
    }

    @Test
    void aDamagedStoreIsReplacedToldAndCounted() throws Exception {
        client.close();
        Files.write(folder.resolve("store"), "damaged beyond all repair, and long enough".getBytes(
            StandardCharsets.UTF_8));
        Files.deleteIfExists(folder.resolve("store-wal"));
        make(settings().build());
        assertTrue(client.replacedDamagedStore());
        assertEquals(1, client.counters().storesReplaced());
    }

    @Test
    void anEncryptedStoreNeedsItsKeyUntilTheAppRemovesIt() throws Exception {
        byte[] key = new byte[32];
        client.close();
        make(settings().storeKey(key).build());
        PlayedGateway.Connection connection = open();
        connection.send(push(ChannelKind.USER, 0, 1));
        connection.find(StoredAck.class, ack -> true);
        client.close();
        check(SyncException.Code.STORE_KEY, "give its key as storeKey", () -> new SyncClient(settings().build()));
        make(settings().storeKey(key).build());
        get(client.changeStoreKey(null));
        client.close();
        make(settings().build());
        client.listen("UCHAT", shown::add);
        client.bind("u1", "s1");
        assertEquals("oplog 1", nextShown().text());
        check(SyncException.Code.INVALID_ARGUMENT, "32 bytes", () -> client.changeStoreKey(new byte[8]));
    }

    @Test
    void aClientThatCannotStartReleasesItsStore() throws Exception {
        client.close();
        SyncException error = assertThrows(SyncException.class, () -> new SyncClient(settings()
            .store(folder.resolve("store").toString(), path -> new FailingDatabase(path, "UPDATE oplog")).build()));
        assertEquals(SyncException.Code.STORE, error.code());
        assertTrue(error.getMessage().contains("check space and access rights"), error.getMessage());
        make(settings().build());
    }

    @Test
    void aConfirmationThatIsNotOnTheDiskIsAnErrorAndTheDataComesAgain() throws Exception {
        PlayedGateway.Connection connection = open();
        client.listen("UCHAT", shown::add);
        connection.send(push(ChannelKind.USER, 0, 1));
        nextShown();
        client.close();
        make(settings().store(folder.resolve("store").toString(),
            path -> new FailingDatabase(path, "needs_report = 1 WHERE channel_id")).build());
        client.listen("UCHAT", shown::add);
        client.bind("u1", "s1");
        assertEquals(SyncException.Code.STORE, failure(client.confirm(nextShown())));
        client.close();
        make(settings().build());
        client.listen("UCHAT", shown::add);
        client.bind("u1", "s1");
        assertEquals(3, nextShown().attempt());
    }

    // Misuse.

    @Test
    void everyMisuseHasATypedErrorThatSaysWhatToDo() throws Exception {
        SyncException.Code invalid = SyncException.Code.INVALID_ARGUMENT;
        check(invalid, "userId", () -> client.bind("", "s"));
        check(invalid, "sessionId", () -> client.bind("u", new String(new char[5_000]).replace('\0', 'x')));
        check(invalid, "Sync ID", () -> client.listen("", oplog -> { }));
        check(invalid, "listenForResults", () -> client.listen("MSS_RESULTS", oplog -> { }));
        check(invalid, "Sync ID", () -> client.suspend("a much too long name of a Sync ID"));
        check(invalid, "conversation", () -> client.history("UCHAT", "", 0, 1));
        check(invalid, "conversation", () -> client.markRead("UCHAT", new String(new char[101]), 1));
        check(invalid, "listenForResults", () -> client.conversations("MSS_RESULTS"));
        check(invalid, "a parameter's name", () -> client.setParameter("NEWS", "", null, SyncParameterKind.CLIENT));
        check(invalid, "finite number", () -> SyncParameterValue.number(Double.NaN));
        check(invalid, "200 characters", () -> SyncParameterValue.text(new String(new char[201]).replace('\0', 'x')));
        assertEquals(invalid, failure(
            client.setParameter("NEWS", "max", SyncParameterValue.number(1), SyncParameterKind.SERVER)));
        for (int number = 0; number < 64; number++) {
            get(client.setParameter("NEWS", "p" + number, SyncParameterValue.number(1), SyncParameterKind.CLIENT));
        }
        assertEquals(invalid, failure(
            client.setParameter("NEWS", "more", SyncParameterValue.number(1), SyncParameterKind.SESSION)));
        check(invalid, "FCM", () -> SyncPushToken.fcm("with blanks"));
        check(invalid, "Base64", () -> new SyncAppKey("k", "short"));
        check(invalid, "component", () -> client.submit(
            Collections.singletonList(new SyncOperation("not valid", "1", "x", new byte[0]))));
        check(invalid, "host", () -> settings().gateway("https://host", 443).build());
        check(invalid, "port", () -> settings().gateway("host", 0).build());
        check(invalid, "JdbcDatabase", () -> settings().store("", null).build());
        check(invalid, "storeLimit", () -> settings().storeLimit(10).build());
        check(invalid, "32 bytes", () -> settings().storeKey(new byte[16]).build());
        check(SyncException.Code.TRUST, "path", () -> SyncTrust.authorityFile("/nonexistent.pem"));
        check(SyncException.Code.TRUST, "operator", () -> SyncTrust.authorityText(new byte[] {1}, "mss-ca.pem"));
        String right = PlayedGateway.Keys.RIGHT.authority().toString();
        String stranger = PlayedGateway.Keys.STRANGER.key().toString();
        check(SyncException.Code.TRUST, "another certificate", () -> SyncIdentity.files(right, stranger));
        check(SyncException.Code.TRUST, "openssl pkcs8", () -> SyncIdentity.files(right, right));
        check(SyncException.Code.TRUST, "paths", () -> SyncIdentity.files("/nonexistent.pem", stranger));
        check(SyncException.Code.STORE_IN_USE, "close that client", () -> new SyncClient(settings().build()));
        assertEquals(invalid, failure(client.submit(
            Collections.singletonList(new SyncOperation("ORDER", "1", "update", new byte[0])))));
        client.close();
        assertEquals(SyncException.Code.CLOSED, failure(client.bind("u", "s")));
        assertEquals(SyncException.Code.CLOSED, failure(client.history("UCHAT", 0, 1)));
    }

    private static void check(SyncException.Code code, String remedy, Runnable call) {
        SyncException error = assertThrows(SyncException.class, call::run);
        assertEquals(code, error.code(), error.getMessage());
        assertTrue(error.getMessage().contains(remedy), error.getMessage());
    }
}
