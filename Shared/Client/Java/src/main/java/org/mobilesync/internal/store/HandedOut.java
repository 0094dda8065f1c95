package org.mobilesync.internal.store;

import org.mobilesync.SyncOplog;

/** An oplog that the app has and has not confirmed, without its payload. */
public final class HandedOut {
    private final long channelRow;
    private final long oplogId;
    private final int repeats;
    private final int handOuts;

    /** Creates the record of a hand-out. */
    public HandedOut(SyncOplog oplog) {
        channelRow = oplog.channelRow();
        oplogId = oplog.oplogId();
        repeats = oplog.repeats();
        handOuts = oplog.attempt();
    }

    /** Returns the channel's row. */
    public long channelRow() {
        return channelRow;
    }

    /** Returns the oplog id. */
    public long oplogId() {
        return oplogId;
    }

    /** Returns the count of resends on the ladder, at most {@code Limits.RESENDS}. */
    public int repeats() {
        return repeats;
    }

    /** Returns the count of hand-outs for any cause. */
    public int handOuts() {
        return handOuts;
    }
}
