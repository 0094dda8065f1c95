package org.mobilesync.internal.store;

import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import org.mobilesync.SyncException;
import org.mobilesync.database.DatabaseException;
import org.mobilesync.database.SyncDatabase;

/** Sets and changes the key of a local store. */
final class StoreEncryption {
    /** The place of the device's secret. */
    static final String SECRET = "device secret";

    private StoreEncryption() {}

    /**
     * Sets the key of an opened store. A store without a key is encrypted now.
     *
     * @throws SyncException STORE_KEY when the store was encrypted with another key, or when the key is missing
     */
    static void use(StoreFile file, PayloadCipher cipher) {
        byte[] check = file.access("reading the store's key", () -> file.database().query(
            row -> row.isNull(0) ? new byte[0] : row.getBytes(0), "SELECT key_check FROM store").get(0));
        if (check.length == 0) {
            if (!cipher.isPlain()) change(file, cipher);
            return;
        }
        if (cipher.isPlain()) {
            throw new SyncException(SyncException.Code.STORE_KEY,
                "the store is encrypted: give its key as storeKey, or use another path");
        }
        if (!cipher.made(check)) {
            throw new SyncException(SyncException.Code.STORE_KEY,
                "the store was encrypted with another key: give that one, or use another path");
        }
        file.setCipher(cipher);
    }

    /**
     * Encrypts everything with another key, in one transaction.
     *
     * @throws SyncException STORE; then the previous key stays in force
     */
    static void change(StoreFile file, PayloadCipher next) {
        PayloadCipher former = file.cipher();
        SyncDatabase database = file.database();
        // The previous payloads must not stay in free pages.
        file.access("changing the store's key", () -> database.query(row -> null, "PRAGMA secure_delete = ON"));
        file.change("changing the store's key", () -> {
            rewriteOplogs(database, former, next);
            rewriteOperations(database, former, next);
            byte[] secret = database.query(row -> row.getBytes(0), "SELECT device_secret FROM store").get(0);
            database.execute("UPDATE store SET device_secret = ?, key_check = ?",
                next.seal(former.open(secret, SECRET), SECRET), next.makeCheck());
            return null;
        });
        // From here on the file has the new key, also when the cleaning below fails.
        file.setCipher(next);
        clean(database, former.isPlain());
    }

    private static void rewriteOplogs(SyncDatabase database, PayloadCipher former, PayloadCipher next)
        throws DatabaseException {
        List<long[]> places = database.query(row -> new long[] {row.getLong(0), row.getLong(1)},
            "SELECT channel_id, oplog_id FROM oplog WHERE payload <> x''");
        for (long[] at : places) {
            String place = PayloadCipher.oplog(at[0], at[1]);
            byte[] payload = database.query(row -> row.getBytes(0),
                "SELECT payload FROM oplog WHERE channel_id = ? AND oplog_id = ?", at[0], at[1]).get(0);
            database.execute("UPDATE oplog SET payload = ? WHERE channel_id = ? AND oplog_id = ?",
                next.seal(former.open(payload, place), place), at[0], at[1]);
        }
    }

    private static void rewriteOperations(SyncDatabase database, PayloadCipher former, PayloadCipher next)
        throws DatabaseException {
        for (String id : database.query(row -> row.getText(0), "SELECT id FROM operation WHERE message <> x''")) {
            String place = PayloadCipher.operation(id);
            byte[] message =
                database.query(row -> row.getBytes(0), "SELECT message FROM operation WHERE id = ?", id).get(0);
            database.execute("UPDATE operation SET message = ? WHERE id = ?",
                next.seal(former.open(message, place), place), id);
        }
        List<String[]> results = database.query(row -> new String[] {row.getText(0), row.getText(1)},
            "SELECT operation_id, imported FROM operation_result WHERE imported IS NOT NULL");
        for (String[] result : results) {
            database.execute("UPDATE operation_result SET imported = ? WHERE operation_id = ?",
                sealed(opened(result[1], result[0], former), result[0], next), result[0]);
        }
    }

    /** Returns a result's JSON as the table has it; null stays null. */
    static String sealed(String json, String operationId, PayloadCipher cipher) {
        if (json == null || cipher.isPlain()) return json;
        return Base64.getEncoder().encodeToString(
            cipher.seal(json.getBytes(StandardCharsets.UTF_8), PayloadCipher.result(operationId)));
    }

    /** Returns a result's JSON; null stays null. */
    static String opened(String stored, String operationId, PayloadCipher cipher) {
        if (stored == null || cipher.isPlain()) return stored;
        byte[] sealed;
        try {
            sealed = Base64.getDecoder().decode(stored);
        } catch (IllegalArgumentException error) {
            throw PayloadCipher.undecryptable(PayloadCipher.result(operationId), error);
        }
        return new String(cipher.open(sealed, PayloadCipher.result(operationId)), StandardCharsets.UTF_8);
    }

    /**
     * Removes plain payloads from free pages and the write-ahead log. When the disk has no space for the copy, later
     * writes overwrite them.
     */
    private static void clean(SyncDatabase database, boolean wasPlain) {
        try {
            database.query(row -> null, "PRAGMA secure_delete = OFF");
            if (wasPlain) database.execute("VACUUM");
            database.query(row -> null, "PRAGMA wal_checkpoint(TRUNCATE)");
        } catch (DatabaseException error) {
            return;
        }
    }
}
