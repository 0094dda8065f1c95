package org.mobilesync.internal.store;

/** The states of an operation on this device, as stored. */
final class OperationState {
    /** The service cannot have it, so it can be cancelled. */
    static final int WAITING = 0;
    /** It was sent, and the service may have it. */
    static final int SENT = 1;
    /** The service has accepted it and will execute it. */
    static final int TAKEN = 2;
    /** It has a result, and is kept so that its id is known. */
    static final int OVER = 3;

    private OperationState() {}
}
