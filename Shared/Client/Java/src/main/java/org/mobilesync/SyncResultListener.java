package org.mobilesync;

/** Receives the results of the bound user's operations, one after the other. */
public interface SyncResultListener {
    /**
     * Called with a result, each one once in a run of the app, and again after a restart until
     * {@link SyncClient#confirm(SyncOperationResult)}. The next call follows after this one returns.
     */
    void onResult(SyncOperationResult result);
}
