package org.mobilesync.internal.store;

/** The cause of an oplog's arrival. It decides about an oplog that is already stored. */
enum OplogOrigin {
    /** A batch of the channel. */
    PUSH,
    /** A batch with data that this store had before it was replaced by an older copy of itself. */
    AGAIN,
    /** A changed parameter lets the oplog through the filter. */
    NEWLY_MATCHING,
    /** An operator has replayed the oplog. */
    REREAD,
    /** The app has requested all data of the Sync ID. */
    RECOVERY,
    /** A list has requested it; the app's listeners do not receive it. */
    HISTORY;

    boolean isReplay() {
        return this == AGAIN || this == REREAD || this == RECOVERY;
    }
}
