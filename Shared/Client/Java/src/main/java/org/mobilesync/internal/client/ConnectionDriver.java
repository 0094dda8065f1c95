package org.mobilesync.internal.client;

import java.util.List;
import java.util.logging.Level;
import org.mobilesync.SyncException;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.connection.BoundUser;
import org.mobilesync.internal.connection.CloseCodes;
import org.mobilesync.internal.connection.ConnectionActions;
import org.mobilesync.internal.connection.ConnectionEnd;
import org.mobilesync.internal.connection.ConnectionMachine;
import org.mobilesync.internal.connection.Heartbeat;
import org.mobilesync.internal.connection.OperationsAnswer;
import org.mobilesync.internal.connection.OplogReport;
import org.mobilesync.internal.network.GatewayLink;
import org.mobilesync.internal.store.LocalStore;
import org.mobilesync.internal.store.PushStore;
import org.mobilesync.internal.store.StoreOutcome;
import org.mobilesync.internal.wire.Body;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.Close;
import org.mobilesync.internal.wire.Connect;
import org.mobilesync.internal.wire.Parameter;
import org.mobilesync.internal.wire.SyncPoint;
import org.mobilesync.internal.wire.UserParameters;

/** Performs the actions of the connection's state machine on the local store and the transport, on the event loop. */
final class ConnectionDriver implements ConnectionActions {
    /** Bytes of a frame with operations; the rest is for the frame's other fields. */
    private static final int MAX_OPERATIONS_BYTES = Limits.OPERATIONS_BYTES - 1_024;

    private final ClientEngine engine;
    private final LocalStore store;
    private final ClientState state;
    private final Events events;
    private final ConnectBuilder connects;
    private ConnectionMachine machine = new ConnectionMachine(this, Heartbeat.Learned.NOTHING);
    private GatewayLink link;
    private String network = "";
    private ConnectionEnd end;
    /** The time when the gateway accepted the connect; negative before. */
    private long connectedAtMs = -1;
    /** The bytes that did not fit into the store; 0 while none were dropped. Later batches are dropped too. */
    private long droppedBytes;
    private boolean hasReportedRollback;

    ConnectionDriver(ClientEngine engine, ConnectBuilder connects) {
        this.engine = engine;
        this.store = engine.store();
        this.state = engine.state();
        this.events = engine.events();
        this.connects = connects;
    }

    /** Returns the reason when this connection has ended; null while it lives. */
    ConnectionEnd end() {
        return end;
    }

    /** Returns whether the gateway has accepted the connect and the connection has not ended. */
    boolean isOpen() {
        return end == null && machine.phase() == ConnectionMachine.Phase.OPEN;
    }

    /** Returns the time since the gateway accepted the connect; negative when it did not. */
    long openForMs() {
        return connectedAtMs < 0 ? -1 : engine.nowMs() - connectedAtMs;
    }

    /** Returns the user whose data the replies on this connection can contain; null for none. */
    BoundUser boundUser() {
        return machine.boundUser();
    }

    /** Returns the latest time of the next {@link #ticked} call. */
    long deadlineMs() {
        return machine.deadlineMs();
    }

    // Connection.

    /** Begins an attempt: no connection is open. */
    void attempted() {
        connectedAtMs = -1;
        end = null;
        network = state.network();
    }

    /** Sends Connect on a new transport connection. */
    void opened(GatewayLink newLink) {
        link = newLink;
        droppedBytes = 0;
        guarded(() -> {
            machine = new ConnectionMachine(this, store.device().heartbeat(network));
            BoundUser user = state.userToBind();
            Connect connect = connects.connect(user);
            machine.opened(connect, user, connects.points(user, connect.encoded().length), engine.nowMs());
        });
    }

    /** Handles a received frame. */
    void received(Body body) {
        guarded(() -> machine.received(body, engine.nowMs()));
    }

    /** Sends the changes that the app made: another user, or the foreground. */
    void stateChanged() {
        guarded(() -> {
            BoundUser user = state.userToBind();
            if (machine.needsBind(user)) {
                state.isCaughtUp = false;
                List<Parameter> parameters = connects.parameters(user);
                List<SyncPoint> points = connects.points(user, ParameterValues.bytes(parameters));
                machine.userChanged(user, points, parameters, engine.nowMs());
            }
            machine.foregroundChanged(state.isForeground(), engine.nowMs());
        });
    }

    /** Handles the passage of time. */
    void ticked() {
        guarded(() -> {
            machine.ticked(engine.nowMs());
            reconnectIfSpaceFreed();
        });
    }

    /** Cleans up after the connection. */
    void closed() {
        guarded(() -> {
            if (machine.heartbeat() != null) store.device().setHeartbeat(machine.heartbeat().learned(), network);
        });
        machine.end(ConnectionEnd.lost("the connection ended"));
        state.isCaughtUp = false;
        link = null;
    }

    /** Ends the connection without a failure. */
    void leave() {
        if (end == null) end = ConnectionEnd.left();
    }

    /** Ends the connection, because the transport failed. */
    void lost(String reason) {
        if (end == null) end = ConnectionEnd.lost(reason);
    }

    /** Sends a Close of the device; the transport closes after it. */
    void sendClose() {
        if (link == null) return;
        Close close = new Close();
        close.code = CloseCodes.NORMAL;
        link.send(close.frame());
    }

