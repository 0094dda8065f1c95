package org.mobilesync.internal.store;

import java.util.ArrayList;
import java.util.List;
import org.mobilesync.SyncException;
import org.mobilesync.SyncOperation;
import org.mobilesync.SyncOperationResult;
import org.mobilesync.database.DatabaseException;
import org.mobilesync.database.SyncDatabase;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.connection.OperationsAnswer;
import org.mobilesync.internal.wire.DeviceOperation;
import org.mobilesync.internal.wire.FrameException;
import org.mobilesync.internal.wire.OperationRefusal;
import org.mobilesync.internal.wire.WireReader;

/** The operations and results of the users on this device. Each step is one transaction, flushed to the disk. */
public final class Outbox {
    /** The time for which the id of a finished operation is known, and the most of them. */
    private static final long KEPT_MS = 31L * 86_400_000;
    private static final int KEPT_MAX = 10_000;
    /** Bytes of an operation beside its body. */
    private static final int OPERATION_BYTES = 400;

    private final StoreFile file;
    private final SyncDatabase database;
    private final StoreSpace space;
    private final ServiceClock clock;

    Outbox(StoreFile file, StoreSpace space, ServiceClock clock) {
        this.file = file;
        this.database = file.database();
        this.space = space;
        this.clock = clock;
    }

    // App.

    /** Stores operations, all or none. Operations with a known id are ignored. */
    public void add(List<SyncOperation> operations, String userId) {
        List<DeviceOperation> messages = new ArrayList<>();
        long bytes = 0;
        for (SyncOperation operation : operations) {
            DeviceOperation message = message(operation);
            bytes += message.encoded().length + OPERATION_BYTES;
            messages.add(message);
        }
        if (!space.hasSpace(bytes)) {
            throw new SyncException(SyncException.Code.STORE_FULL,
                "the local store is full: confirm oplogs, or increase storeLimit");
        }
        file.change("storing operations", () -> {
            for (DeviceOperation message : messages) {
                database.execute(
                    "INSERT OR IGNORE INTO operation (id, user_id, component, entity_key, name, message, state)"
                        + " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    message.operationId, userId, message.component, message.entityKey, message.name,
                    file.cipher().seal(message.encoded(), PayloadCipher.operation(message.operationId)),
                    OperationState.WAITING);
            }
            return null;
        });
    }

    private DeviceOperation message(SyncOperation operation) {
        DeviceOperation message = new DeviceOperation();
        message.operationId = operation.id();
        message.component = operation.component();
        message.entityKey = operation.entityKey();
        message.name = operation.name();
        message.body = operation.body();
        message.submittedAtMs = clock.deviceTimeMs();
        for (SyncOperation child : operation.children()) message.children.add(message(child));
        return message;
    }

    /** Deletes the operations that the service cannot have, and returns their ids. */
    public List<String> cancel(List<String> ids, String userId) {
        return file.change("cancelling operations", () -> {
            List<String> cancelled = new ArrayList<>();
            for (String id : ids) {
                long deleted = database.execute("DELETE FROM operation WHERE id = ? AND user_id = ? AND state = ?",
                    id, userId, OperationState.WAITING);
                if (deleted > 0) cancelled.add(id);
            }
            return cancelled;
        });
    }

    /** Returns the ids of the operations without a result, in their order. */
    public List<String> pending(String userId) {
        return file.access("reading operations", () -> database.query(row -> row.getText(0),
            "SELECT id FROM operation WHERE user_id = ? AND state < ? ORDER BY number", userId, OperationState.OVER));
    }

    /** A result and its place in the order of results. */
    public static final class NumberedResult {
        private final long number;
        private final SyncOperationResult result;

        private NumberedResult(long number, SyncOperationResult result) {
            this.number = number;
            this.result = result;
        }

        /** Returns the place. */
        public long number() {
            return number;
        }

        /** Returns the result. */
        public SyncOperationResult result() {
            return result;
        }
    }

    /** Returns a user's first result after this number that the app has not confirmed; null for none. */
    public NumberedResult result(String userId, long after) {
        List<NumberedResult> results = file.access("reading a result", () -> database.query(row -> {
            SyncOperationResult.Builder result = new SyncOperationResult.Builder();
            result.userId = userId;
            result.operationId = row.getText(1);
            result.component = row.getText(2);
            result.entityKey = row.getText(3);
            result.name = row.getText(4);
            result.isAccepted = row.getBoolean(5);
            result.code = row.getLong(6);
            result.level = row.getText(7);
            result.message = row.getText(8);
            result.requestId = row.getText(9);
            result.timestampMs = row.getLong(10);
            result.imported = StoreEncryption.opened(row.getText(11), result.operationId, file.cipher());
            return new NumberedResult(row.getLong(0), result.build());
        }, "SELECT number, operation_id, component, entity_key, name, is_accepted, code, level, message, request_id,"
            + " at_ms, imported FROM operation_result WHERE user_id = ? AND NOT is_confirmed AND number > ?"
            + " ORDER BY number LIMIT 1", userId, after));
        return results.isEmpty() ? null : results.get(0);
    }

