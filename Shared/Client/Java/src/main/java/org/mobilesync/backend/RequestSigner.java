package org.mobilesync.backend;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.mobilesync.SyncAppKey;
import org.mobilesync.internal.HmacSha256;

/** Signs requests with a backend key (H9). Each attempt of a call needs a signature of its own. */
final class RequestSigner {
    private static final int NONCE_BYTES = 16;

    private final SyncAppKey key;
    private final SecureRandom random = new SecureRandom();

    RequestSigner(SyncAppKey key) {
        this.key = key;
    }

    /** Returns the four headers for a request, with a new nonce. */
    Map<String, String> headers(ApiCall call, long nowMs) {
        byte[] nonce = new byte[NONCE_BYTES];
        random.nextBytes(nonce);
        return headers(call, Long.toString(nowMs), hex(nonce));
    }

    /** Returns the four headers for a request, with this nonce of 16 to 32 bytes in hex. */
    Map<String, String> headers(ApiCall call, String timestamp, String nonce) {
        String text = String.join("\n", "v1", call.method, sorted(call.target), hex(digest(call.body)), timestamp,
            nonce, key.id());
        Map<String, String> headers = new LinkedHashMap<>();
        headers.put("X-MSS-Key", key.id());
        headers.put("X-MSS-Timestamp", timestamp);
        headers.put("X-MSS-Nonce", nonce);
        headers.put("X-MSS-Signature",
            hex(HmacSha256.sign(key.secret(), text.getBytes(StandardCharsets.UTF_8))));
        return headers;
    }

    /** Returns the target with the parts of its query sorted. All of them are ASCII, so units sort as bytes do. */
    private static String sorted(String target) {
        int mark = target.indexOf('?');
        if (mark < 0) return target;
        String[] parts = target.substring(mark + 1).split("&", -1);
        Arrays.sort(parts);
        return target.substring(0, mark + 1) + String.join("&", parts);
    }

    private static byte[] digest(byte[] body) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(body);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException("every Java platform has SHA-256", error);
        }
    }

    private static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte one : bytes) text.append(String.format("%02x", one));
        return text.toString();
    }
}
