package org.mobilesync.tests;

import org.mobilesync.internal.Clock;

/** A clock that stands still until a test moves it. */
final class PlayedClock implements Clock {
    private static final long NANOS_PER_MS = 1_000_000;

    private long nanos = 1_000 * NANOS_PER_MS;
    private long wallMs = 1_000_000;

    @Override
    public long nanoTime() {
        return nanos;
    }

    @Override
    public long wallMs() {
        return wallMs;
    }

    /** Returns the milliseconds of the steady clock. */
    long nowMs() {
        return nanos / NANOS_PER_MS;
    }

    /** Moves both clocks. */
    void advance(long ms) {
        nanos += ms * NANOS_PER_MS;
        wallMs += ms;
    }

    /** Sets the wall clock, as a user does. */
    void setWall(long ms) {
        wallMs = ms;
    }
}
