package org.mobilesync.internal.client;

import java.util.HashSet;
import java.util.Set;
import org.mobilesync.SyncException;
import org.mobilesync.internal.ChannelKinds;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.connection.BoundUser;
import org.mobilesync.internal.store.Recoveries;
import org.mobilesync.internal.wire.HistoryPage;
import org.mobilesync.internal.wire.HistoryRequest;
import org.mobilesync.internal.wire.RequestRefusal;

/** Requests the pages of recoveries, one after the other, from the place that the store keeps. On the event loop. */
final class RecoveryRequests {
    private static final long RETRY_MS = 1_000;
    private static final long REFUSED_RETRY_MS = 60_000;
    private static final long NEVER = Long.MAX_VALUE;

    private final ClientEngine engine;
    private final ConnectionDriver driver;
    private final Recoveries store;
    /** Recoveries that the gateway refused on this connection. The others go first. */
    private final Set<Recoveries.Recovery> refused = new HashSet<>();
    private boolean isRequesting;
    /** The time of the next retry. */
    private long retryAtMs = NEVER;

    RecoveryRequests(ClientEngine engine, ConnectionDriver driver, Recoveries store) {
        this.engine = engine;
        this.driver = driver;
        this.store = store;
    }

    /** Continues all recoveries, also the refused ones, because the cause of the refusal may be gone. */
    void continueRefused() {
        refused.clear();
        next();
    }

    /** Requests the next page of a recovery, unless a request is in flight. */
    void next() {
        if (!driver.isOpen() || isRequesting) return;
        // The app may have bound another user since then, and the gateway does not know that user yet.
        BoundUser user = driver.boundUser();
        String userId = user == null ? null : user.userId();
        try {
            for (Recoveries.Recovery recovery : store.open(userId)) {
                if (refused.contains(recovery)) continue;
                request(recovery, userId);
                return;
            }
        } catch (SyncException error) {
            engine.storeFailed(error);
        }
    }

    private void request(Recoveries.Recovery recovery, String userId) {
        isRequesting = true;
        HistoryRequest request = new HistoryRequest();
        request.bizType = recovery.bizType;
        request.after = recovery.nextAfter;
        request.before = recovery.upto == 0 ? 0 : recovery.upto + 1;
        request.count = Limits.HISTORY_PAGE;
        request.oldestFirst = true;
        // In an event of its own, so that a failing step does not disturb the connection's event.
        driver.ask(request, page -> engine.event(() -> received((HistoryPage) page, recovery, userId)));
    }

    /** @param userId the bound user at the time of the request */
    private void received(HistoryPage page, Recoveries.Recovery recovery, String userId) {
        isRequesting = false;
        try {
            if (page == null || page.refusal == RequestRefusal.TRY_AGAIN) {
                retry(RETRY_MS);
            } else if (page.refusal != RequestRefusal.NONE || !ChannelKinds.isKnown(page.kind)) {
                // The recovery continues after a bind, on another connection, or after the pause.
                refused.add(recovery);
                retry(REFUSED_RETRY_MS);
                next();
            } else if (ChannelKinds.needsUser(page.kind) && recovery.userId.isEmpty() && userId != null) {
                store.adopt(recovery, userId);
                next();
            } else if (store.hasSpace(page)) {
                long row = store.store(page, recovery);
                if (row != 0) engine.recovered(row);
                next();
            } else {
                retry(REFUSED_RETRY_MS);
            }
        } catch (SyncException error) {
            engine.storeFailed(error);
        }
    }

    /** Plans a retry, unless an earlier one is planned. */
    private void retry(long delayMs) {
        long atMs = engine.nowMs() + delayMs;
        if (atMs >= retryAtMs) return;
        retryAtMs = atMs;
        engine.later(() -> engine.event(() -> {
            if (retryAtMs != atMs) return;
            retryAtMs = NEVER;
            engine.recoverRefused();
        }), delayMs);
    }
}
