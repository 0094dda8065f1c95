package org.mobilesync.tests;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;
import org.mobilesync.SyncBatch;
import org.mobilesync.SyncException;
import org.mobilesync.SyncOplog;
import org.mobilesync.database.DatabaseOpener;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.internal.delivery.OplogDelivery;
import org.mobilesync.internal.store.DeviceIdentity;
import org.mobilesync.internal.store.LocalStore;
import org.mobilesync.internal.store.PayloadCipher;
import org.mobilesync.internal.store.StoreOutcome;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.Entry;

/** A local store on a real SQLite file with a played clock, for the tests of a class. */
abstract class OpenedStore {
    static final long LIMIT = 100_000_000;

    @TempDir
    Path folder;
    final PlayedClock clock = new PlayedClock();
    LocalStore store;
    OplogDelivery delivery;
    final List<SyncException> failures = new ArrayList<>();
    boolean isCounted = true;
    PayloadCipher cipher = PayloadCipher.of(null);

    @BeforeEach
    void open() {
        open(JdbcDatabase::open, LIMIT);
    }

    void open(DatabaseOpener opener, long limit) {
        store = LocalStore.open(
            folder.resolve("s").toString(), opener, "app", new DeviceIdentity("d1", null), cipher, limit, clock);
        delivery = new OplogDelivery(store, 0, row -> isCounted, failures::add);
    }

    @AfterEach
    void close() {
        store.close();
    }

    void reopen() {
        store.close();
        open();
    }

    static ChannelBatch batch(long after, long upto, long... ids) {
        ChannelBatch batch = new ChannelBatch();
        batch.bizType = "UCHAT";
        batch.bindNumber = 1;
        batch.after = after;
        batch.upto = upto;
        for (long id : ids) batch.entries.add(entry(id));
        return batch;
    }

    static Entry entry(long id) {
        Entry entry = new Entry();
        entry.oplogId = id;
        entry.payload = ("oplog " + id).getBytes(StandardCharsets.UTF_8);
        entry.createdAtMs = 1_000 + id;
        return entry;
    }

    StoreOutcome push(ChannelBatch... batches) {
        StoreOutcome outcome = store.pushes().store(Arrays.asList(batches), "u1", 1);
        delivery.markUnread(outcome.filledChannels);
        return outcome;
    }

    List<Long> handOut(String userId) {
        List<Long> ids = new ArrayList<>();
        for (SyncOplog oplog : handOutOplogs(userId)) ids.add(oplog.oplogId());
        return ids;
    }

    List<SyncOplog> handOutOplogs(String userId) {
        List<SyncOplog> oplogs = new ArrayList<>();
        while (true) {
            SyncBatch next = delivery.next(null, userId, 1, clock.nowMs());
            if (next == null) return oplogs;
            oplogs.addAll(next.oplogs());
        }
    }

    static List<Long> ids(long... ids) {
        List<Long> list = new ArrayList<>();
        for (long id : ids) list.add(id);
        return list;
    }

    long position() {
        return store.channels().syncPoints("u1", 10_000).stream().mapToLong(point -> point.oplogId).sum();
    }
}
