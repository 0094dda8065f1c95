package org.mobilesync;

/** The state of one conversation of a Sync ID, for a list screen. */
public final class SyncConversation {
    /** {@link #notReceived()} without an answer of the gateway. */
    public static final int UNKNOWN = -1;

    private final String bizType;
    private final String conversation;
    private final SyncOplog last;
    private final int unread;
    private final int notReceived;

    /** Creates the state. For the library's own use. */
    public SyncConversation(String bizType, String conversation, SyncOplog last, int unread, int notReceived) {
        this.bizType = bizType;
        this.conversation = conversation;
        this.last = last;
        this.unread = unread;
        this.notReceived = notReceived;
    }

    /** Returns the Sync ID. */
    public String bizType() {
        return bizType;
    }

    /** Returns the name of the conversation, as the backend sent it. */
    public String conversation() {
        return conversation;
    }

    /** Returns the newest oplog on the device or on the server. */
    public SyncOplog last() {
        return last;
    }

    /** Returns the count of oplogs on the device above the read mark ({@link SyncClient#markRead}). */
    public int unread() {
        return unread;
    }

    /** Returns the count of oplogs on the server above this receiver's sync point, at most 1,000; or UNKNOWN. */
    public int notReceived() {
        return notReceived;
    }
}
