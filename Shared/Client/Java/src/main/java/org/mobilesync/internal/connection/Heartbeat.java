package org.mobilesync.internal.connection;

/**
 * The ping interval on one network (K9). It grows while pings are answered, and shrinks after dead connections. Times
 * are in seconds; 0 means unknown in {@link Learned}.
 */
public final class Heartbeat {
    /** The lower bound of the interval, unless the gateway's own interval is shorter. */
    private static final long SHORTEST = 15;
    /** The count of consecutive answers after which the interval grows. */
    private static final int ANSWERS_TO_GROW = 3;

    /** The results of pings on a network. Immutable. */
    public static final class Learned {
        /** No results. */
        public static final Learned NOTHING = new Learned(0, 0, 0);

        private final long good;
        private final long bad;
        private final long doubtful;

        /**
         * Creates results.
         *
         * @param good the longest interval with an answer
         * @param bad the shortest interval that is known to end connections
         * @param doubtful the interval at which one connection was found dead
         */
        public Learned(long good, long bad, long doubtful) {
            this.good = good;
            this.bad = bad;
            this.doubtful = doubtful;
        }

        /** Returns the longest interval with an answer. */
        public long good() {
            return good;
        }

        /** Returns the shortest interval that is known to end connections. */
        public long bad() {
            return bad;
        }

        /** Returns the interval at which one connection was found dead. */
        public long doubtful() {
            return doubtful;
        }
    }

    private final long usual;
    private final long longest;
    private Learned learned;
    private long interval;
    private int answers;

    /**
     * Creates a heartbeat.
     *
     * @param usual the gateway's own interval
     * @param longest the longest interval that the gateway allows; a value below {@code usual} counts as that
     */
    public Heartbeat(long usual, long longest, Learned learned) {
        this.usual = usual;
        this.longest = Math.max(usual, longest);
        this.learned = learned;
        interval = Math.min(this.longest, learned.good > 0 ? learned.good : usual);
        if (learned.bad > 0 && learned.bad <= interval) {
            interval = Math.max(Math.min(SHORTEST, usual), learned.bad / 2);
        }
    }

    /** Returns the results for later connections on the network. */
    public Learned learned() {
        return learned;
    }

    /** Returns the interval; in the foreground at most the gateway's own, so that a dead connection is found soon. */
    public long interval(boolean isForeground) {
        return isForeground ? Math.min(usual, interval) : interval;
    }

    /** Records the answer to a ping that followed this idle time in milliseconds. */
    public void answered(long idleMs) {
        if (!isConclusive(idleMs)) return;
        long doubtful = learned.doubtful > 0 && interval >= learned.doubtful ? 0 : learned.doubtful;
        learned = new Learned(interval, learned.bad, doubtful);
        answers += 1;
        if (answers < ANSWERS_TO_GROW) return;
        answers = 0;
        long longer = Math.min(longest, interval * 3 / 2);
        // An interval that has failed is not tried again.
        if (learned.bad == 0 || longer < learned.bad) interval = longer;
    }

    /**
     * Records a dead connection, found by a ping after this idle time in milliseconds. Only the second failure shortens
     * the interval, because the first one can be a short loss of the network.
     */
    public void failed(long idleMs) {
        answers = 0;
        if (!isConclusive(idleMs)) return;
        if (learned.doubtful == 0 || interval < learned.doubtful) {
            learned = new Learned(learned.good, learned.bad, interval);
            return;
        }
        long good = learned.good >= interval ? 0 : learned.good;
        learned = new Learned(good, interval, 0);
        interval = Math.max(Math.min(SHORTEST, usual), good > 0 ? good : interval / 2);
    }

    /** The previous answer arrives shortly after its ping, so the idle time is a little shorter than the interval. */
    private boolean isConclusive(long idleMs) {
        return idleMs * 10 >= interval * 1_000 * 9;
    }
}
