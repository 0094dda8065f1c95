package org.mobilesync.internal.delivery;

import org.mobilesync.internal.Limits;
import org.mobilesync.internal.store.HandedOut;

/** The waits between hand-outs of an unconfirmed oplog (DeviceProtocol.md, The resend ladder; D14). Immutable. */
final class ResendLadder {
    /** The first wait when neither the app nor the gateway names one. */
    static final long DEFAULT_FIRST_MS = 10_000;
    private static final long SHORTEST_FIRST_MS = 1;
    private static final long LONGEST_FIRST_MS = 3_600_000;

    private final long firstMs;

    /** A wait outside of 1 ms to 1 h is clamped. */
    ResendLadder(long firstMs) {
        this.firstMs = Math.min(Math.max(firstMs, SHORTEST_FIRST_MS), LONGEST_FIRST_MS);
    }

    /** Returns the wait after the last hand-out. Each wait is twice as long; the last two are equal. */
    long waitMs(int repeats) {
        return firstMs << Math.min(repeats, Limits.RESENDS - 1);
    }

    /** Returns whether the oplog is dead at the end of its wait; otherwise it is handed out again. */
    static boolean isDead(HandedOut oplog) {
        return oplog.repeats() >= Limits.RESENDS || oplog.handOuts() >= Limits.HAND_OUTS;
    }
}
