package org.mobilesync.internal;

import org.mobilesync.SyncException;

/** The limits of the protocol that the client checks before it sends (DeviceProtocol.md, Framing). */
public final class Limits {
    /** UTF-16 units of a Sync ID (H2). */
    public static final int BIZ_TYPE_UNITS = 30;
    /** UTF-16 units of a user id, a device id, an instance id and the name of a conversation. */
    public static final int ID_UNITS = 100;
    /** UTF-16 units of the longest session id that an instance can allow (V1). */
    public static final int SESSION_UNITS = 4_096;
    /** Bytes of a message to a gateway. */
    public static final int TO_GATEWAY_BYTES = 65_536;
    /** Bytes of a message with operations. */
    public static final int OPERATIONS_BYTES = 262_144;
    /** Operations in one frame. */
    public static final int FRAME_OPERATIONS = 64;
    /** Sync IDs that a device may suspend at once. */
    public static final int SUSPENDED = 200;
    /** Subscription parameters that a device sets at once, over all Sync IDs. */
    public static final int PARAMETERS = 64;
    /** UTF-16 units of the name of a subscription parameter. */
    public static final int PARAMETER_NAME_UNITS = 30;
    /** Oplogs in one page of history. */
    public static final int HISTORY_PAGE = 100;
    /** Channels or conversations in one page of a summary. */
    public static final int SUMMARY_PAGE = 16;
    /** Resends on the ladder after the first hand-out (D14). */
    public static final int RESENDS = 6;
    /** Hand-outs of one oplog for any cause; one more could continue a crash loop. */
    public static final int HAND_OUTS = 50;
    /** The Sync ID of results of operations, which the client reads itself. */
    public static final String RESULTS = "MSS_RESULTS";

    private Limits() {}

    /**
     * Checks an id.
     *
     * @throws SyncException INVALID_ARGUMENT unless it has 1 to 100 UTF-16 units without NUL
     */
    public static void checkId(String text, String name) {
        if (text == null || text.isEmpty() || text.length() > ID_UNITS || text.indexOf(0) >= 0) {
            throw new SyncException(SyncException.Code.INVALID_ARGUMENT,
                name + " must have 1 to " + ID_UNITS + " characters without NUL");
        }
    }

    /**
     * Checks a Sync ID of the app.
     *
     * @throws SyncException INVALID_ARGUMENT unless it has 1 to 30 UTF-16 units without NUL and is not reserved
     */
    public static void checkBizType(String bizType) {
        if (bizType == null || bizType.isEmpty() || bizType.length() > BIZ_TYPE_UNITS || bizType.indexOf(0) >= 0) {
            throw new SyncException(SyncException.Code.INVALID_ARGUMENT,
                "a Sync ID has 1 to " + BIZ_TYPE_UNITS + " characters without NUL");
        }
        if (bizType.equals(RESULTS)) {
            throw new SyncException(SyncException.Code.INVALID_ARGUMENT,
                RESULTS + " is read by the client itself; use listenForResults");
        }
    }
}
