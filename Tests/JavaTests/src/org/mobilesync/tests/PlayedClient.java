package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import org.mobilesync.SyncClient;
import org.mobilesync.SyncConfiguration;
import org.mobilesync.SyncException;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncTrust;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.ChannelKind;
import org.mobilesync.internal.wire.Entry;
import org.mobilesync.internal.wire.HistoryPage;
import org.mobilesync.internal.wire.HistoryRequest;
import org.mobilesync.internal.wire.Push;

/** A client over TLS and a played gateway, for the tests of a class. */
abstract class PlayedClient {
    static final long LIMIT_SECONDS = 15;

    @TempDir
    Path folder;
    final RecordedEvents events = new RecordedEvents();
    final BlockingQueue<SyncOplog> shown = new LinkedBlockingQueue<>();
    PlayedGateway gateway;
    SyncClient client;

    @BeforeEach
    void makeGatewayAndClient() throws Exception {
        gateway = new PlayedGateway(PlayedGateway.Keys.RIGHT);
        make(settings().build());
    }

    void make(SyncConfiguration configuration) {
        client = new SyncClient(configuration);
        client.addListener(events);
    }

    @AfterEach
    void end() throws Exception {
        client.close();
        gateway.close();
    }

    SyncConfiguration.Builder settings() {
        return SyncConfiguration.builder().gateway("127.0.0.1", gateway.port()).instanceId("demo_app").deviceId("d1")
            .store(folder.resolve("store").toString(), JdbcDatabase::open)
            .trust(SyncTrust.authorityFile(gateway.authority())).appVersion("1.0");
    }

    PlayedGateway.Connection open() throws Exception {
        client.bind("u1", "s1");
        client.connect();
        PlayedGateway.Connection connection = gateway.open();
        events.find("bound u1");
        return connection;
    }

    /** Keeps a listener of the client busy. Returns the latch that ends it. */
    CountDownLatch blockListener(PlayedGateway.Connection connection) throws Exception {
        CountDownLatch isBlocking = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        client.listen("BLOCKING", oplog -> {
            isBlocking.countDown();
            try {
                release.await();
            } catch (InterruptedException error) {
                throw new IllegalStateException(error);
            }
        });
        Push blocking = push(ChannelKind.DEVICE, 0, 1);
        blocking.batches.get(0).bizType = "BLOCKING";
        connection.send(blocking);
        assertTrue(isBlocking.await(LIMIT_SECONDS, TimeUnit.SECONDS));
        return release;
    }

    /** Refuses the history request that the client has sent. */
    static void refuseHistory(PlayedGateway.Connection connection, long refusal) throws Exception {
        HistoryPage page = new HistoryPage();
        page.requestNumber = connection.find(HistoryRequest.class, frame -> true).requestNumber;
        page.refusal = refusal;
        connection.send(page);
    }

    static Push push(long kind, long after, long... ids) {
        ChannelBatch batch = new ChannelBatch();
        batch.kind = kind;
        batch.bizType = "UCHAT";
        batch.bindNumber = kind == ChannelKind.USER ? 1 : 0;
        batch.after = after;
        for (long id : ids) {
            batch.entries.add(entry(id, "oplog " + id));
            batch.upto = id;
        }
        Push push = new Push();
        push.batches.add(batch);
        return push;
    }

    static Entry entry(long id, String payload) {
        Entry entry = new Entry();
        entry.oplogId = id;
        entry.payload = payload.getBytes(StandardCharsets.UTF_8);
        return entry;
    }

    SyncOplog nextShown() throws Exception {
        SyncOplog oplog = shown.poll(LIMIT_SECONDS, TimeUnit.SECONDS);
        if (oplog == null) throw new AssertionError("nothing was handed out");
        return oplog;
    }

    static <T> T get(CompletableFuture<T> future) throws Exception {
        return future.get(LIMIT_SECONDS, TimeUnit.SECONDS);
    }

    static SyncException.Code failure(CompletableFuture<?> future) {
        ExecutionException error =
            assertThrows(ExecutionException.class, () -> future.get(LIMIT_SECONDS, TimeUnit.SECONDS));
        return ((SyncException) error.getCause()).code();
    }
}
