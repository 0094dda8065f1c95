package com.alipay.mobile.rome.longlinkservice.syncmodel;

/** A batch of one Sync ID in the form of the guide. One confirmation confirms the whole batch (K6). */
public final class SyncMessage {
    /** The user of the data; null for device data. */
    public String userId;
    /** The Sync ID. */
    public String biz;
    /** The highest oplog id of the batch, as text. */
    public String id;
    /** Whether the local store already has more data of this channel. */
    public boolean hasMore;
    /**
     * The data as JSON text: an array with one object for each oplog, in ascending order of ids.
     *
     * <p>Members: {@code pl} is the payload as text, or as Base64 when {@code isB} is present and 1. {@code mk} is the
     * oplog id, and {@code mct} is the time when the service accepted the push, in milliseconds since 1970. Two members
     * are not in the guide: {@code recalls} is the id of an earlier oplog that the backend has recalled, with an empty
     * {@code pl}; {@code isReplay} is 1 when the app may have had the oplog before.
     */
    public String msgData;

    @Override
    public String toString() {
        // No payload: a message may be printed into a log.
        return biz + " " + id;
    }
}
