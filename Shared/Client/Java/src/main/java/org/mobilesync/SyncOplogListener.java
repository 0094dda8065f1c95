package org.mobilesync;

/** Receives oplogs, one after the other, in ascending order of ids within each channel (K3). */
public interface SyncOplogListener {
    /**
     * Called with new data, and again with unconfirmed data (D14). The next call follows after this one returns.
     * Confirm with {@link SyncClient#confirm} after the app has processed it. An exception counts as no confirmation.
     */
    void onOplog(SyncOplog oplog);
}
