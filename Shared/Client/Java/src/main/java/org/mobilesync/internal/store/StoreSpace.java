package org.mobilesync.internal.store;

import java.util.List;
import org.mobilesync.database.DatabaseException;
import org.mobilesync.database.SyncDatabase;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.ChannelKind;
import org.mobilesync.internal.wire.Entry;

/** The size limit of a local store, and the deletion of old oplogs (K8). */
public final class StoreSpace {
    /** The smallest count of rows in one deletion. */
    private static final long FEWEST_DROPPED = 64;
    /** Bytes of an entry beside its payload. */
    private static final int ENTRY_BYTES = 160;
    /** A deletion frees this part of the limit beyond what is needed, so that not every push must delete. */
    private static final int SPARE_DIVISOR = 20;

    private final StoreFile file;
    private final SyncDatabase database;
    private final Channels channels;
    private final long limit;

    StoreSpace(StoreFile file, Channels channels, long limit) {
        this.file = file;
        this.database = file.database();
        this.channels = channels;
        this.limit = limit;
    }

    /** Returns the approximate size of batches in the store. */
    static long bytes(List<ChannelBatch> batches) {
        long bytes = 0;
        for (ChannelBatch batch : batches) bytes += entryBytes(batch.entries);
        return bytes;
    }

    /** Returns the approximate size of entries in the store. */
    static long entryBytes(List<Entry> entries) {
        long bytes = 0;
        for (Entry entry : entries) {
            // The index has the conversation, too.
            long names = entry.thirdMessageId.length() + 2L * entry.conversation.length();
            bytes += entry.payload.length + names + ENTRY_BYTES;
        }
        return bytes;
    }

    /**
     * Frees space for more bytes: deletes confirmed oplogs and history, oldest first, in the channel that has the most
     * of them.
     *
     * @return false when no such oplog is left; unconfirmed oplogs stay
     */
    public boolean free(long bytes) {
        if (hasSpace(bytes)) return true;
        while (!hasSpace(bytes + limit / SPARE_DIVISOR)) {
            if (!dropOldest()) return hasSpace(bytes);
        }
        return true;
    }

    /** Returns whether the store has space for more bytes. */
    boolean hasSpace(long bytes) {
        return file.access("measuring the store", () -> {
            long used = pragma("page_count") - pragma("freelist_count");
            return used * pragma("page_size") + bytes <= limit;
        });
    }

    private long pragma(String name) throws DatabaseException {
        return database.query(row -> row.getLong(0), "PRAGMA " + name).get(0);
    }

    private boolean dropOldest() {
        // The confirmations of channels of refused device ids are never reported.
        String droppable = "state IN (" + OplogState.CONFIRMED + ", " + OplogState.HISTORY + ") AND (NOT needs_report"
            + " OR channel_id IN (SELECT id FROM channel WHERE kind = " + ChannelKind.DEVICE + " AND user_id <> ''))";
        Channel dropped = file.change("freeing space", () -> {
            List<long[]> fullest = database.query(row -> new long[] {row.getLong(0), row.getLong(1)},
                "SELECT channel_id, count(*) FROM oplog WHERE " + droppable
                    + " GROUP BY channel_id ORDER BY 2 DESC LIMIT 1");
            if (fullest.isEmpty() || channels.byRow(fullest.get(0)[0]) == null) return null;
            Channel channel = channels.byRow(fullest.get(0)[0]).copy();
            long count = Math.min(fullest.get(0)[1], Math.max(FEWEST_DROPPED, fullest.get(0)[1] / 4));
            List<Long> last = database.query(row -> row.getLong(0),
                "SELECT oplog_id FROM oplog WHERE channel_id = ? AND " + droppable
                    + " ORDER BY oplog_id LIMIT 1 OFFSET ?", channel.row, count - 1);
            database.execute("DELETE FROM oplog WHERE channel_id = ? AND oplog_id <= ? AND " + droppable,
                channel.row, last.get(0));
            channel.dropped(last.get(0));
            channels.update(channel);
            return channel;
        });
        if (dropped != null) channels.remember(dropped);
        return dropped != null;
    }
}
