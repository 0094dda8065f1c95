// Not compiled here: it needs Android's SDK. The tests use JdbcDatabase.
package org.mobilesync.android;

import android.database.Cursor;
import android.database.SQLException;
import android.database.sqlite.SQLiteCursor;
import android.database.sqlite.SQLiteDatabase;
import android.database.sqlite.SQLiteDatabaseCorruptException;
import android.database.sqlite.SQLiteFullException;
import android.database.sqlite.SQLiteProgram;
import android.database.sqlite.SQLiteStatement;
import java.util.ArrayList;
import java.util.List;
import org.mobilesync.database.DatabaseException;
import org.mobilesync.database.SyncDatabase;
import org.mobilesync.database.SyncRow;

/** An SQLite file through Android's own API, without reflection. */
public final class AndroidDatabase implements SyncDatabase {
    private final SQLiteDatabase database;

    private AndroidDatabase(SQLiteDatabase database) {
        this.database = database;
    }

    /** Opens or creates a file. Usable as a {@code DatabaseOpener}: {@code AndroidDatabase::open}. */
    public static SyncDatabase open(String path) throws DatabaseException {
        SQLiteDatabase opened = null;
        boolean isOpen = false;
        try {
            // The handler of damage does nothing: Android's own one would delete the file. The store moves it aside.
            opened = SQLiteDatabase.openDatabase(path, null,
                SQLiteDatabase.CREATE_IF_NECESSARY | SQLiteDatabase.NO_LOCALIZED_COLLATORS, damaged -> { });
            AndroidDatabase database = new AndroidDatabase(opened);
            // One connection: pragmas then apply to every statement.
            opened.disableWriteAheadLogging();
            database.query(row -> row.getText(0), "PRAGMA journal_mode = TRUNCATE");
            database.execute("PRAGMA synchronous = FULL");
            isOpen = true;
            return database;
        } catch (SQLException error) {
            throw failure("opening the file", error);
        } finally {
            if (!isOpen && opened != null) opened.close();
        }
    }

    @Override
    public long execute(String sql, Object... arguments) throws DatabaseException {
        try (SQLiteStatement statement = database.compileStatement(sql)) {
            bind(statement, arguments);
            return statement.executeUpdateDelete();
        } catch (SQLException error) {
            throw failure("executing a statement", error);
        }
    }

    @Override
    public <T> List<T> query(RowReader<T> reader, String sql, Object... arguments) throws DatabaseException {
        List<T> values = new ArrayList<>();
        SQLiteDatabase.CursorFactory factory = (db, driver, table, query) -> {
            bind(query, arguments);
            return new SQLiteCursor(driver, table, query);
        };
        try (Cursor cursor = database.rawQueryWithFactory(factory, sql, null, "")) {
            SyncRow row = new Row(cursor);
            while (cursor.moveToNext()) values.add(reader.read(row));
            return values;
        } catch (SQLException error) {
            throw failure("executing a query", error);
        }
    }

    private static void bind(SQLiteProgram program, Object... arguments) {
        for (int index = 0; index < arguments.length; index++) {
            Object argument = arguments[index];
            if (argument == null) {
                program.bindNull(index + 1);
            } else if (argument instanceof byte[]) {
                program.bindBlob(index + 1, (byte[]) argument);
            } else if (argument instanceof Boolean) {
                program.bindLong(index + 1, (Boolean) argument ? 1 : 0);
            } else if (argument instanceof Number) {
                program.bindLong(index + 1, ((Number) argument).longValue());
            } else {
                program.bindString(index + 1, argument.toString());
            }
        }
    }

    @Override
    public long lastInsertedRow() throws DatabaseException {
        return query(row -> row.getLong(0), "SELECT last_insert_rowid()").get(0);
    }

    @Override
    public <T> T inTransaction(Step<T> step) throws DatabaseException {
        try {
            database.beginTransactionNonExclusive();
            try {
                T value = step.run();
                database.setTransactionSuccessful();
                return value;
            } finally {
                database.endTransaction();
            }
        } catch (SQLException error) {
            throw failure("committing a transaction", error);
        }
    }

    @Override
    public <T> T withoutFlush(Step<T> step) throws DatabaseException {
        // Without a write-ahead log, NORMAL can damage the file at a power failure, so this step is flushed too.
        return step.run();
    }

    @Override
    public void close() {
        database.close();
    }

    private static DatabaseException failure(String step, SQLException error) {
        DatabaseException.Kind kind = error instanceof SQLiteFullException ? DatabaseException.Kind.FULL
            : error instanceof SQLiteDatabaseCorruptException ? DatabaseException.Kind.DAMAGED
            : DatabaseException.Kind.OTHER;
        return new DatabaseException(kind, step + ": " + error.getMessage(), error);
    }

    private static final class Row implements SyncRow {
        private final Cursor cursor;

        Row(Cursor cursor) {
            this.cursor = cursor;
        }

        @Override
        public long getLong(int column) {
            return cursor.getLong(column);
        }

        @Override
        public String getText(int column) {
            return cursor.getString(column);
        }

        @Override
        public byte[] getBytes(int column) {
            byte[] bytes = cursor.getBlob(column);
            // Android returns null for empty bytes too.
            return bytes != null || cursor.isNull(column) ? bytes : new byte[0];
        }

        @Override
        public boolean isNull(int column) {
            return cursor.isNull(column);
        }
    }
}
