package org.mobilesync.internal.client;

import java.util.Random;
import java.util.logging.Level;
import org.mobilesync.SyncStatus;
import org.mobilesync.internal.connection.ConnectionEnd;
import org.mobilesync.internal.connection.GatewayAddress;
import org.mobilesync.internal.connection.ReconnectPolicy;
import org.mobilesync.internal.network.GatewayLink;
import org.mobilesync.internal.network.TlsConnector;
import org.mobilesync.internal.wire.Body;

/** Connects, and connects again after every lost connection, on the event loop. */
final class Supervisor implements GatewayLink.Listener {
    /** A gateway that does not read delays the end of a closed link for at most this time. */
    private static final long CLOSE_LINGER_MS = 2_000;
    private static final long NEVER = Long.MAX_VALUE;

    /** The phases of the supervision. */
    private enum Phase {
        /** No attempt follows. Next: WAITING (the app calls connect). */
        STOPPED,
        /** The next attempt is due at nextAttemptMs, when the app wants a connection. Next: CONNECTING. */
        WAITING,
        /** The transport is being made. Next: LIVE, WAITING, STOPPED. */
        CONNECTING,
        /** Frames flow. Next: WAITING, STOPPED. */
        LIVE
    }

    private final ClientEngine engine;
    private final TlsConnector connector;
    private final GatewayAddress home;
    private final ConnectionDriver driver;
    private final ReconnectPolicy policy = new ReconnectPolicy();
    private final Random random = new Random();
    private final long attemptLimitMs;
    private Phase phase = Phase.STOPPED;
    private GatewayAddress address;
    private GatewayLink link;
    /** The last link that was closed with frames to write. */
    private volatile GatewayLink closingLink;
    private long nextAttemptMs = NEVER;
    /** The app cannot shorten the wait below this time, which the gateway demands. */
    private long notBeforeMs;
    private long attemptEndsMs = NEVER;

    Supervisor(ClientEngine engine, TlsConnector connector, GatewayAddress home, ConnectionDriver driver,
        long attemptLimitMs) {
        this.engine = engine;
        this.connector = connector;
        this.home = home;
        this.driver = driver;
        this.attemptLimitMs = attemptLimitMs;
        address = home;
    }

    /** Allows attempts after the client was created or stopped for good. */
    void start() {
        if (phase != Phase.STOPPED) return;
        phase = Phase.WAITING;
        nextAttemptMs = engine.nowMs();
        notBeforeMs = engine.nowMs();
    }

    /** Handles a change of the app's wishes: user, foreground, network, connect or disconnect. */
    void stateChanged() {
        if (phase == Phase.WAITING) nextAttemptMs = Math.max(notBeforeMs, Math.min(nextAttemptMs, engine.nowMs()));
        if (phase == Phase.LIVE) driver.stateChanged();
    }

    /** Ends this connection without a failure, and connects again at once if the app wants a connection. */
    void reconnect() {
        if (phase == Phase.CONNECTING || phase == Phase.LIVE) driver.leave();
    }

    /** Returns the latest time of the next {@link #settle} call. */
    long deadlineMs() {
        switch (phase) {
            case WAITING:
                return engine.state().wantsConnection(engine.nowMs()) ? nextAttemptMs : NEVER;
            case CONNECTING:
                return Math.min(attemptEndsMs, engine.state().backgroundEndMs());
            case LIVE:
                return Math.min(driver.deadlineMs(), engine.state().backgroundEndMs());
            default:
                return NEVER;
        }
    }

    /** Ends the connection, or begins an attempt, when its time has come. Called after every event of the loop. */
    void settle() {
        long now = engine.nowMs();
        boolean isWanted = engine.state().wantsConnection(now);
        if (phase == Phase.CONNECTING || phase == Phase.LIVE) {
            if (!isWanted) driver.leave();
            if (phase == Phase.CONNECTING && now >= attemptEndsMs) driver.lost("the gateway did not connect in time");
            if (driver.end() != null) finish(driver.end());
        }
        if (phase == Phase.WAITING && isWanted && engine.nowMs() >= nextAttemptMs) attempt();
    }

    private void attempt() {
        phase = Phase.CONNECTING;
        attemptEndsMs = engine.nowMs() + attemptLimitMs;
        engine.setStatus(SyncStatus.CONNECTING);
        driver.attempted();
        link = new GatewayLink(connector, address, this);
        address = home;
        link.start();
    }

    private void finish(ConnectionEnd end) {
        boolean wasOpen = driver.openForMs() >= 0;
        GatewayLink ended = link;
        link = null;
        if (phase == Phase.LIVE && end.kind() != ConnectionEnd.Kind.CLOSED) driver.sendClose();
        driver.closed();
        if (phase == Phase.LIVE) {
            ended.close();
            // At most one link lingers: the end of the client waits for the last one only.
            if (closingLink != null) closingLink.abort();
            closingLink = ended;
            engine.later(ended::abort, CLOSE_LINGER_MS);
        } else {
            ended.abort();
        }
        long now = engine.nowMs();
        ReconnectPolicy.Decision decision =
            policy.next(end, driver.openForMs(), now, random.nextDouble());
        phase = Phase.WAITING;
        notBeforeMs = now + decision.atLeastMs();
        nextAttemptMs = notBeforeMs + decision.delayMs();
        Events.LOG.log(Level.FINE, "connection ended: {0}", end.reason());
        boolean isLeft = end.kind() == ConnectionEnd.Kind.LEFT;
        engine.setStatus(wasOpen || isLeft ? SyncStatus.NOT_AVAILABLE : SyncStatus.CONNECT_FAILED);
        publish(end);
        switch (decision.reaction()) {
            case SIGN_IN_AGAIN:
                engine.state().requireSignIn(driver.boundUser());
                break;
            case RECONNECT_ELSEWHERE:
                if (decision.elsewhere() != null) address = decision.elsewhere();
                break;
            case STAY_AWAY:
                phase = Phase.STOPPED;
                engine.setStatus(SyncStatus.NOT_AVAILABLE);
                engine.events().send(listener -> listener.onClosedForGood(end.code(), end.reason()));
                break;
            default:
                break;
        }
        engine.connectionEnded();
    }

    private void publish(ConnectionEnd end) {
        switch (end.kind()) {
            case CLOSED:
                engine.events().send(listener -> listener.onClosed(end.code(), end.reason()));
                break;
            case LEFT:
                break;
            default:
                engine.events().send(listener -> listener.onConnectionLost(end.reason()));
        }
    }

    /** Ends the connection, and makes no other. */
    void stop() {
        if (phase == Phase.CONNECTING || phase == Phase.LIVE) {
            driver.leave();
            finish(driver.end());
        }
        phase = Phase.STOPPED;
    }

    /** Waits until the last link has written its Close, for the end of the client. Called on another thread. */
    void awaitClosed() throws InterruptedException {
        GatewayLink closing = closingLink;
        if (closing != null) closing.awaitClosed(CLOSE_LINGER_MS);
    }

    // Events of the link's threads; a link that was replaced has no effect.

    @Override
    public void opened(GatewayLink opened) {
        engine.event(() -> {
            if (link != opened || phase != Phase.CONNECTING || driver.end() != null) return;
            phase = Phase.LIVE;
            driver.opened(opened);
        });
    }

    @Override
    public void received(GatewayLink from, Body body) {
        engine.event(() -> {
            if (link == from && phase == Phase.LIVE && driver.end() == null) driver.received(body);
            from.handled();
        });
    }

    @Override
    public void ended(GatewayLink ended, String reason) {
        engine.event(() -> {
            if (link == ended) driver.lost(reason);
        });
    }
}
