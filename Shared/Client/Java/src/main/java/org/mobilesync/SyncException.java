package org.mobilesync;

/** An error of the client library. Its message names the event, the affected object and the remedy. */
public final class SyncException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The kinds of errors. Later versions can add some. */
    public enum Code {
        /** An argument or a setting is invalid. Correct it and call again. */
        INVALID_ARGUMENT,
        /** The file of the certificate authority or of the client certificate cannot be used. */
        TRUST,
        /** The local store cannot be opened, read or written. Check the disk space and the access rights. */
        STORE,
        /** The local store was encrypted with another key, or no key was given for an encrypted store. */
        STORE_KEY,
        /** The disk or the local store is full. Free space, or confirm data. */
        STORE_FULL,
        /** The local store belongs to another instance or device. Use another path. */
        FOREIGN_STORE,
        /** Another process, or another client of this process, uses the store. Close the other client. */
        STORE_IN_USE,
        /** The gateway does not give this data to this device and user now. */
        NOT_ELIGIBLE,
        /** The client is closed. Create another one. */
        CLOSED
    }

    /** The kind of the error. */
    private final Code code;

    /** Creates an error. */
    public SyncException(Code code, String message) {
        this(code, message, null);
    }

    /** Creates an error with its cause. */
    public SyncException(Code code, String message, Throwable cause) {
        super(code + ": " + message, cause);
        this.code = code;
    }

    /** Returns the kind of the error. */
    public Code code() {
        return code;
    }
}
