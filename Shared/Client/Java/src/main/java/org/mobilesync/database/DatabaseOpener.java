package org.mobilesync.database;

/** Opens or creates SQLite files. */
public interface DatabaseOpener {
    /**
     * Opens or creates a file, with {@code journal_mode=WAL} and {@code synchronous=FULL}, or with settings that keep a
     * committed transaction over a power failure as well.
     *
     * @param path the path of the file; its folder exists
     */
    SyncDatabase open(String path) throws DatabaseException;
}
