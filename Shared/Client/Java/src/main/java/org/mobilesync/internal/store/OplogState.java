package org.mobilesync.internal.store;

/** The states of an oplog in the local store, as stored. */
final class OplogState {
    /** Waits for the app to receive it. Next: HANDED_OUT, CONFIRMED. */
    static final int WAITING = 0;
    /** The app has it. Next: CONFIRMED, DEAD, WAITING (the store is opened again, or a re-read). */
    static final int HANDED_OUT = 1;
    /** A dead letter, kept so that a re-read can revive it. Next: WAITING (a re-read), CONFIRMED. */
    static final int DEAD = 2;
    /** The app has processed it. Kept as history until space is needed. Next: deleted. */
    static final int CONFIRMED = 3;
    /** It was read for a list; the app's handlers have not had it. Next: WAITING (a push, a re-read), deleted. */
    static final int HISTORY = 4;

    private OplogState() {}
}
