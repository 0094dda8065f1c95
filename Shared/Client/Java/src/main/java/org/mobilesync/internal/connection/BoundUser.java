package org.mobilesync.internal.connection;

/** The user that the app has bound, with the user session. Immutable. */
public final class BoundUser {
    private final String userId;
    private final String sessionId;
    private final long request;
    private final long ownershipEpoch;

    /**
     * Creates a user.
     *
     * @param request the number of the app's bind call; 0 after a gateway has confirmed the ownership
     * @param ownershipEpoch the epoch that the gateway reported; 0 while request is not 0
     */
    public BoundUser(String userId, String sessionId, long request, long ownershipEpoch) {
        this.userId = userId;
        this.sessionId = sessionId;
        this.request = request;
        this.ownershipEpoch = ownershipEpoch;
    }

    /** Returns the user id. */
    public String userId() {
        return userId;
    }

    /** Returns the session id. */
    public String sessionId() {
        return sessionId;
    }

    /** Returns the number of the app's bind call whose ownership is not confirmed yet; else 0. */
    public long request() {
        return request;
    }

    /** Returns the epoch of the confirmed ownership; else 0. */
    public long ownershipEpoch() {
        return ownershipEpoch;
    }

    /** Returns the user with the ownership that a gateway has confirmed. */
    public BoundUser owning(long epoch) {
        return new BoundUser(userId, sessionId, 0, epoch);
    }

    /** Returns whether both name the same user and session; null is no user. */
    public static boolean isSame(BoundUser one, BoundUser other) {
        if (one == null || other == null) return one == other;
        return one.userId.equals(other.userId) && one.sessionId.equals(other.sessionId);
    }
}
