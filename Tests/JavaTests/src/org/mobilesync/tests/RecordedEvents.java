package org.mobilesync.tests;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.mobilesync.SyncEventListener;
import org.mobilesync.SyncException;
import org.mobilesync.SyncStatus;

/** Records the events of a client as texts. */
final class RecordedEvents implements SyncEventListener {
    private static final long LIMIT_MS = 15_000;

    private final List<String> events = new CopyOnWriteArrayList<>();

    private synchronized void add(String event) {
        events.add(event);
        notifyAll();
    }

    /** Waits for an event that begins with a text, also one that has happened before, and returns it. */
    synchronized String find(String start) throws InterruptedException {
        long end = System.currentTimeMillis() + LIMIT_MS;
        while (true) {
            for (String event : events) {
                if (event.startsWith(start)) return event;
            }
            long left = end - System.currentTimeMillis();
            if (left <= 0) throw new AssertionError("no event " + start + "; events: " + events);
            wait(left);
        }
    }

    @Override
    public void onStatus(SyncStatus status) {
        add("status " + status);
    }

    @Override
    public void onParameterRefused(String reason) {
        add("parameterRefused " + reason);
    }

    @Override
    public void onBound(String userId) {
        add("bound " + userId);
    }

    @Override
    public void onBindRefused(String userId, String reason) {
        add("bindRefused " + userId + " " + reason);
    }

    @Override
    public void onCaughtUp(String userId) {
        add("caughtUp " + userId);
    }

    @Override
    public void onSessionInvalid(String userId, String reason) {
        add("sessionInvalid " + userId);
    }

    @Override
    public void onStoreFull() {
        add("storeFull");
    }

    @Override
    public void onStoreFailed(SyncException error) {
        add("storeFailed " + error.code());
    }

    @Override
    public void onClosed(long code, String reason) {
        add("closed " + code);
    }

    @Override
    public void onClosedForGood(long code, String reason) {
        add("closedForGood " + code);
    }

    @Override
    public void onConnectionLost(String reason) {
        add("lost " + reason);
    }

    @Override
    public void onListenerFailed(Throwable error) {
        add("listenerFailed " + error.getMessage());
    }
}
