package org.mobilesync.internal.connection;

import java.util.ArrayList;
import java.util.List;
import org.mobilesync.internal.ChannelKinds;
import org.mobilesync.internal.wire.Bind;
import org.mobilesync.internal.wire.BindResult;
import org.mobilesync.internal.wire.Body;
import org.mobilesync.internal.wire.CaughtUp;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.Close;
import org.mobilesync.internal.wire.ConfirmRecorded;
import org.mobilesync.internal.wire.Connect;
import org.mobilesync.internal.wire.Connected;
import org.mobilesync.internal.wire.DeviceOperation;
import org.mobilesync.internal.wire.Foreground;
import org.mobilesync.internal.wire.HistoryPage;
import org.mobilesync.internal.wire.LongList;
import org.mobilesync.internal.wire.OperationsTaken;
import org.mobilesync.internal.wire.OwnershipTaken;
import org.mobilesync.internal.wire.Parameter;
import org.mobilesync.internal.wire.ParametersKept;
import org.mobilesync.internal.wire.Ping;
import org.mobilesync.internal.wire.Pong;
import org.mobilesync.internal.wire.Push;
import org.mobilesync.internal.wire.RequestRefusal;
import org.mobilesync.internal.wire.SessionState;
import org.mobilesync.internal.wire.SessionValidity;
import org.mobilesync.internal.wire.StoredAck;
import org.mobilesync.internal.wire.StoredUpto;
import org.mobilesync.internal.wire.Subscriptions;
import org.mobilesync.internal.wire.SummaryPage;
import org.mobilesync.internal.wire.SyncPoint;
import org.mobilesync.internal.wire.UserParameters;

/**
 * One connection of a client, from its first frame to its end (DeviceProtocol.md, A connection's life).
 *
 * <p>It turns events into actions, without I/O and without a clock. Times are in milliseconds of a steady clock. Events
 * that do not apply in the current phase are ignored.
 */
public final class ConnectionMachine {
    /** The phase of a connection. */
    public enum Phase {
        /** No frame has been sent. Next: GREETING. */
        IDLE,
        /** Connect has been sent. Next: OPEN (Connected), ENDED. */
        GREETING,
        /** The gateway has accepted the connect. Next: ENDED. */
        OPEN,
        /** The connection is over, and every event is ignored. */
        ENDED
    }

    private final ConnectionActions actions;
    private final Pings pings;
    private final Reports reports = new Reports();
    private final Requests requests = new Requests();
    private final OperationFrames operations = new OperationFrames();
    private final ParameterFrames parameters = new ParameterFrames();
    private Phase phase = Phase.IDLE;
    private long bindNumber;
    private BoundUser user;
    private boolean isBindAccepted;

    /** Creates a machine with the results of earlier pings on the network. */
    public ConnectionMachine(ConnectionActions actions, Heartbeat.Learned learned) {
        this.actions = actions;
        pings = new Pings(learned);
    }

    /** Returns the phase. */
    public Phase phase() {
        return phase;
    }

    /** Returns the latest time of the next {@link #ticked} call; Long.MAX_VALUE when nothing is pending. */
    public long deadlineMs() {
        return Math.min(Math.min(pings.deadlineMs(), reports.deadlineMs()),
            Math.min(requests.deadlineMs(), Math.min(operations.deadlineMs(), parameters.deadlineMs())));
    }

    /** Returns the ping interval and its results; null until the gateway has accepted the connect. */
    public Heartbeat heartbeat() {
        return pings.heartbeat();
    }

    /** Returns the user of the present bind; null for none. */
    public BoundUser boundUser() {
        return user;
    }

    private String acceptedUserId() {
        return isBindAccepted && user != null ? user.userId() : null;
    }

    private boolean isLive() {
        return phase == Phase.GREETING || phase == Phase.OPEN;
    }

    // Events of the connection.

