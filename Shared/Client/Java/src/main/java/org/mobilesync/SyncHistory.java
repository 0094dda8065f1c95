package org.mobilesync;

import java.util.Collections;
import java.util.List;

/** One part of a channel's history, newest oplog first. */
public final class SyncHistory {
    private final List<SyncOplog> oplogs;
    private final boolean hasMore;
    private final boolean isComplete;

    /** Creates a part. For the library's own use. */
    public SyncHistory(List<SyncOplog> oplogs, boolean hasMore, boolean isComplete) {
        this.oplogs = Collections.unmodifiableList(oplogs);
        this.hasMore = hasMore;
        this.isComplete = isComplete;
    }

    /**
     * Returns the oplogs, confirmed or not. Fewer than requested only at the end of the history, or without the
     * gateway. The last id is the {@code before} of the next older part.
     */
    public List<SyncOplog> oplogs() {
        return oplogs;
    }

    /** Returns whether older oplogs can exist. */
    public boolean hasMore() {
        return hasMore;
    }

    /** Returns whether there is no gap. False when the gateway did not answer and the local store lacks oplogs. */
    public boolean isComplete() {
        return isComplete;
    }
}
