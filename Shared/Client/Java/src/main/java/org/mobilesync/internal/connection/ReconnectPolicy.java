package org.mobilesync.internal.connection;

/** Computes the wait before the next connection attempt: exponential back-off with full jitter (K9). */
public final class ReconnectPolicy {
    /** The upper bound of the first wait. Each failure doubles the bound. */
    private static final long FIRST_CEILING_MS = 1_000;
    /** Caps the bound during short outages, so that an unlucky device is back soon after the others. */
    private static final long SHORT_OUTAGE_CEILING_MS = 16_000;
    /** In a long outage, the bound is this fraction of its length. */
    private static final long OUTAGE_DIVISOR = 8;
    /** The longest wait that the client chooses itself. */
    private static final long LAST_CEILING_MS = 300_000;
    /** The longest wait, including the gateway's demand. */
    private static final long LONGEST_WAIT_MS = 3_600_000;
    /** The shortest wait. It limits the attempts against a gateway that closes at once. */
    private static final long SHORTEST_WAIT_MS = 50;
    /** A connection that was open for this time resets the bound. */
    private static final long STABLE_AFTER_MS = 5_000;

    private int failures;
    private long failingSinceMs;

    /** The action after a connection has ended. */
    public static final class Decision {
        private final CloseCodes.Reaction reaction;
        private final long delayMs;
        private final long atLeastMs;
        private final GatewayAddress elsewhere;

        private Decision(CloseCodes.Reaction reaction, long delayMs, long atLeastMs, GatewayAddress elsewhere) {
            this.reaction = reaction;
            this.delayMs = delayMs;
            this.atLeastMs = atLeastMs;
            this.elsewhere = elsewhere;
        }

        /** Returns the reaction. */
        public CloseCodes.Reaction reaction() {
            return reaction;
        }

        /** Returns the wait before the next attempt, after {@link #atLeastMs()}. The app can shorten it. */
        public long delayMs() {
            return delayMs;
        }

        /** Returns the wait that the gateway demands. Nothing shortens it. */
        public long atLeastMs() {
            return atLeastMs;
        }

        /** Returns the address of the next attempt; null for the client's own. */
        public GatewayAddress elsewhere() {
            return elsewhere;
        }
    }

    /**
     * Returns the decision after a connection has ended.
     *
     * @param openForMs the time since the gateway accepted the connect; negative when it did not
     * @param nowMs a time that never goes back
     * @param random a number from 0 to below 1
     */
    public Decision next(ConnectionEnd end, long openForMs, long nowMs, double random) {
        if (openForMs >= STABLE_AFTER_MS) failures = 0;
        if (end.kind() == ConnectionEnd.Kind.LEFT) {
            failures = 0;
            return new Decision(CloseCodes.Reaction.RECONNECT, 0, 0, null);
        }
        if (failures == 0) failingSinceMs = nowMs;
        long longest = Math.min(LAST_CEILING_MS,
            Math.max(SHORT_OUTAGE_CEILING_MS, (nowMs - failingSinceMs) / OUTAGE_DIVISOR));
        long ceiling = Math.min(longest, FIRST_CEILING_MS << Math.min(failures, 9));
        failures += 1;
        long delay = Math.max(SHORTEST_WAIT_MS, (long) (ceiling * random));
        // The client has already replaced its identity.
        if (end.kind() != ConnectionEnd.Kind.CLOSED || end.code() == CloseCodes.REGISTER_ANEW) {
            return new Decision(CloseCodes.Reaction.RECONNECT, delay, 0, null);
        }
        long atLeast = Math.min(LONGEST_WAIT_MS - delay, end.retryAfterMs());
        switch (CloseCodes.reaction(end.code())) {
            case RECONNECT:
                return new Decision(CloseCodes.Reaction.RECONNECT, delay, 0, null);
            case RECONNECT_ELSEWHERE:
                return new Decision(
                    CloseCodes.Reaction.RECONNECT_ELSEWHERE, delay, atLeast, GatewayAddress.parse(end.address()));
            case SIGN_IN_AGAIN:
                return new Decision(CloseCodes.Reaction.SIGN_IN_AGAIN, delay, 0, null);
            case STAY_AWAY:
                return new Decision(CloseCodes.Reaction.STAY_AWAY, 0, 0, null);
            default:
                return new Decision(CloseCodes.Reaction.RECONNECT_LATER, delay, atLeast, null);
        }
    }
}
