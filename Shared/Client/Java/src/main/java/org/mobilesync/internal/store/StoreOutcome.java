package org.mobilesync.internal.store;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.mobilesync.internal.ChannelKinds;
import org.mobilesync.internal.wire.LongList;
import org.mobilesync.internal.wire.StoredUpto;

/** The outcome of a push frame in the local store. */
public final class StoreOutcome {
    /** The positions to acknowledge, one for each channel. */
    public final List<StoredUpto> acknowledgements = new ArrayList<>();
    /** The numbers of re-reads to acknowledge. */
    public final LongList rereads = new LongList();
    /** The rows of the channels with new oplogs for the app. */
    public final Set<Long> filledChannels = new LinkedHashSet<>();
    /** The count of new oplogs. */
    public long storedOplogs;
    /** Whether there is something new to report to the gateway. */
    public boolean hasReports;
    /** Whether a batch contained data that this store had acknowledged before: it is an older copy of itself. */
    public boolean isRolledBack;
    /** Whether a batch began above its channel's position and was left out. */
    public boolean foundGap;

    /** Adds a channel's position, and replaces an earlier one. */
    void acknowledge(Channel channel, long bindNumber) {
        acknowledgements.removeIf(
            other -> other.kind == channel.key.kind && other.bizType.equals(channel.key.bizType));
        StoredUpto position = new StoredUpto();
        position.kind = channel.key.kind;
        position.bizType = channel.key.bizType;
        position.bindNumber = ChannelKinds.needsUser(channel.key.kind) ? bindNumber : 0;
        position.upto = channel.position;
        acknowledgements.add(position);
    }
}
