package org.mobilesync.internal.store;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.security.SecureRandom;
import java.util.List;
import org.mobilesync.SyncException;
import org.mobilesync.database.DatabaseException;
import org.mobilesync.database.DatabaseOpener;
import org.mobilesync.database.SyncDatabase;

/** The SQLite file of a local store, for one client at a time. It performs the steps on the database. */
public final class StoreFile implements AutoCloseable {
    private static final int ID_BYTES = 16;
    static final int SECRET_BYTES = 32;
    private static final String COUNT_SUFFIX = ".replacements";

    private final StoreLock lock;
    private final SyncDatabase database;
    private final String storeId;
    private final boolean replacedDamaged;
    private final long replacements;
    private PayloadCipher cipher = PayloadCipher.PLAIN;

    private StoreFile(
        StoreLock lock, SyncDatabase database, String storeId, boolean replacedDamaged, long replacements) {
        this.lock = lock;
        this.database = database;
        this.storeId = storeId;
        this.replacedDamaged = replacedDamaged;
        this.replacements = replacements;
    }

    /**
     * Opens or creates the file. A file that SQLite cannot read is moved aside ({@code .damaged}), and a new one
     * begins.
     *
     * @throws SyncException STORE when the file cannot be used, STORE_IN_USE when another process or client uses it,
     *     FOREIGN_STORE when it belongs to another instance or device
     */
    static StoreFile open(String path, DatabaseOpener opener, String instanceId, DeviceIdentity device) {
        StoreLock lock = StoreLock.acquire(path);
        SyncDatabase database = null;
        boolean isOpen = false;
        try {
            boolean isDamaged = false;
            try {
                database = openReadable(path, opener);
            } catch (DatabaseException error) {
                if (error.kind() != DatabaseException.Kind.DAMAGED) throw error;
                moveAside(path);
                isDamaged = true;
                database = openReadable(path, opener);
            }
            String storeId = owner(path, database, instanceId, device);
            isOpen = true;
            return new StoreFile(lock, database, storeId, isDamaged, replacements(path));
        } catch (DatabaseException | IOException error) {
            throw new SyncException(SyncException.Code.STORE, "the store " + path + " cannot be opened ("
                + error.getMessage() + "); check folder, space and access rights", error);
        } finally {
            if (!isOpen) {
                if (database != null) database.close();
                lock.close();
            }
        }
    }

    private static SyncDatabase openReadable(String path, DatabaseOpener opener) throws DatabaseException {
        SyncDatabase database = opener.open(path);
        boolean isReadable = false;
        try {
            List<String> check = database.query(row -> row.getText(0), "PRAGMA quick_check(1)");
            if (check.isEmpty() || !check.get(0).equals("ok")) {
                throw new DatabaseException(DatabaseException.Kind.DAMAGED, "quick_check found damage", null);
            }
            if (!StoreSchema.migrate(database)) {
                throw new DatabaseException(DatabaseException.Kind.OTHER,
                    "it was written by a newer version of this library; update the app", null);
            }
            isReadable = true;
            return database;
        } finally {
            if (!isReadable) database.close();
        }
    }

    private static void moveAside(String path) throws IOException {
        for (String suffix : new String[] {"", "-wal", "-shm", "-journal"}) {
            Path file = Paths.get(path + suffix);
            if (!Files.exists(file)) continue;
            Files.move(file, Paths.get(path + ".damaged" + suffix), StandardCopyOption.REPLACE_EXISTING);
        }
        try {
            String count = Long.toString(replacements(path) + 1);
            Files.write(Paths.get(path + COUNT_SUFFIX), count.getBytes(StandardCharsets.US_ASCII));
        } catch (IOException ignored) {
            // A new store matters more than its count.
        }
    }

    /** Reads how often the store at this path was replaced. The count is in a file, because the store is damaged. */
    private static long replacements(String path) throws IOException {
        Path file = Paths.get(path + COUNT_SUFFIX);
        if (!Files.exists(file)) return 0;
        try {
            return Long.parseLong(new String(Files.readAllBytes(file), StandardCharsets.US_ASCII).trim());
        } catch (NumberFormatException error) {
            return 0;
        }
    }

    /** Returns the store's id. Makes it in a new file, and the device's secret unless the app has one. */
    private static String owner(String path, SyncDatabase database, String instanceId, DeviceIdentity device)
        throws DatabaseException {
        List<String[]> owners = database.query(
            row -> new String[] {row.getText(0), row.getText(1), row.getText(2)},
            "SELECT store_id, instance_id, device_id FROM store");
        if (owners.isEmpty()) {
            String made = hex(randomBytes(ID_BYTES));
            byte[] secret = device.secret == null ? randomBytes(SECRET_BYTES) : device.secret;
            // The secret is on the disk before the first connection (DeviceProtocol.md, Device secrets).
            database.inTransaction(() -> database.execute(
                "INSERT INTO store (store_id, instance_id, device_id, device_secret) VALUES (?, ?, ?, ?)",
                made, instanceId, device.deviceId, secret));
            return made;
        }
        String[] owner = owners.get(0);
        if (!owner[1].equals(instanceId) || !owner[2].equals(device.deviceId)) {
            throw new SyncException(SyncException.Code.FOREIGN_STORE, "the store " + path + " belongs to device "
                + owner[2] + " of " + owner[1] + "; use another path");
        }
        return owner[0];
    }

    static byte[] randomBytes(int count) {
        byte[] bytes = new byte[count];
        new SecureRandom().nextBytes(bytes);
        return bytes;
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte one : bytes) text.append(String.format("%02x", one));
        return text.toString();
    }

    /** Returns the id of the store. It was made with the file: a new store is a new receiver (W7). */
    public String storeId() {
        return storeId;
    }

    /** Returns whether the file at this path was damaged and was moved aside. */
    public boolean replacedDamaged() {
        return replacedDamaged;
    }

    /** Returns how often a damaged store at this path was replaced, over all starts. */
    public long replacements() {
        return replacements;
    }

    /** Returns the cipher of payloads, operations and the secret. */
    PayloadCipher cipher() {
        return cipher;
    }

    void setCipher(PayloadCipher next) {
        cipher = next;
    }

    SyncDatabase database() {
        return database;
    }

    /**
     * Performs a step on the database.
     *
     * @throws SyncException STORE with the step's name, STORE_FULL on a full disk
     */
    <T> T access(String name, SyncDatabase.Step<T> step) {
        try {
            return step.run();
        } catch (DatabaseException error) {
            boolean isFull = error.kind() == DatabaseException.Kind.FULL;
            throw new SyncException(isFull ? SyncException.Code.STORE_FULL : SyncException.Code.STORE,
                name + " failed (" + error.getMessage() + "); "
                    + (isFull ? "free space on the disk" : "check space and access rights of the store"), error);
        }
    }

    /** Performs a step in one transaction. The errors are as in {@link #access}; then nothing has changed. */
    <T> T change(String name, SyncDatabase.Step<T> step) {
        return access(name, () -> database.inTransaction(step));
    }

    @Override
    public void close() {
        database.close();
        lock.close();
    }
}
