package org.mobilesync.internal.wire;

/** Received bytes are not a valid frame. The connection cannot continue, because the start of the next is unknown. */
public final class FrameException extends Exception {
    private static final long serialVersionUID = 1;

    /**
     * Creates an error.
     *
     * @param message the fault, without received content
     */
    public FrameException(String message) {
        super(message);
    }
}
