package org.mobilesync;

/** The state of one channel, for a list screen. */
public final class SyncChannelSummary {
    /** {@link #notReceived()} without an answer of the gateway. */
    public static final int UNKNOWN = -1;

    private final String bizType;
    private final String userId;
    private final SyncOplog last;
    private final int unconfirmed;
    private final int notReceived;

    /** Creates a summary. For the library's own use. */
    public SyncChannelSummary(String bizType, String userId, SyncOplog last, int unconfirmed, int notReceived) {
        this.bizType = bizType;
        this.userId = userId;
        this.last = last;
        this.unconfirmed = unconfirmed;
        this.notReceived = notReceived;
    }

    /** Returns the Sync ID. */
    public String bizType() {
        return bizType;
    }

    /** Returns the user of the channel; null for device data. */
    public String userId() {
        return userId;
    }

    /** Returns the newest oplog on the device or on the server; null when there is none. */
    public SyncOplog last() {
        return last;
    }

    /** Returns the count of oplogs on the device that the app has not confirmed. */
    public int unconfirmed() {
        return unconfirmed;
    }

    /** Returns the count of oplogs on the server above this receiver's sync point, at most 1,000; or UNKNOWN. */
    public int notReceived() {
        return notReceived;
    }
}
