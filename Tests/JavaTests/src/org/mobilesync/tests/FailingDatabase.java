package org.mobilesync.tests;

import java.util.List;
import org.mobilesync.database.DatabaseException;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.database.SyncDatabase;

/** A real database whose statements with a certain text fail, always or once. */
final class FailingDatabase implements SyncDatabase {
    private final SyncDatabase database;
    private final String text;
    private String textOnce = "";
    /** The statements with textOnce up to the one that fails; 0: none fails. */
    private int left;

    FailingDatabase(String path, String text) throws DatabaseException {
        database = JdbcDatabase.open(path);
        this.text = text;
    }

    /** Lets one statement or query with a text fail: the first one, or a later one. */
    synchronized void failOnce(String part, int number) {
        textOnce = part;
        left = number;
    }

    private synchronized void check(String sql, boolean isAlways) throws DatabaseException {
        boolean isOnce = left > 0 && sql.contains(textOnce) && --left == 0;
        if (isAlways || isOnce) throw new DatabaseException(DatabaseException.Kind.OTHER, "played failure", null);
    }

    @Override
    public long execute(String sql, Object... arguments) throws DatabaseException {
        check(sql, sql.contains(text));
        return database.execute(sql, arguments);
    }

    @Override
    public <T> List<T> query(RowReader<T> reader, String sql, Object... arguments) throws DatabaseException {
        check(sql, false);
        return database.query(reader, sql, arguments);
    }

    @Override
    public long lastInsertedRow() throws DatabaseException {
        return database.lastInsertedRow();
    }

    @Override
    public <T> T inTransaction(Step<T> step) throws DatabaseException {
        return database.inTransaction(step);
    }

    @Override
    public <T> T withoutFlush(Step<T> step) throws DatabaseException {
        return database.withoutFlush(step);
    }

    @Override
    public void close() {
        database.close();
    }
}
