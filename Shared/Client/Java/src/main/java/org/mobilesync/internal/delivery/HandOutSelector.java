package org.mobilesync.internal.delivery;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.mobilesync.SyncOplog;
import org.mobilesync.internal.store.Channel;
import org.mobilesync.internal.store.HandedOut;
import org.mobilesync.internal.store.LocalStore;

/**
 * Selects the next oplog for the app: first resends that are due, then waiting oplogs, in ascending order within each
 * channel.
 *
 * <p>Only the store knows which oplogs wait; this object remembers where to look. It reads ids ahead, and the store
 * checks each id again at its hand-out. So an oplog that was confirmed, recalled or marked dead meanwhile is left out.
 */
final class HandOutSelector {
    /** The count of ids in one read of the store. */
    private static final int PAGE_OPLOGS = 32;

    private final LocalStore store;
    /** The rows of the channels that can have waiting oplogs. */
    private final TreeSet<Long> unread = new TreeSet<>();
    /** The ids by channel whose wait on the resend ladder is over. */
    private final TreeMap<Long, Deque<Long>> resends = new TreeMap<>();
    /** Ids that were read ahead, by channel. */
    private final Map<Long, Deque<Long>> pages = new TreeMap<>();
    /** The channel of the last hand-out. The next one is of another channel, so a busy channel blocks no other. */
    private long lastRow;

    HandOutSelector(LocalStore store, Collection<Long> channels) {
        this.store = store;
        unread.addAll(channels);
    }

    /** Marks channels as having waiting oplogs. */
    void markUnread(Collection<Long> channels) {
        unread.addAll(channels);
        // New oplogs can have lower ids than those that were read ahead: re-reads.
        for (Long row : channels) pages.remove(row);
    }

    /** Queues an oplog whose wait on the resend ladder is over. */
    void enqueueResend(HandedOut oplog) {
        resends.computeIfAbsent(oplog.channelRow(), row -> new ArrayDeque<>()).add(oplog.oplogId());
    }

    /**
     * Returns the next oplog for the app, after the store has counted the hand-out; null when there is none now.
     *
     * @param bizType a Sync ID; null for all
     * @param userId the bound user; data of other users waits
     * @param row the row of a channel; 0 for all
     */
    SyncOplog next(String bizType, String userId, long row) {
        for (Long candidate : new ArrayList<>(resends.keySet())) {
            Channel channel = wanted(candidate, bizType, userId, row);
            SyncOplog oplog = channel == null ? null : nextResend(channel);
            if (oplog != null) return oplog;
        }
        List<Long> rows = new ArrayList<>(unread.tailSet(lastRow, false));
        rows.addAll(unread.headSet(lastRow, true));
        for (Long candidate : rows) {
            Channel channel = wanted(candidate, bizType, userId, row);
            SyncOplog oplog = channel == null ? null : nextWaiting(channel);
            if (oplog == null) continue;
            lastRow = candidate;
            return oplog;
        }
        return null;
    }

    private Channel wanted(long candidate, String bizType, String userId, long row) {
        Channel channel = store.channels().byRow(candidate);
        boolean isWanted = channel != null && (row == 0 || row == candidate)
            && (bizType == null || bizType.equals(channel.bizType())) && channel.isVisible(userId)
            && !store.suspended().contains(channel.bizType());
        return isWanted ? channel : null;
    }

    private SyncOplog nextResend(Channel channel) {
        Deque<Long> ids = resends.get(channel.row());
        while (!ids.isEmpty()) {
            SyncOplog oplog = store.oplogs().handOut(ids.peek(), channel, true);
            ids.remove();
            if (oplog != null) return oplog;
        }
        resends.remove(channel.row());
        return null;
    }

    private SyncOplog nextWaiting(Channel channel) {
        while (true) {
            Deque<Long> ids = pages.get(channel.row());
            if (ids == null || ids.isEmpty()) {
                ids = new ArrayDeque<>(store.oplogs().waiting(channel, PAGE_OPLOGS));
                if (ids.isEmpty()) {
                    pages.remove(channel.row());
                    unread.remove(channel.row());
                    return null;
                }
                pages.put(channel.row(), ids);
            }
            SyncOplog oplog = store.oplogs().handOut(ids.peek(), channel, false);
            ids.remove();
            if (oplog != null) return oplog;
        }
    }
}
