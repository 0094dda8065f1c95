package org.mobilesync.internal.client;

import org.mobilesync.SyncStatus;
import org.mobilesync.internal.connection.BoundUser;

/**
 * The wishes of the app, and the state that the app can read at any time. The event loop changes it; volatile fields
 * are for the app's threads.
 */
final class ClientState {
    static final long NEVER = Long.MAX_VALUE;

    private BoundUser user;
    private long requests;
    /** The gateway requires a new sign-in. The user stays set, but is not bound again before the app binds. */
    private boolean needsSignIn;
    private boolean isWanted;
    private boolean isForeground = true;
    private long backgroundEndMs = NEVER;
    private boolean hasNetwork = true;
    private String network = "";

    volatile SyncStatus status = SyncStatus.NOT_AVAILABLE;
    volatile boolean isCaughtUp;
    volatile String deviceId = "";

    /** Returns the user whose data the app can see now; null for none. */
    String visibleUserId() {
        return user == null ? null : user.userId();
    }

    /** Returns the user that a connection binds; null for none. */
    BoundUser userToBind() {
        return needsSignIn ? null : user;
    }

    /** Sets the user and session that the app binds, also when they are unchanged. */
    void bind(String userId, String sessionId) {
        requests += 1;
        user = new BoundUser(userId, sessionId, requests, 0);
        needsSignIn = false;
    }

    /** Ends the bind. */
    void unbind() {
        requests += 1;
        user = null;
        needsSignIn = false;
    }

    /** Records that this device owns the user's data, as the bind call with this number requested. */
    void recordOwnership(long request, long epoch) {
        if (user != null && user.request() == request) user = user.owning(epoch);
    }

    /** Stops binding the refused user until the app binds again. */
    void requireSignIn(BoundUser refused) {
        if (BoundUser.isSame(user, refused)) needsSignIn = true;
    }

    /** Returns whether the client needs a connection now. */
    boolean wantsConnection(long nowMs) {
        return isWanted && hasNetwork && nowMs < backgroundEndMs;
    }

    void setWanted(boolean value) {
        isWanted = value;
    }

    boolean isForeground() {
        return isForeground;
    }

    long backgroundEndMs() {
        return backgroundEndMs;
    }

    /** Records that the app entered or left the foreground; a negative time keeps the connection open there. */
    void setForeground(boolean value, long backgroundTimeMs, long nowMs) {
        if (isForeground == value) return;
        isForeground = value;
        backgroundEndMs = value || backgroundTimeMs < 0 ? NEVER : nowMs + backgroundTimeMs;
    }

    String network() {
        return network;
    }

    /** Records the device's network. Returns whether it is another one. */
    boolean setNetwork(boolean isAvailable, String name) {
        boolean isOther = !network.equals(name);
        hasNetwork = isAvailable;
        network = name;
        return isOther;
    }
}
