package org.mobilesync;

import java.nio.charset.StandardCharsets;

/** One push, as the app receives it. Immutable; callers must not change the payload's array. */
public final class SyncOplog {
    private final String bizType;
    private final long oplogId;
    private final byte[] payload;
    private final boolean isBinary;
    private final String thirdMessageId;
    private final String conversation;
    private final long createdAtMs;
    private final String userId;
    private final long recalls;
    private final boolean isReplay;
    private final long channelRow;
    private final int handOuts;
    private final int repeats;

    private SyncOplog(Builder builder) {
        bizType = builder.bizType;
        oplogId = builder.oplogId;
        payload = builder.payload;
        isBinary = builder.isBinary;
        thirdMessageId = builder.thirdMessageId;
        conversation = builder.conversation;
        createdAtMs = builder.createdAtMs;
        userId = builder.userId;
        recalls = builder.recalls;
        isReplay = builder.isReplay;
        channelRow = builder.channelRow;
        handOuts = builder.handOuts;
        repeats = builder.repeats;
    }

    /** The values of an oplog. For the library's own use; an app receives oplogs and makes none. */
    public static final class Builder {
        public String bizType;
        public long oplogId;
        public byte[] payload = new byte[0];
        public boolean isBinary;
        public String thirdMessageId;
        public String conversation;
        public long createdAtMs;
        public String userId;
        public long recalls;
        public boolean isReplay;
        public long channelRow;
        public int handOuts;
        public int repeats;

        /** Returns the oplog. */
        public SyncOplog build() {
            return new SyncOplog(this);
        }
    }

    /** Returns the Sync ID of the push. */
    public String bizType() {
        return bizType;
    }

    /** Returns the oplog id, below 2^53. It rises within its channel in the order of the backend's calls. */
    public long oplogId() {
        return oplogId;
    }

    /** Returns the payload: text in UTF-8, or bytes when {@link #isBinary()}. It is empty for a tombstone. */
    public byte[] payload() {
        return payload;
    }

    /** Returns whether the backend sent bytes instead of text. */
    public boolean isBinary() {
        return isBinary;
    }

    /** Returns the payload as text; null for binary data. */
    public String text() {
        return isBinary ? null : new String(payload, StandardCharsets.UTF_8);
    }

    /** Returns the backend's own id of the push; null when it is not known. */
    public String thirdMessageId() {
        return thirdMessageId;
    }

    /** Returns the conversation that the backend named; null for none. */
    public String conversation() {
        return conversation;
    }

    /** Returns the time when the service accepted the push, in milliseconds since 1970. */
    public long createdAtMs() {
        return createdAtMs;
    }

    /** Returns the user of the data; null for device data. */
    public String userId() {
        return userId;
    }

    /**
     * Returns the id of an earlier oplog of this channel that the backend has recalled; 0 for data. The app must undo
     * that oplog.
     */
    public long recalls() {
        return recalls;
    }

    /**
     * Returns whether the app may have had this oplog before, also confirmed: an operator requested it again, or the
     * local store is an older copy of itself ({@link SyncEventListener#onStoreRolledBack}).
     */
    public boolean isReplay() {
        return isReplay;
    }

    /** Returns the count of hand-outs to the app, this one included: 1, or more without a confirmation in time. */
    public int attempt() {
        return handOuts;
    }

    /** Returns the channel's row in the local store. For the library's own use. */
    public long channelRow() {
        return channelRow;
    }

    /** Returns the count of resends on the ladder. For the library's own use. */
    public int repeats() {
        return repeats;
    }

    @Override
    public String toString() {
        // No payload: an oplog may be printed into a log.
        return bizType + " " + oplogId + " (attempt " + handOuts + ")";
    }
}
