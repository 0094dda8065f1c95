package org.mobilesync.internal.store;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.mobilesync.database.DatabaseException;
import org.mobilesync.internal.ChannelKinds;
import org.mobilesync.internal.wire.SyncPoint;

/** The channels of a local store with their positions, cached in memory. */
public final class Channels {
    /** Bytes of a sync point beside its Sync ID. */
    private static final int POINT_BYTES = 24;

    private final StoreFile file;
    private final Map<ChannelKey, Channel> channels = new HashMap<>();
    private final Map<Long, Channel> byRow = new HashMap<>();

    Channels(StoreFile file) {
        this.file = file;
        load();
    }

    /** Reads the channels from the database, and replaces the cached ones. */
    void load() {
        List<Channel> stored = file.access("reading the channels", () -> file.database().query(row -> {
            Channel channel =
                new Channel(row.getLong(0), new ChannelKey(row.getLong(1), row.getText(2), row.getText(3)));
            channel.position = row.getLong(4);
            channel.completeFrom = row.getLong(5);
            channel.completeUpto = row.getLong(6);
            return channel;
        }, "SELECT id, kind, user_id, biz_type, sync_point, complete_from, complete_upto FROM channel"));
        channels.clear();
        byRow.clear();
        for (Channel channel : stored) remember(channel);
    }

    /** Caches a channel in its committed state. */
    void remember(Channel channel) {
        channels.put(channel.key, channel);
        byRow.put(channel.row, channel);
    }

    /** Returns a copy of the channel, and creates it when it does not exist. Call it in a transaction. */
    Channel change(ChannelKey key) throws DatabaseException {
        Channel known = channels.get(key);
        if (known != null) return known.copy();
        file.database().execute(
            "INSERT INTO channel (kind, user_id, biz_type, sync_point) VALUES (?, ?, ?, 0)",
            key.kind, key.userId, key.bizType);
        return new Channel(file.database().lastInsertedRow(), key);
    }

    /** Writes the position and the range. Call it in a transaction, and {@link #remember} after the commit. */
    void update(Channel channel) throws DatabaseException {
        file.database().execute(
            "UPDATE channel SET sync_point = ?, complete_from = ?, complete_upto = ? WHERE id = ?",
            channel.position, channel.completeFrom, channel.completeUpto, channel.row);
    }

    /** Returns the channel of a row; null for an unknown row. */
    public Channel byRow(long row) {
        return byRow.get(row);
    }

    /** Returns the channel of a kind and Sync ID, of this user for user kinds; null for an unknown one. */
    Channel find(long kind, String bizType, String userId) {
        return channels.get(ChannelKey.of(kind, userId, bizType));
    }

    /** Returns the channels that this user can see; of one Sync ID, or of all when it is null. */
    public List<Channel> visible(String bizType, String userId) {
        List<Channel> visible = new ArrayList<>();
        for (Channel channel : channels.values()) {
            boolean isWanted = bizType == null || bizType.equals(channel.key.bizType);
            if (isWanted && channel.isVisible(userId)) visible.add(channel);
        }
        return visible;
    }

    /**
     * Returns the channel of a Sync ID that this user can see; null for an unknown one. Of several, it is the one with
     * the highest position.
     */
    Channel current(String bizType, String userId) {
        Channel current = null;
        for (Channel channel : visible(bizType, userId)) {
            if (current == null || channel.position > current.position) current = channel;
        }
        return current;
    }

    /**
     * Returns sync points for Connect (userId null) or Bind, as many as fit into the given bytes. Missing sync points
     * are safe: the gateway then sends known data again, and the client drops it.
     */
    public List<SyncPoint> syncPoints(String userId, int maxBytes) {
        List<SyncPoint> points = new ArrayList<>();
        int left = maxBytes;
        String owner = userId == null ? "" : userId;
        for (Channel channel : channels.values()) {
            boolean isOwned = channel.key.userId.equals(owner)
                && ChannelKinds.needsUser(channel.key.kind) != owner.isEmpty();
            if (!isOwned || channel.position == 0) continue;
            // A UTF-16 unit has at most 3 bytes of UTF-8.
            left -= 3 * channel.key.bizType.length() + POINT_BYTES;
            if (left < 0) break;
            SyncPoint point = new SyncPoint();
            point.kind = channel.key.kind;
            point.bizType = channel.key.bizType;
            point.oplogId = channel.position;
            points.add(point);
        }
        return points;
    }
}
