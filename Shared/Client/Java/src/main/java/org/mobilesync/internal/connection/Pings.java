package org.mobilesync.internal.connection;

import org.mobilesync.internal.wire.Connected;
import org.mobilesync.internal.wire.Ping;

/** The pings of one connection, and its detection of a silent gateway. Times are in milliseconds of a steady clock. */
final class Pings {
    /** The longest silence of the gateway after a ping or a Connect (DeviceProtocol.md, Timers). */
    private static final long ANSWER_LIMIT_MS = 10_000;
    private static final long DEFAULT_SECONDS = 60;
    private static final long LONGEST_SECONDS = 3_600;
    private static final long NONE = Long.MAX_VALUE;

    private final Heartbeat.Learned learned;
    private Heartbeat heartbeat;
    private boolean isForeground = true;
    /** The interval that the gateway knows, in seconds. */
    private long announcedSeconds;
    /** The idle time before the unanswered ping; negative without one. */
    private long pingIdleMs = -1;
    private long lastFrameMs;
    private long nextPingMs = NONE;
    private long answerDeadlineMs = NONE;
    private long lastNumber;

    Pings(Heartbeat.Learned learned) {
        this.learned = learned;
    }

    /** Returns the heartbeat; null until the gateway has accepted the connect. */
    Heartbeat heartbeat() {
        return heartbeat;
    }

    /** Returns the time of the next ping or of the timeout; Long.MAX_VALUE for none. */
    long deadlineMs() {
        return Math.min(nextPingMs, answerDeadlineMs);
    }

    /** Begins the wait for the answer to Connect. */
    void awaitConnected(boolean inForeground, long nowMs) {
        answerDeadlineMs = nowMs + ANSWER_LIMIT_MS;
        isForeground = inForeground;
    }

    /** Begins the pings, at the gateway's interval or at the learned one. */
    void start(Connected connected, long nowMs) {
        answerDeadlineMs = NONE;
        lastFrameMs = nowMs;
        long usual =
            connected.heartbeatSeconds > 0 ? Math.min(connected.heartbeatSeconds, LONGEST_SECONDS) : DEFAULT_SECONDS;
        heartbeat = new Heartbeat(usual, Math.min(connected.maxHeartbeatSeconds, LONGEST_SECONDS), learned);
        announcedSeconds = usual;
        nextPingMs = nowMs + 1_000 * Math.min(usual, heartbeat.interval(isForeground));
    }

    /** Ends the pings and the wait for an answer. */
    void stop() {
        nextPingMs = NONE;
        answerDeadlineMs = NONE;
    }

    /** Records that a frame arrived; any frame is a sign of life. */
    void heard(long nowMs) {
        answerDeadlineMs = NONE;
        lastFrameMs = nowMs;
        if (pingIdleMs < 0) return;
        heartbeat.answered(pingIdleMs);
        pingIdleMs = -1;
    }

    /** Records that the app entered or left the foreground. Returns whether the state has changed. */
    boolean foregroundChanged(boolean inForeground, long nowMs) {
        if (inForeground == isForeground) return false;
        isForeground = inForeground;
        if (heartbeat != null) {
            nextPingMs = Math.min(nextPingMs, nowMs + 1_000 * heartbeat.interval(inForeground));
        }
        return true;
    }

    /** Returns whether the gateway has been silent for too long. Then the failure counts for the heartbeat. */
    boolean isSilent(long nowMs) {
        if (nowMs < answerDeadlineMs) return false;
        if (pingIdleMs >= 0) heartbeat.failed(pingIdleMs);
        return true;
    }

    /** Returns the ping that is due; null when none is. */
    Ping next(long nowMs) {
        if (heartbeat == null || nowMs < nextPingMs) return null;
        long interval = heartbeat.interval(isForeground);
        lastNumber += 1;
        nextPingMs = nowMs + 1_000 * interval;
        if (answerDeadlineMs == NONE) answerDeadlineMs = nowMs + ANSWER_LIMIT_MS;
        pingIdleMs = nowMs - lastFrameMs;
        Ping ping = new Ping();
        ping.number = lastNumber;
        if (interval != announcedSeconds) ping.intervalSeconds = interval;
        announcedSeconds = interval;
        return ping;
    }
}
