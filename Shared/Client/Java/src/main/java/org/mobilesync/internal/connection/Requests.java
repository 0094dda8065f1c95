package org.mobilesync.internal.connection;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.mobilesync.internal.wire.Body;
import org.mobilesync.internal.wire.HistoryRequest;
import org.mobilesync.internal.wire.SummaryRequest;

/** The requests of one connection, a few in flight at a time, each with a reply or a timeout. */
final class Requests {
    /** The most requests in flight that the gateway accepts. */
    private static final int MOST = 4;
    /** The longest wait for a reply. */
    private static final long LIMIT_MS = 30_000;

    /** Receives the reply to a request; null without one. */
    interface Completion {
        /** Handles a HistoryPage, a SummaryPage, or null. */
        void answered(Body page);
    }

    private static final class Open {
        private final Body request;
        private final Completion completion;
        private long sentAtMs;

        private Open(Body request, Completion completion) {
            this.request = request;
            this.completion = completion;
        }
    }

    private final Deque<Open> waiting = new ArrayDeque<>();
    private final Map<Long, Open> sent = new LinkedHashMap<>();
    private long lastNumber;

    /** Returns the time of the next timeout; Long.MAX_VALUE for none. */
    long deadlineMs() {
        long deadline = Long.MAX_VALUE;
        for (Open open : sent.values()) deadline = Math.min(deadline, open.sentAtMs + LIMIT_MS);
        return deadline;
    }

    /** Adds a HistoryRequest or a SummaryRequest; its numbers are filled in when it is sent. */
    void ask(Body request, Completion completion) {
        waiting.add(new Open(request, completion));
    }

    /** Returns the frames that can be sent now. */
    List<Body> next(long bindNumber, long nowMs) {
        List<Body> frames = new ArrayList<>();
        while (sent.size() < MOST && !waiting.isEmpty()) {
            Open open = waiting.remove();
            lastNumber += 1;
            open.sentAtMs = nowMs;
            sent.put(lastNumber, open);
            if (open.request instanceof HistoryRequest) {
                ((HistoryRequest) open.request).requestNumber = lastNumber;
                ((HistoryRequest) open.request).bindNumber = bindNumber;
            } else {
                ((SummaryRequest) open.request).requestNumber = lastNumber;
                ((SummaryRequest) open.request).bindNumber = bindNumber;
            }
            frames.add(open.request);
        }
        return frames;
    }

    /** Returns the completion of the answered request; null for an unknown number. */
    Completion answered(long number) {
        Open open = sent.remove(number);
        return open == null ? null : open.completion;
    }

    /** Removes the requests whose reply is late, and returns their completions. */
    List<Completion> removeOverdue(long nowMs) {
        List<Completion> overdue = new ArrayList<>();
        for (Iterator<Open> opens = sent.values().iterator(); opens.hasNext();) {
            Open open = opens.next();
            if (nowMs < open.sentAtMs + LIMIT_MS) continue;
            overdue.add(open.completion);
            opens.remove();
        }
        return overdue;
    }

    /** Removes all requests at the end of the connection or at a bind, and returns their completions. */
    List<Completion> removeAll() {
        List<Completion> all = new ArrayList<>();
        for (Open open : sent.values()) all.add(open.completion);
        for (Open open : waiting) all.add(open.completion);
        sent.clear();
        waiting.clear();
        return all;
    }
}
