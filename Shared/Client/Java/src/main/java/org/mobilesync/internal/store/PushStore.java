package org.mobilesync.internal.store;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.mobilesync.database.DatabaseException;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.Entry;

/** Stores the batches of push frames (DeviceProtocol.md, Channels, positions, batches). */
public final class PushStore {
    private final StoreFile file;
    private final Channels channels;
    private final Oplogs oplogs;
    private final Outbox outbox;
    private final StoreSpace space;

    PushStore(StoreFile file, Channels channels, Oplogs oplogs, Outbox outbox, StoreSpace space) {
        this.file = file;
        this.channels = channels;
        this.oplogs = oplogs;
        this.outbox = outbox;
        this.space = space;
    }

    /** Returns the approximate size of batches in the store, in bytes. */
    public static long bytes(List<ChannelBatch> batches) {
        return StoreSpace.bytes(batches);
    }

    /**
     * Stores the new data of a push frame in one transaction: all of it, or nothing when the store is full.
     *
     * @param batches batches of known kinds; user channels belong to userId
     * @return null when the store's limit leaves no space; then nothing is stored
     * @throws org.mobilesync.SyncException STORE, STORE_FULL; then nothing is stored, and nothing may be acknowledged
     */
    public StoreOutcome store(List<ChannelBatch> batches, String userId, long bindNumber) {
        if (!space.free(StoreSpace.bytes(batches))) return null;
        StoreOutcome outcome = new StoreOutcome();
        Map<ChannelKey, Channel> changed = new LinkedHashMap<>();
        file.change("storing a push", () -> {
            for (ChannelBatch batch : batches) {
                ChannelKey key = ChannelKey.of(batch.kind, userId, batch.bizType);
                Channel channel = changed.get(key);
                if (channel == null) channel = channels.change(key);
                changed.put(key, channel);
                if (batch.reread != 0) {
                    applyReread(batch, channel, outcome);
                } else {
                    apply(batch, channel, bindNumber, outcome);
                }
            }
            return null;
        });
        for (Channel channel : changed.values()) channels.remember(channel);
        return outcome;
    }

    private void apply(ChannelBatch batch, Channel channel, long bindNumber, StoreOutcome outcome)
        throws DatabaseException {
        if (channel.position < batch.after && channel.position < batch.upto) {
            outcome.foundGap = true;
            return;
        }
        if (channel.position < batch.upto) {
            for (Entry entry : batch.entries) {
                if (entry.oplogId <= channel.position || entry.oplogId > batch.upto) continue;
                boolean isAgain = entry.oplogId <= batch.againUpto;
                store(entry, channel, isAgain ? OplogOrigin.AGAIN : OplogOrigin.PUSH, outcome);
            }
            channel.pushed(channel.position, batch.upto, batch.passedOverUpto);
            channel.position = batch.upto;
            channels.update(channel);
        }
        outcome.acknowledge(channel, bindNumber);
    }

    /** Stores the entries of a re-read as new, except those that the app has confirmed. No position moves. */
    private void applyReread(ChannelBatch batch, Channel channel, StoreOutcome outcome) throws DatabaseException {
        outcome.rereads.add(batch.reread);
        boolean isNew = file.database().execute("INSERT OR IGNORE INTO reread VALUES (?)", batch.reread) > 0;
        if (!isNew) return;
        OplogOrigin origin = batch.newlyMatching ? OplogOrigin.NEWLY_MATCHING : OplogOrigin.REREAD;
        for (Entry entry : batch.entries) store(entry, channel, origin, outcome);
    }

    private void store(Entry entry, Channel channel, OplogOrigin origin, StoreOutcome outcome)
        throws DatabaseException {
        if (channel.isOfResults()) {
            for (ResultPayload result : ResultPayload.all(entry.payload)) {
                outbox.store(result);
            }
            oplogs.insertConfirmed(entry, channel);
            outcome.hasReports = true;
        } else if (oplogs.dropRecalled(entry, channel)) {
            outcome.isRolledBack |= origin == OplogOrigin.AGAIN;
            oplogs.insert(entry, channel, origin);
            outcome.filledChannels.add(channel.row);
            outcome.storedOplogs += 1;
        }
    }
}
