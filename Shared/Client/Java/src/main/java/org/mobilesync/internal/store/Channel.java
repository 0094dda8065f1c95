package org.mobilesync.internal.store;

import org.mobilesync.internal.ChannelKinds;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.wire.ChannelKind;

/** A channel in the local store. A step changes a copy, which replaces the cached one after the commit. */
public final class Channel {
    final long row;
    final ChannelKey key;
    /** Every oplog up to here is stored or was not meant for this receiver. It only rises. */
    long position;
    /** The local store has every oplog that the server has for this device above this id … */
    long completeFrom;
    /** … and up to this id. */
    long completeUpto;

    Channel(long row, ChannelKey key) {
        this.row = row;
        this.key = key;
    }

    Channel copy() {
        Channel copy = new Channel(row, key);
        copy.position = position;
        copy.completeFrom = completeFrom;
        copy.completeUpto = completeUpto;
        return copy;
    }

    /** Returns the row in the database. */
    public long row() {
        return row;
    }

    /** Returns the Sync ID. */
    public String bizType() {
        return key.bizType;
    }

    /** Returns the user of the data; null for device data. */
    public String userId() {
        return ChannelKinds.needsUser(key.kind) ? key.userId : null;
    }

    /** Returns whether the app may receive the channel's data while this user is bound. */
    public boolean isVisible(String boundUserId) {
        return !ChannelKinds.needsUser(key.kind) || key.userId.equals(boundUserId);
    }

    /** Returns whether the channel has results of operations, which the client itself reads. */
    boolean isOfResults() {
        return key.kind == ChannelKind.DEVICE && key.bizType.equals(Limits.RESULTS);
    }

    /**
     * Extends the complete range after a batch.
     *
     * @param discarded the batch can lack oplogs up to this id, which the threshold has discarded; 0 for none
     */
    void pushed(long after, long upto, long discarded) {
        // A page of the history can already contain the discarded oplogs.
        long start = Math.max(after, Math.min(discarded, upto));
        if (start > completeUpto) completeFrom = start;
        completeUpto = Math.max(completeUpto, upto);
    }

    /**
     * Extends the complete range after a page of history, newest first. The page contains the ids above {@code lowest}
     * and below {@code before}. A page that neither touches the range nor begins at the head has no effect.
     *
     * @param before 0 for a page that begins at the head
     * @param head the highest id of the channel when the page was read
     */
    void read(long lowest, long before, long head) {
        long end = before == 0 ? head : before - 1;
        if (before != 0 && (lowest > completeUpto || completeUpto == 0)) return;
        if (end >= completeUpto) {
            // Both parts join when they touch; otherwise only the newer part stays.
            completeFrom = lowest > completeUpto ? lowest : Math.min(completeFrom, lowest);
            completeUpto = end;
        } else if (end >= completeFrom) {
            completeFrom = Math.min(completeFrom, lowest);
        }
    }

    /** Shrinks the complete range after oplogs up to this id were deleted. */
    void dropped(long upto) {
        completeFrom = Math.max(completeFrom, upto);
        completeUpto = Math.max(completeUpto, completeFrom);
    }
}
