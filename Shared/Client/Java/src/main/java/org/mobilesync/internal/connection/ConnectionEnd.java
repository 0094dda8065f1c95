package org.mobilesync.internal.connection;

/** The reason why a connection ended. Immutable. */
public final class ConnectionEnd {
    /** The kinds of reasons. */
    public enum Kind {
        /** The gateway closed it. */
        CLOSED,
        /** A batch began above the client's position. The client must report its sync points again. */
        GAP,
        /** The app wants no connection, or the client connects again at once. This is no failure. */
        LEFT,
        /** No frame arrived after a ping, or the gateway did not accept the connect in time. */
        SILENT,
        /** The transport failed, or the received bytes are not valid frames. */
        LOST
    }

    private final Kind kind;
    private final long code;
    private final String reason;
    private final long retryAfterMs;
    private final String address;

    private ConnectionEnd(Kind kind, long code, String reason, long retryAfterMs, String address) {
        this.kind = kind;
        this.code = code;
        this.reason = reason;
        this.retryAfterMs = retryAfterMs;
        this.address = address;
    }

    /** The gateway closed the connection. */
    public static ConnectionEnd closed(long code, String reason, long retryAfterMs, String address) {
        return new ConnectionEnd(Kind.CLOSED, code, reason, retryAfterMs, address);
    }

    /** A batch began above the position. */
    public static ConnectionEnd gap() {
        return new ConnectionEnd(Kind.GAP, 0,
            "a batch began above the position; the client reports its sync points again", 0, "");
    }

    /** The client left without a failure. */
    public static ConnectionEnd left() {
        return new ConnectionEnd(Kind.LEFT, 0, "the client left", 0, "");
    }

    /** The gateway was silent. */
    public static ConnectionEnd silent() {
        return new ConnectionEnd(Kind.SILENT, 0, "the gateway did not answer in time", 0, "");
    }

    /** The transport failed. */
    public static ConnectionEnd lost(String reason) {
        return new ConnectionEnd(Kind.LOST, 0, reason, 0, "");
    }

    /** Returns the kind. */
    public Kind kind() {
        return kind;
    }

    /** Returns the close code of CLOSED; else 0. */
    public long code() {
        return code;
    }

    /** Returns a text for developers. */
    public String reason() {
        return reason;
    }

    /** Returns the wait that the gateway demands, in milliseconds. */
    public long retryAfterMs() {
        return retryAfterMs;
    }

    /** Returns the address of another gateway; empty for none. */
    public String address() {
        return address;
    }
}
