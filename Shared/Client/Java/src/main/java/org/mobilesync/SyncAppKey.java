package org.mobilesync;

import java.util.Base64;

/**
 * A key of the instance with which the app signs its connects, for instances whose signature switch is on (K7, H9).
 *
 * <p>Every copy of the app contains the key, so it identifies the app and not a user.
 */
public final class SyncAppKey {
    private static final int SHORTEST_BYTES = 16;

    private final String id;
    private final byte[] secret;

    /**
     * Creates a key from the output of {@code mssctl key create}.
     *
     * @param id the key's id; {@code appKey} in {@code meta.config}
     * @param secret the secret in Base64; {@code appSecret} in {@code meta.config}
     * @throws SyncException INVALID_ARGUMENT when the id is empty, or the secret is not Base64 of at least 16 bytes
     */
    public SyncAppKey(String id, String secret) {
        byte[] bytes;
        try {
            bytes = Base64.getDecoder().decode(secret);
        } catch (IllegalArgumentException error) {
            bytes = new byte[0];
        }
        if (id.isEmpty() || bytes.length < SHORTEST_BYTES) {
            throw new SyncException(SyncException.Code.INVALID_ARGUMENT,
                "a key needs an id, and a secret of at least 16 bytes in Base64; mssctl key create prints both");
        }
        this.id = id;
        this.secret = bytes;
    }

    /** Returns the key's id. */
    public String id() {
        return id;
    }

    /** Returns a copy of the secret's bytes. */
    public byte[] secret() {
        return secret.clone();
    }
}
