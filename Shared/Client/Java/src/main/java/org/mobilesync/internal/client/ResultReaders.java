package org.mobilesync.internal.client;

import java.util.HashMap;
import java.util.Map;
import java.util.logging.Level;
import org.mobilesync.SyncResultListener;
import org.mobilesync.internal.store.Outbox;

/** Hands the results of operations to the app's listener, each one once in a run. Runs on the event loop. */
final class ResultReaders {
    private final ClientEngine engine;
    private final Outbox outbox;
    /** The number of the last result that the app received in this run, by user. */
    private final Map<String, Long> lastNumbers = new HashMap<>();
    private SyncResultListener listener;
    private boolean isBusy;

    ResultReaders(ClientEngine engine, Outbox outbox) {
        this.engine = engine;
        this.outbox = outbox;
    }

    /** Sets the listener; null removes it. */
    void set(SyncResultListener newListener) {
        listener = newListener;
    }

    /** Hands the next result out, if the listener is free. */
    void pump() {
        String userId = engine.state().visibleUserId();
        if (listener == null || isBusy || userId == null) return;
        Outbox.NumberedResult next = outbox.result(userId, lastNumbers.getOrDefault(userId, 0L));
        if (next == null) return;
        long former = lastNumbers.getOrDefault(userId, 0L);
        lastNumbers.put(userId, next.number());
        isBusy = true;
        SyncResultListener receiver = listener;
        if (!engine.events().callBack(() -> call(receiver, next))) {
            isBusy = false;
            lastNumbers.put(userId, former);
            engine.pumpLater();
        }
    }

    private void call(SyncResultListener receiver, Outbox.NumberedResult next) {
        String userId = next.result().userId();
        // The app may have bound another user since the hand-out. Then the result waits again.
        boolean isWanted = engine.isVisible(userId);
        try {
            if (isWanted) receiver.onResult(next.result());
        } catch (Throwable error) {
            Events.LOG.log(Level.WARNING,
                "a result listener of the app failed; the result comes again after the next start", error);
            engine.events().send(other -> other.onListenerFailed(error));
        } finally {
            engine.event(() -> {
                isBusy = false;
                if (!isWanted) lastNumbers.put(userId, next.number() - 1);
                engine.pump();
            });
        }
    }
}
