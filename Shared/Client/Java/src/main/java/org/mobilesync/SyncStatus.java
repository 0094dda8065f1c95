package org.mobilesync;

/** The status of a client's connection. The numbers are those of the vendor's guide (K1). */
public enum SyncStatus {
    /** The client is not started, wants no connection, or waits before the next attempt. */
    NOT_AVAILABLE(0),
    /** A connection attempt is in progress. */
    CONNECTING(1),
    /** The gateway has accepted this client. */
    CONNECTED(2),
    /** The last attempt failed. The client tries again. */
    CONNECT_FAILED(3);

    private final int number;

    SyncStatus(int number) {
        this.number = number;
    }

    /** Returns the number of the guide. */
    public int number() {
        return number;
    }
}
