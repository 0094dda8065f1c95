package org.mobilesync;

/** Receives oplogs in batches. A batch has oplogs of one channel, as many as are available, up to the limit. */
public interface SyncBatchListener {
    /**
     * Called with new data, and again with unconfirmed data (D14). The next call follows after this one returns.
     * Confirm with {@link SyncClient#confirm} after the app has processed it. An exception counts as no confirmation.
     */
    void onBatch(SyncBatch batch);
}
