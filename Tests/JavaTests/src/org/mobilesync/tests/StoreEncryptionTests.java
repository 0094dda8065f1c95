package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.mobilesync.SyncException;
import org.mobilesync.SyncOperation;
import org.mobilesync.SyncOplog;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.database.SyncDatabase;
import org.mobilesync.internal.store.PayloadCipher;
import org.mobilesync.internal.wire.ChannelBatch;
import org.mobilesync.internal.wire.ChannelKind;

/** The encryption of a local store with the app's key. */
class StoreEncryptionTests extends OpenedStore {
    private static PayloadCipher key(int value) {
        byte[] key = new byte[32];
        Arrays.fill(key, (byte) value);
        return PayloadCipher.of(key);
    }

    private SyncException.Code refusal(PayloadCipher other) {
        cipher = other;
        return assertThrows(SyncException.class, this::open).code();
    }

    /** Returns whether a file of the store contains the text. */
    private boolean isOnDisk(String text) throws Exception {
        for (String suffix : new String[] {"", "-wal"}) {
            Path file = folder.resolve("s" + suffix);
            if (!Files.exists(file)) continue;
            String content = new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1);
            if (content.contains(text)) return true;
        }
        return false;
    }

    private String storedTexts() {
        return store.history().history("UCHAT", null, "u1", 0, 10).allStored().stream().map(SyncOplog::text)
            .collect(Collectors.joining(" "));
    }

    @Test
    void aKeyEncryptsWhatTheStoreHasAndWhatItGets() throws Exception {
        ChannelBatch plain = batch(0, 1, 1);
        plain.entries.get(0).payload = "readable-1".getBytes(StandardCharsets.UTF_8);
        push(plain);
        byte[] body = "readable-body".getBytes(StandardCharsets.UTF_8);
        store.outbox().add(Collections.singletonList(new SyncOperation("ORDER", "1", "update", body)), "u1");
        byte[] secret = store.device().secret();
        String secretText = new String(secret, StandardCharsets.ISO_8859_1);
        assertTrue(isOnDisk("readable-1") && isOnDisk("readable-body") && isOnDisk(secretText));
        store.close();
        cipher = key(1);
        open();
        ChannelBatch more = batch(1, 2, 2);
        more.entries.get(0).payload = "readable-2".getBytes(StandardCharsets.UTF_8);
        push(more);
        assertFalse(isOnDisk("readable") || isOnDisk(secretText));
        store.close();
        assertFalse(isOnDisk("readable"));
        assertEquals(SyncException.Code.STORE_KEY, refusal(PayloadCipher.of(null)));
        assertEquals(SyncException.Code.STORE_KEY, refusal(key(2)));
        cipher = key(1);
        open();
        assertEquals("readable-2 readable-1", storedTexts());
        assertArrayEquals(secret, store.device().secret());
        assertArrayEquals(body, store.outbox().nextFrame("u1", 10_000).get(0).body);
        store.changeCipher(key(2));
        assertEquals("readable-2 readable-1", storedTexts());
        store.changeCipher(PayloadCipher.of(null));
        store.close();
        cipher = PayloadCipher.of(null);
        open();
        assertEquals("readable-2 readable-1", storedTexts());
        assertArrayEquals(body, store.outbox().nextFrame("u1", 10_000).get(0).body);
    }

    @Test
    void anEncryptedResultIsReadableAndAMovedPayloadIsNot() throws Exception {
        store.changeCipher(key(1));
        SyncOperation operation = new SyncOperation("ORDER", "1", "update", new byte[] {1});
        store.outbox().add(Collections.singletonList(operation), "u1");
        ChannelBatch results = batch(0, 2, 1, 2);
        results.bizType = "MSS_RESULTS";
        results.kind = ChannelKind.DEVICE;
        results.entries.get(0).payload = ("{\"results\":[{\"operationId\":\"" + operation.id()
            + "\",\"accepted\":true,\"code\":200,\"timestamp\":5,\"import\":{\"a\":\"readable\"}}]}")
                .getBytes(StandardCharsets.UTF_8);
        push(results, batch(0, 2, 1, 2));
        assertEquals("{\"a\":\"readable\"}", store.outbox().result("u1", 0).result().imported());
        assertFalse(isOnDisk("readable"));
        store.close();
        SyncDatabase database = JdbcDatabase.open(folder.resolve("s").toString());
        database.execute("UPDATE oplog SET payload = (SELECT payload FROM oplog WHERE oplog_id = 1 AND state = 0)"
            + " WHERE oplog_id = 2");
        database.execute("UPDATE operation_result SET imported = '*'");
        database.close();
        cipher = key(1);
        open();
        SyncException error = assertThrows(SyncException.class, this::storedTexts);
        assertEquals(SyncException.Code.STORE, error.code());
        assertTrue(error.getMessage().contains("cannot be decrypted"), error.getMessage());
        assertThrows(SyncException.class, () -> store.outbox().result("u1", 0));
        assertThrows(SyncException.class, () -> PayloadCipher.of(new byte[16]));
    }
}
