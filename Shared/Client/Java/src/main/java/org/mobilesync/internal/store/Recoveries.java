package org.mobilesync.internal.store;

import java.util.List;
import java.util.Objects;
import org.mobilesync.internal.ChannelKinds;
import org.mobilesync.internal.wire.Entry;
import org.mobilesync.internal.wire.HistoryPage;

/** The recoveries of a local store: Sync IDs whose data is requested again. */
public final class Recoveries {
    private final StoreFile file;
    private final Channels channels;
    private final Oplogs oplogs;
    private final StoreSpace space;

    Recoveries(StoreFile file, Channels channels, Oplogs oplogs, StoreSpace space) {
        this.file = file;
        this.channels = channels;
        this.oplogs = oplogs;
        this.space = space;
    }

    /** A request for all data of a Sync ID, and its progress. */
    public static final class Recovery {
        /** The bound user at the time of the request; empty for none. */
        public final String userId;
        /** The Sync ID. */
        public final String bizType;
        /** Every oplog up to this id has arrived. */
        public final long nextAfter;
        /** The last id of the recovery; 0 before the first page. */
        public final long upto;

        Recovery(String userId, String bizType, long nextAfter, long upto) {
            this.userId = userId;
            this.bizType = bizType;
            this.nextAfter = nextAfter;
            this.upto = upto;
        }

        @Override
        public boolean equals(Object other) {
            if (!(other instanceof Recovery)) return false;
            Recovery recovery = (Recovery) other;
            return userId.equals(recovery.userId) && bizType.equals(recovery.bizType)
                && nextAfter == recovery.nextAfter && upto == recovery.upto;
        }

        @Override
        public int hashCode() {
            return Objects.hash(userId, bizType, nextAfter, upto);
        }
    }

    /** Begins a recovery of a Sync ID, from the first oplog; the user can be null. */
    public void begin(String bizType, String userId) {
        file.change("beginning a recovery", () -> file.database().execute(
            "INSERT OR REPLACE INTO recovery VALUES (?, ?, 0, 0)", userId == null ? "" : userId, bizType));
    }

    /**
     * Returns the open recoveries of this user and the device. It leaves out suspended Sync IDs, and those with
     * unreported confirmations, because a recovery resets the confirmations.
     */
    public List<Recovery> open(String userId) {
        String user = userId == null ? "" : userId;
        return file.access("reading recoveries", () -> file.database().query(
            row -> new Recovery(row.getText(0), row.getText(1), row.getLong(2), row.getLong(3)),
            "SELECT user_id, biz_type, next_after, upto FROM recovery WHERE user_id IN ('', ?)"
                + " AND biz_type NOT IN (SELECT biz_type FROM suspended)"
                + " AND NOT EXISTS (SELECT 1 FROM oplog JOIN channel ON channel.id = channel_id"
                + " WHERE needs_report AND state = ? AND channel.biz_type = recovery.biz_type"
                + " AND channel.user_id IN ('', ?)) ORDER BY user_id, biz_type",
            user, OplogState.CONFIRMED, user));
    }

    /**
     * Assigns a recovery to this user and restarts it. It was requested without a bound user, and the data belongs to a
     * user.
     */
    public void adopt(Recovery recovery, String userId) {
        file.change("assigning a recovery", () -> file.database().execute(
            "UPDATE OR REPLACE recovery SET user_id = ?, next_after = 0, upto = 0 WHERE user_id = ? AND biz_type = ?",
            userId, recovery.userId, recovery.bizType));
    }

    /** Returns whether the store has space for a page. */
    public boolean hasSpace(HistoryPage page) {
        return space.free(StoreSpace.entryBytes(page.entries));
    }

    /**
     * Stores a page of a recovery for the app, and the progress of the recovery, in one transaction.
     *
     * @return the row of the channel; 0 when the page has no data for the app
     */
    public long store(HistoryPage page, Recovery recovery) {
        ChannelKey key = ChannelKey.of(
            page.kind, ChannelKinds.needsUser(page.kind) ? recovery.userId : null, recovery.bizType);
        long upto = recovery.upto == 0 ? page.head : recovery.upto;
        Channel stored = file.change("storing a recovery", () -> {
            // The app may have ended the recovery meanwhile.
            boolean isAskedFor = !file.database().query(row -> row.getLong(0),
                "SELECT 1 FROM recovery WHERE user_id = ? AND biz_type = ? AND next_after = ?",
                recovery.userId, recovery.bizType, recovery.nextAfter).isEmpty();
            if (!isAskedFor) return null;
            Channel channel = page.entries.isEmpty() ? null : channels.change(key);
            for (Entry entry : page.entries) {
                if (entry.oplogId <= upto) oplogs.insert(entry, channel, OplogOrigin.RECOVERY);
            }
            if (page.more && page.next < upto) {
                file.database().execute(
                    "UPDATE recovery SET next_after = ?, upto = ? WHERE user_id = ? AND biz_type = ?",
                    page.next, upto, recovery.userId, recovery.bizType);
            } else {
                file.database().execute("DELETE FROM recovery WHERE user_id = ? AND biz_type = ?",
                    recovery.userId, recovery.bizType);
            }
            return channel;
        });
        if (stored == null) return 0;
        channels.remember(stored);
        return stored.row;
    }
}
