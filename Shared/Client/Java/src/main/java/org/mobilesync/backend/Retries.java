package org.mobilesync.backend;

import java.util.concurrent.ThreadLocalRandom;

/** Counts the attempts of one call, and waits between them. */
final class Retries {
    /** The longest wait; a call that the API puts off for longer fails at once. */
    static final long LONGEST_PAUSE_MS = 30_000;
    private static final long FIRST_PAUSE_MS = 500;
    private static final long LONGEST_OWN_PAUSE_MS = 8_000;
    private static final long MS = 1_000;

    /** Waits; the tests do not. */
    interface Sleeper {
        void sleep(long ms) throws InterruptedException;
    }

    private final int attempts;
    private final Sleeper sleeper;
    private int done;
    private boolean isOutcomeUnknown;

    Retries(int attempts, Sleeper sleeper) {
        this.attempts = attempts;
        this.sleeper = sleeper;
    }

    /** Returns the number of attempts so far. */
    int done() {
        return done;
    }

    /** Returns whether an attempt so far may have had its effect. */
    boolean isOutcomeUnknown() {
        return isOutcomeUnknown;
    }

    /**
     * Counts an attempt, and waits for the next one: as long as the API says, otherwise half to all of 0.5, 1, 2, 4
     * and 8 s.
     *
     * @return whether there is a next attempt
     * @throws BackendException INTERRUPTED
     */
    boolean next(ApiAnswer answer, ApiCall call) {
        done += 1;
        isOutcomeUnknown |= answer.isOutcomeUnknown();
        long pause = answer.retryAfterSeconds() * MS;
        if (!answer.isRetryable() || done >= attempts || pause > LONGEST_PAUSE_MS) return false;
        if (pause == 0) {
            long whole = Math.min(LONGEST_OWN_PAUSE_MS, FIRST_PAUSE_MS << Math.min(done - 1, 5));
            pause = ThreadLocalRandom.current().nextLong(whole / 2, whole + 1);
        }
        try {
            sleeper.sleep(pause);
            return true;
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new BackendException(BackendException.Code.INTERRUPTED,
                call.description + " was interrupted after " + answer.description(), answer, error);
        }
    }
}
