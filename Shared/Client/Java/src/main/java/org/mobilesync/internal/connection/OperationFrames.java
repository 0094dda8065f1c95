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
    private static final long LONGEST_RETRY_AFTER_MS = 3_600_000;
    private static final long TOO_MANY = 429;
    private static final long NONE = Long.MAX_VALUE;

    private final OutstandingFrame frame = new OutstandingFrame();
    /** The ids of the last frame. */
    private final List<String> sent = new ArrayList<>();
    /** No frame is sent before another bind. */
    private boolean waitsForBind;

    /** Returns the time of the next timeout or retry; Long.MAX_VALUE for none. */
    long deadlineMs() {
        return waitsForBind && !frame.isInFlight() ? NONE : frame.deadlineMs();
    }

    /** Returns whether a frame can be sent now. */
    boolean isFree(long nowMs) {
        return !waitsForBind && frame.isFree(nowMs);
    }

    /** Returns whether the pause after a refusal has just ended. */
    boolean isDue(long nowMs) {
        return !waitsForBind && frame.isDue(nowMs);
    }

    /** Returns whether the reply has not arrived in time. */
    boolean isOverdue(long nowMs) {
        return frame.isOverdue(nowMs);
    }

    /** Returns the frame for at least one operation. */
    SubmitOperations send(List<DeviceOperation> operations, long bindNumber, long nowMs) {
        sent.clear();
        for (DeviceOperation operation : operations) sent.add(operation.operationId);
        SubmitOperations submission = new SubmitOperations();
        submission.number = frame.send(nowMs);
        submission.bindNumber = bindNumber;
        submission.operations.addAll(operations);
        return submission;
    }

    /** Handles a reply of the gateway. Returns null when the reply is not for the frame in flight. */
    OperationsAnswer answered(OperationsTaken reply, long nowMs) {
        if (!frame.receive(reply.number)) return null;
        Map<String, OperationRefusal> refused = new HashMap<>();
        for (OperationRefusal refusal : reply.refusals) refused.put(refusal.operationId, refusal);
        OperationsAnswer answer = new OperationsAnswer();
        boolean isPaused = false;
        for (String id : sent) {
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
        if (isPaused) {
            frame.pause(nowMs, Math.min(reply.retryAfterMs, LONGEST_RETRY_AFTER_MS));
        } else {
            frame.proceed();
        }
        return answer;
    }

    private static boolean isForLater(long code) {
        return code == 408 || code == 425 || code == TOO_MANY || code >= 500;
    }

    /** Forgets the frame in flight, because another user is bound. Its operations are sent again later. */
    void userChanged() {
        frame.clear();
        waitsForBind = false;
    }
}
