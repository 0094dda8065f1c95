package org.mobilesync.tests;

import java.nio.file.Files;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.mobilesync.SyncClient;
import org.mobilesync.SyncConfiguration;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncTransport;
import org.mobilesync.SyncTrust;
import org.mobilesync.database.JdbcDatabase;

/** A client of a running service that keeps what arrives, for the programs that end-to-end tests run. */
final class StackDevice {
    static final long LIMIT_MS = 20_000;

    final SyncClient client;
    private final BlockingQueue<SyncOplog> shown = new LinkedBlockingQueue<>();

    private StackDevice(SyncClient client) {
        this.client = client;
    }

    /** Creates a client with a new store. */
    static StackDevice make(String port, String authority, String instance, String id, SyncTransport transport)
        throws Exception {
        return new StackDevice(new SyncClient(SyncConfiguration.builder()
            .gateway("127.0.0.1", Integer.parseInt(port)).instanceId(instance).deviceId(id)
            .store(Files.createTempDirectory("stack-device").resolve("store").toString(), JdbcDatabase::open)
            .trust(SyncTrust.authorityFile(authority)).operatingSystem("Android", "").appVersion("1.0")
            .transport(transport).build()));
    }

    /** Shows and confirms the data of a Sync ID. The returned Runnable ends it. */
    Runnable show(String bizType) {
        return client.listen(bizType, oplog -> {
            shown.add(oplog);
            client.confirm(oplog);
        });
    }

    /** Binds a user, and connects until the backlog has arrived. */
    void open(String user) throws Exception {
        client.bind(user, "s1");
        client.connect();
        eventually("caught up", client::isCaughtUp);
    }

    SyncOplog next() throws InterruptedException {
        SyncOplog oplog = shown.poll(LIMIT_MS, TimeUnit.MILLISECONDS);
        if (oplog == null) throw new AssertionError("nothing arrived");
        return oplog;
    }

    static void check(Object expected, Object seen) {
        if (!expected.equals(seen)) throw new AssertionError("expected " + expected + ", seen " + seen);
    }

    static void eventually(String what, Callable<Boolean> condition) throws Exception {
        long end = System.currentTimeMillis() + LIMIT_MS;
        while (!condition.call()) {
            if (System.currentTimeMillis() > end) throw new AssertionError("did not happen: " + what);
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }
}
