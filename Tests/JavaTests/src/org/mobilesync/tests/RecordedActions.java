package org.mobilesync.tests;

import java.util.ArrayList;
import java.util.List;
import org.mobilesync.internal.connection.ConnectionActions;
import org.mobilesync.internal.connection.ConnectionEnd;
import org.mobilesync.internal.connection.OperationsAnswer;
import org.mobilesync.internal.connection.OplogReport;
import org.mobilesync.internal.wire.Body;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.Parameter;
import org.mobilesync.internal.wire.UserParameters;

/** Records the actions of a state machine as texts, and the sent frames. */
final class RecordedActions implements ConnectionActions {
    final List<String> names = new ArrayList<>();
    final List<Body> frames = new ArrayList<>();
    final List<ChannelBatch> batches = new ArrayList<>();
    OperationsAnswer answer;
    ConnectionEnd end;

    /** Returns the last sent frame of a type; fails when there is none. */
    <T extends Body> T last(Class<T> type) {
        for (int index = frames.size() - 1; index >= 0; index--) {
            if (type.isInstance(frames.get(index))) return type.cast(frames.get(index));
        }
        throw new AssertionError("no " + type.getSimpleName() + " was sent; sent: " + names);
    }

    /** Returns the count of sent frames of a type. */
    long count(Class<? extends Body> type) {
        return frames.stream().filter(type::isInstance).count();
    }

    /** Returns the recorded names, and forgets them. */
    List<String> take() {
        List<String> taken = new ArrayList<>(names);
        names.clear();
        return taken;
    }

    @Override
    public void send(Body frame) {
        names.add("send " + frame.getClass().getSimpleName());
        frames.add(frame);
    }

    @Override
    public void store(List<ChannelBatch> stored, String userId, long bindNumber) {
        names.add("store " + userId + " " + bindNumber);
        batches.addAll(stored);
    }

    @Override
    public void collectReport(String userId, long bindNumber) {
        names.add("collectReport " + userId);
    }

    @Override
    public void recorded(OplogReport report, String userId) {
        names.add("recorded " + userId);
    }

    @Override
    public void collectOperations(String userId) {
        names.add("collectOperations " + userId);
    }

    @Override
    public void operationsAnswered(OperationsAnswer newAnswer) {
        names.add("operationsAnswered");
        answer = newAnswer;
    }

    @Override
    public void collectParameters(String userId) {
        names.add("collectParameters " + userId);
    }

    @Override
    public void parametersAnswered(List<Parameter> parameters, String userId, String refusal) {
        names.add("parametersAnswered " + parameters.size() + " " + userId + " " + refusal);
    }

    @Override
    public void replaceParameters(UserParameters list, String userId) {
        names.add("replaceParameters " + list.parameters.size() + " " + userId);
    }

    @Override
    public void connected(long firstResendMs, long serverTimeMs) {
        names.add("connected");
    }

    @Override
    public void caughtUp(String userId) {
        names.add("caughtUp " + userId);
    }

    @Override
    public void bound(String userId) {
        names.add("bound " + userId);
    }

    @Override
    public void bindRefused(String userId, String reason) {
        names.add("bindRefused " + userId);
    }

    @Override
    public void sessionInvalid(String userId, String reason) {
        names.add("sessionInvalid " + userId);
    }

    @Override
    public void ownershipTaken(long request, long epoch) {
        names.add("ownershipTaken " + request + " " + epoch);
    }

    @Override
    public void setSigningTime(long serverTimeMs) {
        names.add("setSigningTime " + serverTimeMs);
    }

    @Override
    public void replaceIdentity() {
        names.add("replaceIdentity");
    }

    @Override
    public void end(ConnectionEnd reason) {
        names.add("end " + reason.kind());
        end = reason;
    }
}
