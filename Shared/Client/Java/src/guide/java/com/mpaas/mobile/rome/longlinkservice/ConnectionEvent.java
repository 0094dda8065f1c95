package com.mpaas.mobile.rome.longlinkservice;

import org.mobilesync.SyncStatus;

/** A change of the connection's status. */
public final class ConnectionEvent {
    private final SyncStatus status;

    /** Creates an event. For the library's own use. */
    public ConnectionEvent(SyncStatus status) {
        this.status = status;
    }

    /** Returns the number of the status: 0 not available, 1 connecting, 2 connected, 3 failed (K1). */
    public int getConnectionState() {
        return status.number();
    }

    /** Returns the name of the status, for example {@code CONNECTED}. */
    public String getConnectionStateName() {
        return status.name();
    }
}
