package org.mobilesync.internal.connection;

/** The frame of one kind that waits for the gateway's reply, at most one at a time, and the pauses after refusals. */
final class OutstandingFrame {
    /** The longest wait for a reply; then the connection ends. */
    private static final long ANSWER_LIMIT_MS = 30_000;
    /** The first pause before refused content is sent again; each next one is doubled. */
    private static final long FIRST_PAUSE_MS = 1_000;
    private static final long LONGEST_PAUSE_MS = 60_000;
    private static final long NONE = Long.MAX_VALUE;

    private long lastNumber;
    private boolean isInFlight;
    private long sentAtMs;
    private long pausedUntilMs = NONE;
    /** The number of pauses since the last reply without one. */
    private int pauses;

    boolean isInFlight() {
        return isInFlight;
    }

    /** Returns the time of the next timeout or retry; Long.MAX_VALUE for none. */
    long deadlineMs() {
        return isInFlight ? sentAtMs + ANSWER_LIMIT_MS : pausedUntilMs;
    }

    /** Returns whether a frame can be sent now. */
    boolean isFree(long nowMs) {
        return !isInFlight && (pausedUntilMs == NONE || pausedUntilMs <= nowMs);
    }

    /** Returns whether the pause after a refusal has just ended. */
    boolean isDue(long nowMs) {
        return pausedUntilMs != NONE && isFree(nowMs);
    }

    /** Returns whether the reply has not arrived in time. */
    boolean isOverdue(long nowMs) {
        return isInFlight && nowMs >= sentAtMs + ANSWER_LIMIT_MS;
    }

    /** Begins the wait for the reply to a frame. Returns the number of the frame. */
    long send(long nowMs) {
        lastNumber += 1;
        isInFlight = true;
        sentAtMs = nowMs;
        pausedUntilMs = NONE;
        return lastNumber;
    }

    /** Ends the wait when the reply is to the frame in flight, and returns whether it is. */
    boolean receive(long number) {
        if (!isInFlight || number != lastNumber) return false;
        isInFlight = false;
        return true;
    }

    /** Continues without a pause after a reply. */
    void proceed() {
        pauses = 0;
    }

    /** Pauses after a reply: the back-off, or longer when the gateway says so. */
    void pause(long nowMs, long atLeastMs) {
        pauses += 1;
        long pause = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << Math.min(pauses - 1, 6));
        pausedUntilMs = nowMs + Math.max(pause, atLeastMs);
    }

    /** Forgets the frame in flight and the pauses. A late reply is not received. */
    void clear() {
        isInFlight = false;
        pausedUntilMs = NONE;
        pauses = 0;
    }
}
