package org.mobilesync.internal.client;

import java.util.concurrent.atomic.AtomicLong;
import org.mobilesync.SyncCounters;

/** Counts a client's actions. Callable from any thread. */
final class Counts {
    private final AtomicLong connections = new AtomicLong();
    private final AtomicLong stored = new AtomicLong();
    private final AtomicLong handedOut = new AtomicLong();
    private final AtomicLong confirmed = new AtomicLong();
    private final AtomicLong storeFailures = new AtomicLong();
    private final long storesReplaced;

    Counts(long storesReplaced) {
        this.storesReplaced = storesReplaced;
    }

    void connected() {
        connections.incrementAndGet();
    }

    void stored(long oplogs) {
        stored.addAndGet(oplogs);
    }

    void handedOut(long oplogs) {
        handedOut.addAndGet(oplogs);
    }

    void confirmed(long oplogs) {
        confirmed.addAndGet(oplogs);
    }

    void storeFailed() {
        storeFailures.incrementAndGet();
    }

    SyncCounters snapshot() {
        return new SyncCounters(connections.get(), stored.get(), handedOut.get(), confirmed.get(),
            storeFailures.get(), storesReplaced);
    }
}
