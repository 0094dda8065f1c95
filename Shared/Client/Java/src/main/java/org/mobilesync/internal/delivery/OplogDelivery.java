package org.mobilesync.internal.delivery;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongPredicate;
import org.mobilesync.SyncBatch;
import org.mobilesync.SyncException;
import org.mobilesync.SyncOplog;
import org.mobilesync.internal.store.HandedOut;
import org.mobilesync.internal.store.LocalStore;

/** The hand-outs of stored oplogs to the app, and their resends and dead letters. Times are steady milliseconds. */
public final class OplogDelivery {
    private final LocalStore store;
    private final HandOutSelector handOut;
    private final ResendSchedule schedule = new ResendSchedule();
    /** The first wait that the app has set; 0 for the gateway's value. */
    private final long configuredFirstMs;
    private final LongPredicate isCounted;
    private final Consumer<SyncException> onFailure;

    /**
     * Creates the delivery, and lets unconfirmed oplogs wait again.
     *
     * @param isCounted whether time counts for the channel of a row now: a connection is open, the app reads the
     *     channel's Sync ID, which is not suspended, and its user is bound
     * @param onFailure receives an error of the store that has only shortened a batch
     */
    public OplogDelivery(LocalStore store, long configuredFirstMs, LongPredicate isCounted,
        Consumer<SyncException> onFailure) {
        this.store = store;
        this.configuredFirstMs = configuredFirstMs;
        this.isCounted = isCounted;
        this.onFailure = onFailure;
        handOut = new HandOutSelector(store, store.oplogs().startOver());
        setFirstResend(0);
    }

    /** Sets the first wait that the gateway names; 0 for none. The configured wait has precedence. */
    public void setFirstResend(long namedMs) {
        long first = configuredFirstMs > 0 ? configuredFirstMs
            : namedMs > 0 ? namedMs : ResendLadder.DEFAULT_FIRST_MS;
        schedule.setLadder(new ResendLadder(first));
    }

    /** Marks channels as having waiting oplogs. */
    public void markUnread(Collection<Long> channels) {
        handOut.markUnread(channels);
    }

    /**
     * Returns available oplogs of one channel; null when there are none now. An error after the first oplog shortens
     * the batch, because the oplogs before it count as handed out.
     *
     * @param bizType a Sync ID; null for all
     * @param userId the bound user
     * @param limit the most oplogs
     * @throws SyncException STORE; then nothing was handed out
     */
    public SyncBatch next(String bizType, String userId, int limit, long nowMs) {
        SyncOplog first = next(bizType, userId, 0L, nowMs);
        if (first == null) return null;
        List<SyncOplog> oplogs = new ArrayList<>();
        oplogs.add(first);
        boolean hasMore = false;
        try {
            while (oplogs.size() < limit) {
                SyncOplog next = next(bizType, userId, first.channelRow(), nowMs);
                if (next == null) break;
                oplogs.add(next);
            }
            hasMore = hasWaiting(first.channelRow());
        } catch (SyncException error) {
            onFailure.accept(error);
            hasMore = oplogs.size() < limit;
        }
        // Resends come before waiting oplogs, independent of their ids.
        oplogs.sort(Comparator.comparingLong(SyncOplog::oplogId));
        return new SyncBatch(oplogs, hasMore);
    }

    private SyncOplog next(String bizType, String userId, long row, long nowMs) {
        SyncOplog oplog = handOut.next(bizType, userId, row);
        if (oplog != null) schedule.start(new HandedOut(oplog), isCounted.test(oplog.channelRow()), nowMs);
        return oplog;
    }

    private boolean hasWaiting(long row) {
        return !store.oplogs().waiting(store.channels().byRow(row), 1).isEmpty();
    }

    /** Records durably that the app has processed the oplogs. */
    public void confirm(List<SyncOplog> oplogs) {
        store.oplogs().confirm(oplogs);
        for (SyncOplog oplog : oplogs) schedule.stop(oplog.channelRow(), oplog.oplogId());
    }

    /** Lets a batch wait again that was handed out and did not reach the app, so that the order stays. */
    public void putBack(SyncBatch batch) {
        store.oplogs().putBack(batch.oplogs());
        for (SyncOplog oplog : batch.oplogs()) schedule.stop(oplog.channelRow(), oplog.oplogId());
        handOut.markUnread(Collections.singleton(batch.oplogs().get(0).channelRow()));
    }

    /** Returns the time when the next wait of an oplog ends; Long.MAX_VALUE when no time counts. */
    public long nextDueMs(long nowMs) {
        return schedule.nextDueMs(nowMs);
    }

    /** Updates the clocks of the channels. Call it after a change of a condition in {@code isCounted}. */
    public void updateClocks(long nowMs) {
        schedule.updateClocks(nowMs, isCounted);
    }

    /**
     * Queues the oplogs whose wait is over for a resend, or marks them as dead letters.
     *
     * @return whether there are new dead letters to report
     * @throws SyncException STORE; then the waits of the dead letters begin again
     */
    public boolean processDue(long nowMs) {
        List<HandedOut> dead = new ArrayList<>();
        for (HandedOut oplog : schedule.removeDue(nowMs)) {
            if (ResendLadder.isDead(oplog)) {
                dead.add(oplog);
            } else {
                handOut.enqueueResend(oplog);
            }
        }
        if (dead.isEmpty()) return false;
        try {
            store.oplogs().markDead(dead);
            return true;
        } catch (SyncException error) {
            for (HandedOut oplog : dead) schedule.start(oplog, isCounted.test(oplog.channelRow()), nowMs);
            throw error;
        }
    }
}
