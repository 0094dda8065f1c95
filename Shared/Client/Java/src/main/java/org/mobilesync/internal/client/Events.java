package org.mobilesync.internal.client;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.mobilesync.SyncEventListener;

/** Sends events to the app's listeners, on the callback executor. Callable from any thread. */
final class Events {
    static final Logger LOG = Logger.getLogger("org.mobilesync");

    private final Executor executor;
    private final List<SyncEventListener> listeners = new CopyOnWriteArrayList<>();

    Events(Executor executor) {
        this.executor = executor;
    }

    void add(SyncEventListener listener) {
        listeners.add(listener);
    }

    void remove(SyncEventListener listener) {
        listeners.remove(listener);
    }

    /** Calls each listener soon, in order. */
    void send(Consumer<SyncEventListener> event) {
        callBack(() -> {
            for (SyncEventListener listener : listeners) {
                try {
                    event.accept(listener);
                } catch (Throwable error) {
                    LOG.log(Level.WARNING, "an event listener of the app failed", error);
                }
            }
        });
    }

    /** Runs a callback soon; returns false when the executor rejects it. */
    boolean callBack(Runnable callback) {
        try {
            executor.execute(callback);
            return true;
        } catch (RuntimeException error) {
            // The client or the app is closing, or the executor of the app is full or fails.
            LOG.log(Level.FINE, "the callback executor rejected a task", error);
            return false;
        }
    }
}
