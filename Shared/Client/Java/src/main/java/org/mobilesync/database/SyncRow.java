package org.mobilesync.database;

/** One row of a query's result. It is valid only within {@link SyncDatabase.RowReader#read}. Columns count from 0. */
public interface SyncRow {
    /** Returns a number; 0 for NULL. */
    long getLong(int column);

    /** Returns a text; null for NULL. */
    String getText(int column);

    /** Returns bytes, empty ones too; null for NULL. */
    byte[] getBytes(int column);

    /** Returns whether the value is NULL. */
    boolean isNull(int column);

    /** Returns whether the number is not 0. */
    default boolean getBoolean(int column) {
        return getLong(column) != 0;
    }
}