    /** Sends Connect, with a bind of the user and its sync points; the user may be null. */
    public void opened(Connect connect, BoundUser user, List<SyncPoint> points, long nowMs) {
        if (phase != Phase.IDLE) return;
        phase = Phase.GREETING;
        pings.awaitConnected(!connect.background, nowMs);
        this.user = user;
        if (user != null) {
            bindNumber = 1;
            connect.bind = bindFrame(points);
        }
        actions.send(connect);
    }

    /** Handles a received frame; null for a body of a later version. */
    public void received(Body body, long nowMs) {
        if (!isLive()) return;
        if (phase == Phase.OPEN) pings.heard(nowMs);
        switch (body == null ? 0 : body.number()) {
            case Connected.NUMBER:
                received((Connected) body, nowMs);
                break;
            case BindResult.NUMBER:
                received((BindResult) body);
                break;
            case Push.NUMBER:
                received((Push) body);
                break;
            case ConfirmRecorded.NUMBER:
                Reports.Sent sent = reports.recorded(((ConfirmRecorded) body).reportId);
                if (sent == null) return;
                actions.recorded(sent.content, sent.userId);
                collectReport();
                break;
            case CaughtUp.NUMBER:
                if (((CaughtUp) body).bindNumber == bindNumber) actions.caughtUp(acceptedUserId());
                break;
            case SessionState.NUMBER:
                SessionState state = (SessionState) body;
                boolean isPresent = state.bindNumber == bindNumber && user != null;
                if (!isPresent || state.validity != SessionValidity.INVALID) return;
                actions.sessionInvalid(user.userId(), state.reason);
                break;
            case Ping.NUMBER:
                Pong pong = new Pong();
                pong.number = ((Ping) body).number;
                actions.send(pong);
                break;
            case Close.NUMBER:
                received((Close) body);
                break;
            case HistoryPage.NUMBER:
                answered(((HistoryPage) body).requestNumber, body, nowMs);
                break;
            case SummaryPage.NUMBER:
                answered(((SummaryPage) body).requestNumber, body, nowMs);
                break;
            case OperationsTaken.NUMBER:
                OperationsAnswer answer =
                    phase == Phase.OPEN ? operations.answered((OperationsTaken) body, nowMs) : null;
                if (answer == null) return;
                actions.operationsAnswered(answer);
                hasOperations(nowMs);
                break;
            case ParametersKept.NUMBER:
                received((ParametersKept) body, nowMs);
                break;
            case UserParameters.NUMBER:
                UserParameters list = (UserParameters) body;
                if (list.bindNumber != bindNumber || acceptedUserId() == null) return;
                actions.replaceParameters(list, acceptedUserId());
                break;
            case OwnershipTaken.NUMBER:
                OwnershipTaken taken = (OwnershipTaken) body;
                if (taken.bindNumber != bindNumber || user == null || user.request() == 0) return;
                actions.ownershipTaken(user.request(), taken.ownershipEpoch);
                break;
            default:
                // A Pong only counts as a received frame. Bodies of devices and of later versions are ignored.
                break;
        }
    }

    private void received(Connected connected, long nowMs) {
        if (phase != Phase.GREETING) {
            end(ConnectionEnd.lost("the gateway sent Connected twice"));
            return;
        }
        phase = Phase.OPEN;
        pings.start(connected, nowMs);
        actions.connected(connected.firstResendMs, connected.serverTimeMs);
        collectReport();
        hasOperations(nowMs);
        hasParameters(nowMs);
    }

    private void received(BindResult result) {
        if (result.bindNumber != bindNumber || user == null || isBindAccepted) return;
        if (!result.accepted) {
            actions.bindRefused(user.userId(), result.reason);
            return;
        }
        isBindAccepted = true;
        actions.bound(user.userId());
        collectReport();
        if (phase != Phase.OPEN) return;
        actions.collectOperations(user.userId());
        actions.collectParameters(user.userId());
    }

    private void received(ParametersKept reply, long nowMs) {
        List<Parameter> decided = phase == Phase.OPEN ? parameters.answered(reply, nowMs) : null;
        if (decided == null) return;
        boolean isKept = reply.refusal == RequestRefusal.NONE;
        actions.parametersAnswered(decided, acceptedUserId(), isKept ? null : reply.reason);
        hasParameters(nowMs);
    }

