package org.mobilesync;

import java.util.Collections;
import java.util.List;

/** Oplogs of one channel in ascending order of their ids. */
public final class SyncBatch {
    private final List<SyncOplog> oplogs;
    private final boolean hasMore;

    /** Creates a batch of at least one oplog. For the library's own use. */
    public SyncBatch(List<SyncOplog> oplogs, boolean hasMore) {
        this.oplogs = Collections.unmodifiableList(oplogs);
        this.hasMore = hasMore;
    }

    /** Returns the oplogs, at least one. */
    public List<SyncOplog> oplogs() {
        return oplogs;
    }

    /** Returns whether the local store already has more oplogs of this channel for the app. */
    public boolean hasMore() {
        return hasMore;
    }

    /** Returns the Sync ID of all oplogs in the batch. */
    public String bizType() {
        return oplogs.get(0).bizType();
    }

    /** Returns the user of the data; null for device data. */
    public String userId() {
        return oplogs.get(0).userId();
    }
}
