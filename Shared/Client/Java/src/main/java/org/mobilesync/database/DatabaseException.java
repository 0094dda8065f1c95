package org.mobilesync.database;

/** A statement or a file of SQLite failed. */
public final class DatabaseException extends Exception {
    private static final long serialVersionUID = 1;

    /** The kinds of failures that the store handles differently. */
    public enum Kind {
        /** The file is damaged or is no database (SQLITE_CORRUPT, SQLITE_NOTADB). */
        DAMAGED,
        /** The disk has no space (SQLITE_FULL). */
        FULL,
        /** Any other failure. */
        OTHER
    }

    private final Kind kind;

    /** Creates an error with its kind, a text and its cause. */
    public DatabaseException(Kind kind, String message, Throwable cause) {
        super(message, cause);
        this.kind = kind;
    }

    /** Returns the kind. */
    public Kind kind() {
        return kind;
    }
}
