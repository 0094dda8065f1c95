package org.mobilesync.internal.connection;

import java.util.ArrayList;
import java.util.List;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.wire.KeepParameters;
import org.mobilesync.internal.wire.Parameter;
import org.mobilesync.internal.wire.ParametersKept;
import org.mobilesync.internal.wire.RequestRefusal;

/** The parameter values of one connection's user on their way to the service, with at most one frame in flight. */
final class ParameterFrames {
    /** The longest wait for a reply; then the connection ends. */
    private static final long ANSWER_LIMIT_MS = 30_000;
    /** The first pause before values that the service could not store are sent again; each next one is doubled. */
    private static final long FIRST_PAUSE_MS = 1_000;
    private static final long LONGEST_PAUSE_MS = 60_000;
    private static final long NONE = Long.MAX_VALUE;

    private long lastNumber;
    /** The values of the frame in flight; null for none. */
    private List<Parameter> inFlight;
    private long sentAtMs;
    private long pausedUntilMs = NONE;
    /** The number of pauses since the last reply that decided. */
    private int pauses;

    /** Returns the time of the next timeout or retry; Long.MAX_VALUE for none. */
    long deadlineMs() {
        return inFlight != null ? sentAtMs + ANSWER_LIMIT_MS : pausedUntilMs;
    }

    /** Returns whether a frame can be sent now. */
    boolean isFree(long nowMs) {
        return inFlight == null && (pausedUntilMs == NONE || pausedUntilMs <= nowMs);
    }

    /** Returns whether the pause after a failure has just ended. */
    boolean isDue(long nowMs) {
        return pausedUntilMs != NONE && isFree(nowMs);
    }

    /** Returns whether the reply has not arrived in time. */
    boolean isOverdue(long nowMs) {
        return inFlight != null && nowMs >= sentAtMs + ANSWER_LIMIT_MS;
    }

    /** Returns the frame for at least one value. */
    KeepParameters send(List<Parameter> parameters, long bindNumber, long nowMs) {
        lastNumber += 1;
        inFlight = new ArrayList<>(parameters.subList(0, Math.min(parameters.size(), Limits.PARAMETERS)));
        sentAtMs = nowMs;
        pausedUntilMs = NONE;
        KeepParameters frame = new KeepParameters();
        frame.number = lastNumber;
        frame.bindNumber = bindNumber;
        frame.parameters.addAll(inFlight);
        return frame;
    }

    /**
     * Handles a reply of the gateway. Returns the values that it decides; null when the reply is not for the frame in
     * flight, or when the values are sent again later.
     */
    List<Parameter> answered(ParametersKept reply, long nowMs) {
        if (inFlight == null || reply.number != lastNumber) return null;
        List<Parameter> sent = inFlight;
        inFlight = null;
        boolean isDecided = reply.refusal == RequestRefusal.NONE || reply.refusal == RequestRefusal.INVALID;
        pauses = isDecided ? 0 : pauses + 1;
        if (isDecided) return sent;
        pausedUntilMs = nowMs + Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << Math.min(pauses - 1, 6));
        return null;
    }

    /** Forgets the frame in flight, because another user is bound. Its values are sent again later. */
    void userChanged() {
        inFlight = null;
        pausedUntilMs = NONE;
        pauses = 0;
    }
}
