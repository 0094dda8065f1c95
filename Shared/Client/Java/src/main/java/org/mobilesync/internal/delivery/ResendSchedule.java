package org.mobilesync.internal.delivery;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.LongPredicate;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.store.HandedOut;

/**
 * The waits of unconfirmed oplogs on the resend ladder, in counted time. Times are milliseconds of a steady clock.
 *
 * <p>Each channel has a clock of its own. It runs only while a connection is open, the app reads the channel, and the
 * channel's user is bound. The memory is small and constant for each unconfirmed oplog.
 */
final class ResendSchedule {
    private static final long STOPPED = -1;

    private static final class Entry {
        private final HandedOut oplog;
        private final long startedAtMs;

        private Entry(HandedOut oplog, long startedAtMs) {
            this.oplog = oplog;
            this.startedAtMs = startedAtMs;
        }
    }

    private static final class Timeline {
        /** The counted time up to runningSinceMs. */
        private long elapsedMs;
        private long runningSinceMs = STOPPED;
        /** Queues by the count of resends. All entries of a queue wait equally long, so the oldest is due first. */
        private final List<Deque<Entry>> queues = new ArrayList<>();
        /** The entry in force of each oplog; other entries are outdated. */
        private final Map<Long, Entry> inForce = new HashMap<>();

        private Timeline() {
            for (int level = 0; level <= Limits.RESENDS; level++) queues.add(new ArrayDeque<>());
        }

        private long time(long nowMs) {
            return elapsedMs + (runningSinceMs == STOPPED ? 0 : Math.max(0, nowMs - runningSinceMs));
        }

        private void run(boolean isCounted, long nowMs) {
            if (isCounted == (runningSinceMs != STOPPED)) return;
            elapsedMs = time(nowMs);
            runningSinceMs = isCounted ? nowMs : STOPPED;
        }

        private boolean isInForce(Entry entry) {
            return inForce.get(entry.oplog.oplogId()) == entry;
        }

        private void dropOutdated() {
            for (Deque<Entry> queue : queues) {
                while (!queue.isEmpty() && !isInForce(queue.peek())) queue.remove();
            }
        }
    }

    private ResendLadder ladder = new ResendLadder(ResendLadder.DEFAULT_FIRST_MS);
    private final TreeMap<Long, Timeline> timelines = new TreeMap<>();

    /** Sets the waits, also those that have begun. */
    void setLadder(ResendLadder newLadder) {
        ladder = newLadder;
    }

    /** Begins the wait of a handed-out oplog, and replaces an earlier one. */
    void start(HandedOut oplog, boolean isCounted, long nowMs) {
        Timeline timeline = timelines.computeIfAbsent(oplog.channelRow(), row -> new Timeline());
        timeline.run(isCounted, nowMs);
        Entry entry = new Entry(oplog, timeline.time(nowMs));
        timeline.inForce.put(oplog.oplogId(), entry);
        timeline.queues.get(oplog.repeats()).add(entry);
        timeline.dropOutdated();
    }

    /** Ends the wait of an oplog after its confirmation. */
    void stop(long channelRow, long oplogId) {
        Timeline timeline = timelines.get(channelRow);
        if (timeline == null || timeline.inForce.remove(oplogId) == null) return;
        timeline.dropOutdated();
        if (timeline.inForce.isEmpty()) timelines.remove(channelRow);
    }

    /** Starts the clocks of the channels whose time counts, and stops the others. */
    void updateClocks(long nowMs, LongPredicate isCounted) {
        timelines.forEach((row, timeline) -> timeline.run(isCounted.test(row), nowMs));
    }

    /** Removes the waits that are over, and returns them by channel and age. */
    List<HandedOut> removeDue(long nowMs) {
        List<HandedOut> due = new ArrayList<>();
        for (Timeline timeline : timelines.values()) {
            if (timeline.runningSinceMs == STOPPED) continue;
            long time = timeline.time(nowMs);
            for (Deque<Entry> queue : timeline.queues) {
                for (Entry entry : queue) {
                    if (entry.startedAtMs + ladder.waitMs(entry.oplog.repeats()) > time) break;
                    if (timeline.isInForce(entry)) due.add(entry.oplog);
                }
            }
        }
        for (HandedOut oplog : due) stop(oplog.channelRow(), oplog.oplogId());
        return due;
    }

    /** Returns the time when the next wait ends if all clocks stay as they are; Long.MAX_VALUE for none. */
    long nextDueMs(long nowMs) {
        long next = Long.MAX_VALUE;
        for (Timeline timeline : timelines.values()) {
            if (timeline.runningSinceMs == STOPPED) continue;
            long time = timeline.time(nowMs);
            for (Deque<Entry> queue : timeline.queues) {
                Entry first = queue.peek();
                if (first == null) continue;
                next = Math.min(next, nowMs + first.startedAtMs + ladder.waitMs(first.oplog.repeats()) - time);
            }
        }
        return next;
    }
}