    private void received(Push push) {
        if (phase != Phase.OPEN) {
            end(ConnectionEnd.lost("the gateway sent Push before Connected"));
            return;
        }
        List<ChannelBatch> batches = new ArrayList<>();
        for (ChannelBatch batch : push.batches) {
            if (!ChannelKinds.isKnown(batch.kind)) continue;
            // Frames of an earlier bind are late. The gateway sends their data again when that user is bound.
            boolean isPresent = isBindAccepted && batch.bindNumber == bindNumber;
            if (isPresent || !ChannelKinds.needsUser(batch.kind)) batches.add(batch);
        }
        if (!batches.isEmpty()) actions.store(batches, acceptedUserId(), bindNumber);
    }

    private void received(Close close) {
        if (close.serverTimeMs > 0) actions.setSigningTime(close.serverTimeMs);
        if (close.code == CloseCodes.REGISTER_ANEW) actions.replaceIdentity();
        end(ConnectionEnd.closed(close.code, close.reason, close.retryAfterMs, close.address));
    }

    private void answered(long number, Body page, long nowMs) {
        Requests.Completion completion = requests.answered(number);
        if (completion == null) return;
        sendRequests(nowMs);
        completion.answered(page);
    }

    // Events of the client.

    /** Acknowledges stored batches and re-reads, and ends the connection after a gap. */
    public void stored(List<StoredUpto> channels, LongList rereads, boolean foundGap) {
        if (phase != Phase.OPEN) return;
        if (!channels.isEmpty() || !rereads.isEmpty()) {
            StoredAck ack = new StoredAck();
            ack.channels.addAll(channels);
            for (int index = 0; index < rereads.size(); index++) ack.rereads.add(rereads.get(index));
            actions.send(ack);
        }
        if (foundGap) end(ConnectionEnd.gap());
    }

    /** Binds another user or session, or the same one again on a new call of the app; null unbinds. */
    public void userChanged(
        BoundUser newUser, List<SyncPoint> points, List<Parameter> newParameters, long nowMs
    ) {
        if (!isLive() || !needsBind(newUser)) return;
        bindNumber += 1;
        user = newUser;
        isBindAccepted = false;
        // The report of the former user may never be answered. Its content is collected again when that user is bound.
        reports.removeAll();
        operations.userChanged();
        parameters.userChanged();
        List<Requests.Completion> unanswered = requests.removeAll();
        Bind bind = bindFrame(points);
        bind.parameters.addAll(newParameters);
        actions.send(bind);
        if (phase == Phase.OPEN) collectReport();
        for (Requests.Completion completion : unanswered) completion.answered(null);
    }

    /** Returns whether this user needs a bind on this connection. */
    public boolean needsBind(BoundUser newUser) {
        boolean isRequestedAnew = newUser != null && newUser.request() != 0
            && (user == null || newUser.request() != user.request());
        return isRequestedAnew || !BoundUser.isSame(newUser, user);
    }

    /** Reports that the app entered or left the foreground. */
    public void foregroundChanged(boolean isForeground, long nowMs) {
        if (!isLive() || !pings.foregroundChanged(isForeground, nowMs)) return;
        Foreground frame = new Foreground();
        frame.foreground = isForeground;
        actions.send(frame);
    }

    /** Sends the suspended Sync IDs and the parameters that the device sets. */
    public void subscriptionsChanged(List<String> suspended, List<Parameter> newParameters) {
        if (!isLive()) return;
        Subscriptions frame = new Subscriptions();
        frame.suspended.addAll(suspended);
        frame.parameters.addAll(newParameters);
        actions.send(frame);
    }

    /** Receives the reply to a request. */
    public interface Answer {
        /** Handles a HistoryPage or a SummaryPage; null without a connection or without a reply in time. */
        void answered(Body page);
    }

