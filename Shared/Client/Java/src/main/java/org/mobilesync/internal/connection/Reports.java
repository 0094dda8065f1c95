package org.mobilesync.internal.connection;

import org.mobilesync.internal.wire.ConfirmReport;

/** The reports of one connection, with at most one in flight (DeviceProtocol.md, Acknowledgement). */
final class Reports {
    /** The wait after which an unanswered report is sent again. */
    private static final long LIMIT_MS = 30_000;

    /** A report in flight to the gateway. */
    static final class Sent {
        final long id;
        final OplogReport content;
        final String userId;
        private final long sentAtMs;

        private Sent(long id, OplogReport content, String userId, long sentAtMs) {
            this.id = id;
            this.content = content;
            this.userId = userId;
            this.sentAtMs = sentAtMs;
        }
    }

    private Sent sent;
    private long lastId;

    /** Returns the time when the report in flight is sent again; Long.MAX_VALUE when none is. */
    long deadlineMs() {
        return sent == null ? Long.MAX_VALUE : sent.sentAtMs + LIMIT_MS;
    }

    /** Returns whether a report can be sent now. */
    boolean isFree() {
        return sent == null;
    }

    /** Returns the frame for a content that is not empty. */
    ConfirmReport send(OplogReport content, String userId, long nowMs) {
        lastId += 1;
        sent = new Sent(lastId, content, userId, nowMs);
        ConfirmReport report = new ConfirmReport();
        report.reportId = lastId;
        report.channels.addAll(content.confirmed);
        report.resent.addAll(content.resent);
        return report;
    }

    /** Returns the report that the gateway has recorded; null when this report is not in flight. */
    Sent recorded(long id) {
        if (sent == null || sent.id != id) return null;
        Sent recorded = sent;
        sent = null;
        return recorded;
    }

    /** Forgets the report in flight when its answer is late. Returns whether it must be sent again. */
    boolean removeOverdue(long nowMs) {
        if (nowMs < deadlineMs()) return false;
        sent = null;
        return true;
    }

    /** Forgets the report in flight. Its content is collected again. */
    void removeAll() {
        sent = null;
    }
}
