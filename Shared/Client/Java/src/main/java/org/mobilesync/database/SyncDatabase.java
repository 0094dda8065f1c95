package org.mobilesync.database;

import java.util.List;

/**
 * A connection to one SQLite file, as the local store needs it. One thread at a time uses it.
 *
 * <p>{@link JdbcDatabase} implements it for JVMs, and {@code org.mobilesync.android.AndroidDatabase} for Android.
 * SQLite 3.18 (Android 8) is enough.
 */
public interface SyncDatabase extends AutoCloseable {
    /** A step that can fail. */
    interface Step<T> {
        /** Performs the step. */
        T run() throws DatabaseException;
    }

    /** Reads one row of a result. */
    interface RowReader<T> {
        /** Returns the value of the row. */
        T read(SyncRow row);
    }

    /**
     * Executes a statement without a result.
     *
     * @param arguments the values of the placeholders: numbers, Booleans (1 and 0), texts, bytes, null
     * @return the count of changed rows
     */
    long execute(String sql, Object... arguments) throws DatabaseException;

    /** Executes a query and returns the values of its rows. The arguments are as in {@link #execute}. */
    <T> List<T> query(RowReader<T> reader, String sql, Object... arguments) throws DatabaseException;

    /** Returns the row id of the last INSERT of this connection. */
    long lastInsertedRow() throws DatabaseException;

    /**
     * Performs a step in a transaction that excludes other writers. When the call returns, its changes survive a power
     * failure. When the step fails, nothing has changed.
     */
    <T> T inTransaction(Step<T> step) throws DatabaseException;

    /**
     * Performs a step whose changes survive the end of the process, but not always a power failure. It costs no flush
     * of the disk. The step can have transactions; it returns outside of one. The call fails only when the step fails,
     * or before the step begins.
     */
    <T> T withoutFlush(Step<T> step) throws DatabaseException;

    /** Closes the file. */
    @Override
    void close();
}
