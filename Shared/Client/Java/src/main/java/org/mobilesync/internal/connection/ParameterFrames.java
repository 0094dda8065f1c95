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
    private final OutstandingFrame frame = new OutstandingFrame();
    /** The values of the last frame. */
    private List<Parameter> sent;

    /** Returns the time of the next timeout or retry; Long.MAX_VALUE for none. */
    long deadlineMs() {
        return frame.deadlineMs();
    }

    /** Returns whether a frame can be sent now. */
    boolean isFree(long nowMs) {
        return frame.isFree(nowMs);
    }

    /** Returns whether the pause after a failure has just ended. */
    boolean isDue(long nowMs) {
        return frame.isDue(nowMs);
    }

    /** Returns whether the reply has not arrived in time. */
    boolean isOverdue(long nowMs) {
        return frame.isOverdue(nowMs);
    }

    /** Returns the frame for at least one value. */
    KeepParameters send(List<Parameter> parameters, long bindNumber, long nowMs) {
        sent = new ArrayList<>(parameters.subList(0, Math.min(parameters.size(), Limits.PARAMETERS)));
        KeepParameters request = new KeepParameters();
        request.number = frame.send(nowMs);
        request.bindNumber = bindNumber;
        request.parameters.addAll(sent);
        return request;
    }

    /**
     * Handles a reply of the gateway. Returns the values that it decides; null when the reply is not for the frame in
     * flight, or when the values are sent again later.
     */
    List<Parameter> answered(ParametersKept reply, long nowMs) {
        if (!frame.receive(reply.number)) return null;
        if (reply.refusal == RequestRefusal.NONE || reply.refusal == RequestRefusal.INVALID) {
            frame.proceed();
            return sent;
        }
        frame.pause(nowMs, 0);
        return null;
    }

    /** Forgets the frame in flight, because another user is bound. Its values are sent again later. */
    void userChanged() {
        frame.clear();
    }
}
