package org.mobilesync;

/** Counts of a client's actions since its creation. A snapshot. */
public final class SyncCounters {
    private final long connections;
    private final long oplogsStored;
    private final long oplogsHandedOut;
    private final long oplogsConfirmed;
    private final long storeFailures;
    private final long storesReplaced;

    /** Creates a snapshot. For the library's own use. */
    public SyncCounters(long connections, long oplogsStored, long oplogsHandedOut, long oplogsConfirmed,
        long storeFailures, long storesReplaced) {
        this.connections = connections;
        this.oplogsStored = oplogsStored;
        this.oplogsHandedOut = oplogsHandedOut;
        this.oplogsConfirmed = oplogsConfirmed;
        this.storeFailures = storeFailures;
        this.storesReplaced = storesReplaced;
    }

    /** Returns the count of connections that a gateway has accepted. */
    public long connections() {
        return connections;
    }

    /** Returns the count of oplogs that push frames brought into the store, without known ones. */
    public long oplogsStored() {
        return oplogsStored;
    }

    /** Returns the count of hand-outs to listeners, resends included. */
    public long oplogsHandedOut() {
        return oplogsHandedOut;
    }

    /** Returns the count of oplogs in the app's confirmations. */
    public long oplogsConfirmed() {
        return oplogsConfirmed;
    }

    /** Returns the count of steps of the local store that failed, for example on a full disk. */
    public long storeFailures() {
        return storeFailures;
    }

    /** Returns how often a damaged store at this path was replaced, over all starts of the app. */
    public long storesReplaced() {
        return storesReplaced;
    }
}