    /** Sends a HistoryRequest or a SummaryRequest. */
    public void ask(Body request, Answer answer, long nowMs) {
        if (phase != Phase.OPEN) {
            answer.answered(null);
            return;
        }
        requests.ask(request, answer::answered);
        sendRequests(nowMs);
    }

    private void sendRequests(long nowMs) {
        for (Body frame : requests.next(bindNumber, nowMs)) actions.send(frame);
    }

    /** Collects the user's operations, if a frame can be sent. */
    public void hasOperations(long nowMs) {
        if (phase == Phase.OPEN && acceptedUserId() != null && operations.isFree(nowMs)) {
            actions.collectOperations(acceptedUserId());
        }
    }

    /** Sends the operations that {@code collectOperations} found. */
    public void collected(List<DeviceOperation> found, String userId, long nowMs) {
        boolean isPresent = phase == Phase.OPEN && userId.equals(acceptedUserId());
        if (isPresent && !found.isEmpty() && operations.isFree(nowMs)) {
            actions.send(operations.send(found, bindNumber, nowMs));
        }
    }

    /** Collects the user's parameters for the service, if a frame can be sent. */
    public void hasParameters(long nowMs) {
        if (phase == Phase.OPEN && acceptedUserId() != null && parameters.isFree(nowMs)) {
            actions.collectParameters(acceptedUserId());
        }
    }

    /** Sends the parameters that {@code collectParameters} found. */
    public void collectedParameters(List<Parameter> found, String userId, long nowMs) {
        boolean isPresent = phase == Phase.OPEN && userId.equals(acceptedUserId());
        if (isPresent && !found.isEmpty() && parameters.isFree(nowMs)) {
            actions.send(parameters.send(found, bindNumber, nowMs));
        }
    }

    /** Collects confirmations, resends and dead letters for a report, unless a report is in flight. */
    public void hasReports() {
        collectReport();
    }

    /** Sends the content that {@code collectReport} found. */
    public void collected(OplogReport content, long nowMs) {
        if (phase != Phase.OPEN || !reports.isFree() || content.isEmpty()) return;
        actions.send(reports.send(content, acceptedUserId(), nowMs));
    }

    private void collectReport() {
        if (phase == Phase.OPEN && reports.isFree()) actions.collectReport(acceptedUserId(), bindNumber);
    }

    /** Handles the passage of time; to be called at {@link #deadlineMs()} or earlier. */
    public void ticked(long nowMs) {
        if (!isLive()) return;
        if (pings.isSilent(nowMs)) {
            end(ConnectionEnd.silent());
            return;
        }
        // Timeouts come first, so that their callers are informed even when the connection ends below.
        List<Requests.Completion> overdue = requests.removeOverdue(nowMs);
        if (!overdue.isEmpty()) sendRequests(nowMs);
        for (Requests.Completion completion : overdue) completion.answered(null);
        Ping ping = pings.next(nowMs);
        if (ping != null) actions.send(ping);
        if (reports.removeOverdue(nowMs)) collectReport();
        if (operations.isOverdue(nowMs) || parameters.isOverdue(nowMs)) {
            end(ConnectionEnd.silent());
            return;
        }
        if (operations.isDue(nowMs)) hasOperations(nowMs);
        if (parameters.isDue(nowMs)) hasParameters(nowMs);
    }

    /** Ends the connection for this reason. */
    public void end(ConnectionEnd end) {
        if (phase == Phase.ENDED) return;
        phase = Phase.ENDED;
        pings.stop();
        reports.removeAll();
        List<Requests.Completion> unanswered = requests.removeAll();
        actions.end(end);
        for (Requests.Completion completion : unanswered) completion.answered(null);
    }

    private Bind bindFrame(List<SyncPoint> points) {
        Bind bind = new Bind();
        bind.bindNumber = bindNumber;
        bind.syncPoints.addAll(points);
        if (user == null) return bind;
        bind.userId = user.userId();
        bind.sessionId = user.sessionId();
        bind.requestedByApp = user.request() != 0;
        bind.ownershipEpoch = user.ownershipEpoch();
        return bind;
    }
}
