package org.mobilesync.tests;

import java.util.List;
import org.mobilesync.database.DatabaseException;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.database.SyncDatabase;

/** A real database whose statements with a certain text fail. */
final class FailingDatabase implements SyncDatabase {
    private final SyncDatabase database;
    private final String text;

    FailingDatabase(String path, String text) throws DatabaseException {
        database = JdbcDatabase.open(path);
        this.text = text;
    }

    @Override
    public long execute(String sql, Object... arguments) throws DatabaseException {
        if (sql.contains(text)) throw new DatabaseException(DatabaseException.Kind.OTHER, "played failure", null);
        return database.execute(sql, arguments);
    }

    @Override
    public <T> List<T> query(RowReader<T> reader, String sql, Object... arguments) throws DatabaseException {
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
