package org.mobilesync.internal.store;

import java.util.ArrayList;
import java.util.List;
import java.util.SortedSet;
import java.util.TreeSet;
import org.mobilesync.SyncException;
import org.mobilesync.internal.Limits;

/** The suspended Sync IDs of a local store, cached in memory, and the deletion of a Sync ID's data. */
public final class SuspendedTypes {
    private final StoreFile file;
    private final Channels channels;
    private final Oplogs oplogs;
    private final SortedSet<String> suspended = new TreeSet<>();

    SuspendedTypes(StoreFile file, Channels channels, Oplogs oplogs) {
        this.file = file;
        this.channels = channels;
        this.oplogs = oplogs;
        suspended.addAll(file.access("reading suspended Sync IDs",
            () -> file.database().query(row -> row.getText(0), "SELECT biz_type FROM suspended")));
    }

    /** Returns whether a Sync ID is suspended. */
    public boolean contains(String bizType) {
        return suspended.contains(bizType);
    }

    /** Returns the suspended Sync IDs, sorted. */
    public List<String> list() {
        return new ArrayList<>(suspended);
    }

    /**
     * Suspends or resumes a Sync ID.
     *
     * @throws SyncException INVALID_ARGUMENT above the limit of the protocol, because the gateway would close for good
     */
    public void set(String bizType, boolean isSuspended) {
        if (isSuspended && !suspended.contains(bizType) && suspended.size() >= Limits.SUSPENDED) {
            throw new SyncException(SyncException.Code.INVALID_ARGUMENT,
                Limits.SUSPENDED + " Sync IDs are suspended already; resume one of them first");
        }
        file.change("changing suspended Sync IDs", () -> file.database().execute(
            isSuspended ? "INSERT OR IGNORE INTO suspended VALUES (?)" : "DELETE FROM suspended WHERE biz_type = ?",
            bizType));
        if (isSuspended) {
            suspended.add(bizType);
        } else {
            suspended.remove(bizType);
        }
    }

    /**
     * Deletes the data of a Sync ID, of the device and this user. Positions stay, so the data does not arrive
     * again.
     */
    public void deleteData(String bizType, String userId) {
        List<Channel> emptied = new ArrayList<>();
        file.change("deleting the data of a Sync ID", () -> {
            for (Channel visible : channels.visible(bizType, userId)) {
                Channel channel = visible.copy();
                channel.dropped(Math.max(channel.position, channel.completeUpto));
                oplogs.deleteAll(channel);
                channels.update(channel);
                emptied.add(channel);
            }
            file.database().execute("DELETE FROM recovery WHERE biz_type = ? AND user_id IN ('', ?)",
                bizType, userId == null ? "" : userId);
            return null;
        });
        for (Channel channel : emptied) channels.remember(channel);
    }
}
