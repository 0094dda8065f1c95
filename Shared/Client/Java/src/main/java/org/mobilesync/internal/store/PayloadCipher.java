package org.mobilesync.internal.store;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.mobilesync.SyncException;

/**
 * Encrypts the payloads of a local store with AES-256-GCM. Decryption fails unless the same key encrypted the bytes for
 * the same place. Without a key, bytes stay as they are.
 */
public final class PayloadCipher {
    /** Leaves bytes as they are. */
    static final PayloadCipher PLAIN = new PayloadCipher(null);

    private static final int KEY_BYTES = 32;
    private static final int NONCE_BYTES = 12;
    private static final int TAG_BITS = 128;
    private static final String CHECK = "mobile-sync store key";

    private final SecretKeySpec key;

    private PayloadCipher(SecretKeySpec key) {
        this.key = key;
    }

    /**
     * Returns the cipher of a key; null: no encryption.
     *
     * @throws SyncException INVALID_ARGUMENT for a key of another length than 32 bytes
     */
    public static PayloadCipher of(byte[] key) {
        if (key == null) return PLAIN;
        if (key.length != KEY_BYTES) {
            throw new SyncException(SyncException.Code.INVALID_ARGUMENT,
                "storeKey must have " + KEY_BYTES + " bytes, not " + key.length);
        }
        return new PayloadCipher(new SecretKeySpec(key, "AES"));
    }

    /** Returns whether bytes stay as they are. */
    boolean isPlain() {
        return key == null;
    }

    /** Returns the place of an oplog's payload. */
    static String oplog(long channelRow, long oplogId) {
        return "oplog " + channelRow + " " + oplogId;
    }

    /** Returns the place of an operation's message. */
    static String operation(String id) {
        return "operation " + id;
    }

    /** Returns the place of an operation's result. */
    static String result(String operationId) {
        return "result " + operationId;
    }

    /** Encrypts bytes for a place; no bytes stay no bytes. */
    byte[] seal(byte[] bytes, String place) {
        return key == null || bytes.length == 0 ? bytes : sealed(bytes, place);
    }

    private byte[] sealed(byte[] bytes, String place) {
        byte[] nonce = StoreFile.randomBytes(NONCE_BYTES);
        try {
            byte[] content = transformed(Cipher.ENCRYPT_MODE, nonce, bytes, place);
            byte[] sealed = Arrays.copyOf(nonce, NONCE_BYTES + content.length);
            System.arraycopy(content, 0, sealed, NONCE_BYTES, content.length);
            return sealed;
        } catch (GeneralSecurityException error) {
            // Every Java platform of this library has AES-GCM: JVMs from 8 on, Android from 5 on.
            throw new IllegalStateException("this platform has no AES-GCM", error);
        }
    }

    /**
     * Decrypts bytes that {@link #seal} encrypted for the same place.
     *
     * @throws SyncException STORE for any other bytes
     */
    byte[] open(byte[] sealed, String place) {
        if (key == null || sealed.length == 0) return sealed;
        try {
            return opened(sealed, place);
        } catch (GeneralSecurityException error) {
            throw undecryptable(place, error);
        }
    }

    /** Returns the error for bytes of a place that this cipher did not encrypt. */
    static SyncException undecryptable(String place, Exception cause) {
        return new SyncException(SyncException.Code.STORE,
            place + " in the store cannot be decrypted: another program has changed it; use another path", cause);
    }

    private byte[] opened(byte[] sealed, String place) throws GeneralSecurityException {
        int length = Math.min(NONCE_BYTES, sealed.length);
        byte[] nonce = Arrays.copyOf(sealed, NONCE_BYTES);
        return transformed(Cipher.DECRYPT_MODE, nonce, Arrays.copyOfRange(sealed, length, sealed.length), place);
    }

    private byte[] transformed(int mode, byte[] nonce, byte[] bytes, String place) throws GeneralSecurityException {
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        cipher.init(mode, key, new GCMParameterSpec(TAG_BITS, nonce));
        cipher.updateAAD(place.getBytes(StandardCharsets.UTF_8));
        return cipher.doFinal(bytes);
    }

    /** Returns the value with which a store recognises its key; null without a key. */
    byte[] makeCheck() {
        return key == null ? null : sealed(CHECK.getBytes(StandardCharsets.US_ASCII), "check");
    }

    /** Returns whether this key made a store's check value. */
    boolean made(byte[] check) {
        try {
            return key != null && Arrays.equals(opened(check, "check"), CHECK.getBytes(StandardCharsets.US_ASCII));
        } catch (GeneralSecurityException error) {
            return false;
        }
    }
}
