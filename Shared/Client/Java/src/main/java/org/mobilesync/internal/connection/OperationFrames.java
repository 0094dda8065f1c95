package org.mobilesync.internal.connection;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.mobilesync.internal.wire.DeviceOperation;
import org.mobilesync.internal.wire.OperationRefusal;
import org.mobilesync.internal.wire.OperationsTaken;
import org.mobilesync.internal.wire.SubmitOperations;

/** The operations of one connection's user on their way to the gateway, with at most one frame in flight. */
final class OperationFrames {
    /** The longest wait for a reply; then the connection ends. */
    private static final long ANSWER_LIMIT_MS = 30_000;
    /** The longest pause before refused operations are sent again. */
    private static final long LONGEST_PAUSE_MS = 60_000;
    private static final long LONGEST_RETRY_AFTER_MS = 3_600_000;
    private static final long TOO_MANY = 429;
    private static final long NONE = Long.MAX_VALUE;

    private long lastNumber;
    /** The ids of the frame in flight; null for none. */
    private List<String> inFlight;
    private long sentAtMs;
    /** No frame is sent before another bind. */
    private boolean waitsForBind;
    private long pausedUntilMs = NONE;
    private int pauses;

    /** Returns the time of the next timeout or retry; Long.MAX_VALUE for none. */
    long deadlineMs() {
        if (inFlight != null) return sentAtMs + ANSWER_LIMIT_MS;
        return waitsForBind ? NONE : pausedUntilMs;
    }

    /** Returns whether a frame can be sent now. */
    boolean isFree(long nowMs) {
        return inFlight == null && !waitsForBind && (pausedUntilMs == NONE || pausedUntilMs <= nowMs);
    }

    /** Returns whether the pause after a refusal has just ended. */
    boolean isDue(long nowMs) {
        return pausedUntilMs != NONE && isFree(nowMs);
    }

    /** Returns whether the reply has not arrived in time. */
    boolean isOverdue(long nowMs) {
        return inFlight != null && nowMs >= sentAtMs + ANSWER_LIMIT_MS;
    }

    /** Returns the frame for at least one operation. */
    SubmitOperations send(List<DeviceOperation> operations, long bindNumber, long nowMs) {
        lastNumber += 1;
        inFlight = new ArrayList<>();
        for (DeviceOperation operation : operations) inFlight.add(operation.operationId);
        sentAtMs = nowMs;
        pausedUntilMs = NONE;
        SubmitOperations frame = new SubmitOperations();
        frame.number = lastNumber;
        frame.bindNumber = bindNumber;
        frame.operations.addAll(operations);
        return frame;
    }

    /** Handles a reply of the gateway. Returns null when the reply is not for the frame in flight. */
    OperationsAnswer answered(OperationsTaken reply, long nowMs) {
        if (inFlight == null || reply.number != lastNumber) return null;
        Map<String, OperationRefusal> refused = new HashMap<>();
        for (OperationRefusal refusal : reply.refusals) refused.put(refusal.operationId, refusal);
        OperationsAnswer answer = new OperationsAnswer();
        boolean isPaused = false;
        for (String id : inFlight) {
            OperationRefusal refusal = refused.get(id);
            if (refusal == null) {
                answer.taken.add(id);
            } else if (refusal.code == 401 || refusal.code == 409) {
                waitsForBind = true;
                answer.free.add(id);
            } else if (isForLater(refusal.code)) {
                isPaused = true;
                if (refusal.code == TOO_MANY) answer.free.add(id);
            } else {
                answer.over.add(refusal);
            }
        }
        inFlight = null;
        pauses = isPaused ? pauses + 1 : 0;
        if (isPaused) {
            long pause = Math.min(LONGEST_PAUSE_MS, 1_000L << Math.min(pauses - 1, 6));
            pausedUntilMs = nowMs + Math.max(pause, Math.min(reply.retryAfterMs, LONGEST_RETRY_AFTER_MS));
        }
        return answer;
    }

    private static boolean isForLater(long code) {
        return code == 408 || code == 425 || code == TOO_MANY || code >= 500;
    }

    /** Forgets the frame in flight, because another user is bound. Its operations are sent again later. */
    void userChanged() {
        inFlight = null;
        waitsForBind = false;
        pausedUntilMs = NONE;
        pauses = 0;
    }
}