    // Changes by the app.

    /** Reports confirmations and resends, when there is a connection. */
    void reportOplogs() {
        guarded(machine::hasReports);
    }

    /** Sends the user's operations, when there is a connection. */
    void sendOperations() {
        guarded(() -> machine.hasOperations(engine.nowMs()));
    }

    /** Sends the values for the service, when there is a connection. */
    void sendParameters() {
        guarded(() -> machine.hasParameters(engine.nowMs()));
    }

    /** Sends the suspended Sync IDs and the parameters that the device sets, when there is a connection. */
    void subscriptionsChanged() {
        guarded(() -> machine.subscriptionsChanged(
            store.suspended().list(), connects.parameters(machine.boundUser())));
    }

    /** Sends a HistoryRequest or a SummaryRequest. */
    void ask(Body request, ConnectionMachine.Answer answer) {
        guarded(() -> machine.ask(request, answer, engine.nowMs()));
    }

    private void guarded(Runnable step) {
        try {
            step.run();
        } catch (SyncException error) {
            // Only stored data was acknowledged, so the gateway sends the rest again on the next connection.
            engine.storeFailed(error);
            if (end == null) end = ConnectionEnd.lost(error.getMessage());
        }
    }

    // Actions.

    @Override
    public void send(Body frame) {
        if (link == null || end != null) return;
        if (frame instanceof Connect) connects.sign((Connect) frame);
        link.send(frame.frame());
    }

    @Override
    public void store(List<ChannelBatch> batches, String userId, long bindNumber) {
        if (droppedBytes > 0) return;
        StoreOutcome outcome = store.pushes().store(batches, userId, bindNumber);
        if (outcome == null) {
            droppedBytes = PushStore.bytes(batches);
            events.send(listener -> listener.onStoreFull());
            return;
        }
        machine.stored(outcome.acknowledgements, outcome.rereads, outcome.foundGap);
        if (outcome.hasReports) machine.hasReports();
        if (outcome.isRolledBack && !hasReportedRollback) {
            hasReportedRollback = true;
            events.send(listener -> listener.onStoreRolledBack());
        }
        engine.stored(outcome);
    }

    @Override
    public void collectReport(String userId, long bindNumber) {
        machine.collected(store.unreported().report(userId, bindNumber), engine.nowMs());
    }

    @Override
    public void recorded(OplogReport report, String userId) {
        store.unreported().recorded(report, userId);
        engine.recover();
        reconnectIfSpaceFreed();
    }

    /** Connects again when the store has space for the dropped data. */
    private void reconnectIfSpaceFreed() {
        if (droppedBytes > 0 && store.space().free(droppedBytes)) leave();
    }

    @Override
    public void collectOperations(String userId) {
        machine.collected(
            store.outbox().nextFrame(userId, MAX_OPERATIONS_BYTES), userId, engine.nowMs());
    }

    @Override
    public void operationsAnswered(OperationsAnswer answer) {
        store.outbox().answered(answer);
        if (!answer.over.isEmpty()) engine.pump();
    }

    @Override
    public void collectParameters(String userId) {
        machine.collectedParameters(store.parameters().pending(userId), userId, engine.nowMs());
    }

    @Override
    public void parametersAnswered(List<Parameter> parameters, String userId, String refusal) {
        store.parameters().answered(parameters, userId, refusal == null);
        if (refusal != null) events.send(listener -> listener.onParameterRefused(refusal));
    }

    @Override
    public void replaceParameters(UserParameters list, String userId) {
        store.parameters().replaceServerValues(list.parameters, userId);
        for (String bizType : list.refusedBizTypes) {
            events.send(listener -> listener.onParameterRefused(
                bizType + ": too many values within the retention; the last accepted value stays"));
        }
    }

    @Override
    public void connected(long firstResendMs, long serverTimeMs) {
        connectedAtMs = engine.nowMs();
        engine.connected(firstResendMs);
        if (serverTimeMs > 0) store.clock().setServiceTime(serverTimeMs);
    }

    @Override
    public void caughtUp(String userId) {
        if (droppedBytes > 0) return;
        state.isCaughtUp = true;
        events.send(listener -> listener.onCaughtUp(userId));
    }

    @Override
    public void bound(String userId) {
        // A bind can end the cause of a refused recovery.
        engine.recoverRefused();
        events.send(listener -> listener.onBound(userId));
    }

    @Override
    public void bindRefused(String userId, String reason) {
        events.send(listener -> listener.onBindRefused(userId, reason));
    }

    @Override
    public void sessionInvalid(String userId, String reason) {
        events.send(listener -> listener.onSessionInvalid(userId, reason));
    }

    @Override
    public void ownershipTaken(long request, long epoch) {
        state.recordOwnership(request, epoch);
    }

    @Override
    public void setSigningTime(long serverTimeMs) {
        store.clock().setSigningTime(serverTimeMs);
    }

    @Override
    public void replaceIdentity() {
        store.device().replaceIdentity();
        String deviceId = store.device().deviceId();
        state.deviceId = deviceId;
        Events.LOG.log(Level.WARNING, "the service refused the device id; the client made another one");
        events.send(listener -> listener.onRegisteredAnew(deviceId));
    }

    @Override
    public void end(ConnectionEnd reason) {
        if (end == null) end = reason;
    }
}
