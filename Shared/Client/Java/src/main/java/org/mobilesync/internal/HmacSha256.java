package org.mobilesync.internal;

import java.security.GeneralSecurityException;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** Signs bytes with HMAC-SHA256 (RFC 2104). */
public final class HmacSha256 {
    private static final String ALGORITHM = "HmacSHA256";

    private HmacSha256() {}

    /** Returns the 32 bytes of the signature. */
    public static byte[] sign(byte[] secret, byte[] content) {
        try {
            Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(new SecretKeySpec(secret, ALGORITHM));
            return mac.doFinal(content);
        } catch (GeneralSecurityException error) {
            // Every Java platform has HMAC-SHA256 (java.security documentation, required algorithms).
            throw new IllegalStateException("this platform has no " + ALGORITHM, error);
        }
    }
}
