package org.mobilesync.database;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** An SQLite file through JDBC. The app adds a driver for {@code jdbc:sqlite:} to its class path. */
public final class JdbcDatabase implements SyncDatabase {
    /** The result codes of SQLite (sqlite.org/rescode.html); the low 8 bits are the primary code. */
    private static final int CORRUPT = 11;
    private static final int FULL = 13;
    private static final int NOT_A_DATABASE = 26;

    private final Connection connection;
    private final Map<String, PreparedStatement> statements = new HashMap<>();
    /** A step of withoutFlush runs. */
    private boolean isWithoutFlush;
    /** The connection can be at synchronous NORMAL, where a commit is not flushed. */
    private boolean needsFull;

    private JdbcDatabase(Connection connection) {
        this.connection = connection;
    }

    /** Opens or creates a file. Usable as a {@link DatabaseOpener}: {@code JdbcDatabase::open}. */
    public static SyncDatabase open(String path) throws DatabaseException {
        Connection connection = null;
        try {
            connection = DriverManager.getConnection("jdbc:sqlite:" + path);
            try (Statement statement = connection.createStatement()) {
                statement.execute("PRAGMA busy_timeout = 5000");
                statement.execute("PRAGMA journal_mode = WAL");
                // After the journal mode, which can change it.
                statement.execute("PRAGMA synchronous = FULL");
            }
            return new JdbcDatabase(connection);
        } catch (SQLException error) {
            if (connection != null) closeQuietly(connection);
            throw failure("opening the file", error);
        }
    }

    @Override
    public long execute(String sql, Object... arguments) throws DatabaseException {
        try {
            PreparedStatement statement = prepared(sql, arguments);
            return statement.execute() ? 0 : statement.getUpdateCount();
        } catch (SQLException error) {
            forget(sql);
            throw failure("executing a statement", error);
        }
    }

    @Override
    public <T> List<T> query(RowReader<T> reader, String sql, Object... arguments) throws DatabaseException {
        List<T> values = new ArrayList<>();
        try (ResultSet rows = prepared(sql, arguments).executeQuery()) {
            SyncRow row = new Row(rows);
            while (rows.next()) values.add(reader.read(row));
            return values;
        } catch (SQLException error) {
            forget(sql);
            throw failure("executing a query", error);
        } catch (RowFailure error) {
            throw failure("reading a row", error.failure);
        }
    }

    @Override
    public long lastInsertedRow() throws DatabaseException {
        return query(row -> row.getLong(0), "SELECT last_insert_rowid()").get(0);
    }

    @Override
    public <T> T inTransaction(Step<T> step) throws DatabaseException {
        // A caller acknowledges what this transaction stores, so the commit must be flushed.
        if (needsFull && !isWithoutFlush) setFull();
        execute("BEGIN IMMEDIATE");
        boolean isCommitted = false;
        try {
            T value = step.run();
            execute("COMMIT");
            isCommitted = true;
            return value;
        } finally {
            if (!isCommitted) rollBack();
        }
    }

    private void rollBack() {
        try {
            execute("ROLLBACK");
        } catch (DatabaseException error) {
            // SQLite has already rolled back, after a full disk for example. The first error is reported.
        }
    }

    @Override
    public <T> T withoutFlush(Step<T> step) throws DatabaseException {
        needsFull = true;
        execute("PRAGMA synchronous = NORMAL");
        isWithoutFlush = true;
        try {
            return step.run();
        } finally {
            isWithoutFlush = false;
            try {
                setFull();
            } catch (DatabaseException error) {
                // The step has succeeded. The next transaction tries again before it begins.
            }
        }
    }

    private void setFull() throws DatabaseException {
        execute("PRAGMA synchronous = FULL");
        needsFull = false;
    }

    @Override
    public void close() {
        closeQuietly(connection);
    }

    private PreparedStatement prepared(String sql, Object... arguments) throws SQLException {
        // A PRAGMA takes effect while it is prepared, so each one is prepared anew.
        PreparedStatement statement = sql.startsWith("PRAGMA") ? null : statements.get(sql);
        if (statement == null) {
            statement = connection.prepareStatement(sql);
            PreparedStatement former = statements.put(sql, statement);
            if (former != null) former.close();
        }
        for (int index = 0; index < arguments.length; index++) {
            Object argument = arguments[index];
            statement.setObject(index + 1, argument instanceof Boolean ? ((Boolean) argument ? 1L : 0L) : argument);
        }
        return statement;
    }

    /** The driver may have closed a statement that failed. */
    private void forget(String sql) {
        PreparedStatement failed = statements.remove(sql);
        if (failed != null) closeQuietly(failed);
    }

    private static void closeQuietly(AutoCloseable resource) {
        try {
            resource.close();
        } catch (Exception error) {
            // Nothing is lost: committed transactions are in the file.
        }
    }

    private static DatabaseException failure(String step, SQLException error) {
        int code = error.getErrorCode() & 0xff;
        DatabaseException.Kind kind = code == FULL ? DatabaseException.Kind.FULL
            : code == CORRUPT || code == NOT_A_DATABASE ? DatabaseException.Kind.DAMAGED : DatabaseException.Kind.OTHER;
        return new DatabaseException(kind, step + ": " + error.getMessage(), error);
    }

    /** Passes an error of the driver through a row reader, which declares none. */
    private static final class RowFailure extends RuntimeException {
        private static final long serialVersionUID = 1;
        private final SQLException failure;

        RowFailure(SQLException failure) {
            super(failure);
            this.failure = failure;
        }
    }

    private static final class Row implements SyncRow {
        private final ResultSet rows;

        Row(ResultSet rows) {
            this.rows = rows;
        }

        @Override
        public long getLong(int column) {
            try {
                return rows.getLong(column + 1);
            } catch (SQLException error) {
                throw new RowFailure(error);
            }
        }

        @Override
        public String getText(int column) {
            try {
                return rows.getString(column + 1);
            } catch (SQLException error) {
                throw new RowFailure(error);
            }
        }

        @Override
        public byte[] getBytes(int column) {
            try {
                byte[] bytes = rows.getBytes(column + 1);
                // The driver returns null for empty bytes too.
                return bytes != null || isNull(column) ? bytes : new byte[0];
            } catch (SQLException error) {
                throw new RowFailure(error);
            }
        }

        @Override
        public boolean isNull(int column) {
            try {
                return rows.getObject(column + 1) == null;
            } catch (SQLException error) {
                throw new RowFailure(error);
            }
        }
    }
}