    /** Records durably that the app has processed a result. A result that was replaced meanwhile stays. */
    public void confirm(SyncOperationResult result) {
        file.change("confirming a result", () -> database.execute(
            "UPDATE operation_result SET is_confirmed = 1, imported = NULL WHERE operation_id = ? AND at_ms = ?",
            result.operationId(), result.timestampMs()));
    }

    // Connection.

    /**
     * Returns the next frame of a user's operations that the service has not accepted, in their order, and marks them
     * as sent.
     *
     * @param maxBytes the largest size on the wire; the first operation is returned in any case
     */
    public List<DeviceOperation> nextFrame(String userId, int maxBytes) {
        return file.change("reading the next operations", () -> {
            List<byte[]> messages = database.query(
                row -> file.cipher().open(row.getBytes(0), PayloadCipher.operation(row.getText(1))),
                "SELECT message, id FROM operation WHERE user_id = ? AND state < ? ORDER BY number LIMIT ?",
                userId, OperationState.TAKEN, Limits.FRAME_OPERATIONS);
            List<DeviceOperation> frame = new ArrayList<>();
            int bytes = 0;
            for (byte[] message : messages) {
                bytes += message.length + 8;
                if (!frame.isEmpty() && bytes > maxBytes) break;
                frame.add(decoded(message));
            }
            for (DeviceOperation operation : frame) {
                database.execute("UPDATE operation SET state = ?, sends = sends + 1 WHERE id = ?",
                    OperationState.SENT, operation.operationId);
            }
            return frame;
        });
    }

    private static DeviceOperation decoded(byte[] message) throws DatabaseException {
        try {
            return DeviceOperation.read(new WireReader(message));
        } catch (FrameException error) {
            throw new DatabaseException(DatabaseException.Kind.DAMAGED, "a stored operation is not readable", error);
        }
    }

    /** Applies the service's reply to a frame. */
    public void answered(OperationsAnswer answer) {
        long now = clock.deviceTimeMs();
        file.change("applying a reply about operations", () -> {
            for (String id : answer.taken) {
                database.execute("UPDATE operation SET state = ? WHERE id = ? AND state = ?",
                    OperationState.TAKEN, id, OperationState.SENT);
            }
            for (String id : answer.free) {
                // The service may have accepted one of several sends without a reply.
                database.execute("UPDATE operation SET state = ?, sends = 0 WHERE id = ? AND state = ? AND sends = 1",
                    OperationState.WAITING, id, OperationState.SENT);
            }
            for (OperationRefusal refusal : answer.over) {
                store(ResultPayload.refusal(refusal.operationId, refusal.code, refusal.message, now));
            }
            return null;
        });
    }

    /**
     * Stores a result and ends its operation. Ignores a known result, and a result without a known user. Call it in a
     * transaction.
     */
    void store(ResultPayload payload) throws DatabaseException {
        SyncOperationResult.Builder result = payload.result;
        List<String[]> owners = database.query(
            row -> new String[] {row.getText(0), row.getText(1), row.getText(2), row.getText(3)},
            "SELECT user_id, component, entity_key, name FROM operation WHERE id = ?", result.operationId);
        String userId = owners.isEmpty() ? payload.userId : owners.get(0)[0];
        if (userId.isEmpty()) return;
        if (!owners.isEmpty()) {
            result.component = owners.get(0)[1];
            result.entityKey = owners.get(0)[2];
            result.name = owners.get(0)[3];
        }
        List<Long> known = database.query(row -> row.getLong(0),
            "SELECT at_ms FROM operation_result WHERE operation_id = ?", result.operationId);
        if (!known.isEmpty() && known.get(0) >= result.timestampMs) return;
        database.execute("UPDATE operation SET state = ?, message = x'', done_at_ms = ? WHERE id = ?",
            OperationState.OVER, clock.deviceTimeMs(), result.operationId);
        // A new row gets a higher number, so that the app receives it after the results that it has received.
        database.execute("DELETE FROM operation_result WHERE operation_id = ?", result.operationId);
        database.execute(
            "INSERT INTO operation_result (operation_id, user_id, component, entity_key, name, is_accepted, code,"
                + " level, message, request_id, at_ms, imported) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            result.operationId, userId, result.component, result.entityKey, result.name, result.isAccepted,
            result.code, result.level, result.message, result.requestId, result.timestampMs,
            StoreEncryption.sealed(result.imported, result.operationId, file.cipher()));
    }

    /** Deletes old finished operations and their confirmed results. */
    void forgetOld() {
        long before = clock.deviceTimeMs() - KEPT_MS;
        file.change("deleting old operations", () -> {
            database.execute(
                "DELETE FROM operation_result WHERE is_confirmed AND operation_id IN (SELECT id FROM operation"
                    + " WHERE state = ? AND (done_at_ms < ? OR number <= (SELECT number FROM operation"
                    + " WHERE state = ? ORDER BY number DESC LIMIT 1 OFFSET ?)))",
                OperationState.OVER, before, OperationState.OVER, KEPT_MAX);
            return database.execute(
                "DELETE FROM operation WHERE state = ? AND NOT EXISTS (SELECT 1 FROM operation_result r"
                    + " WHERE r.operation_id = operation.id)", OperationState.OVER);
        });
    }
}
