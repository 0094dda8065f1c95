package org.mobilesync.backend;

import java.io.UnsupportedEncodingException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/** One call of the API: the method, the path with its query, the body, and its description for errors. */
final class ApiCall {
    private static final byte[] NO_BODY = {};

    final String method;
    /** Path and query as they are sent. */
    final String target;
    final byte[] body;
    final String description;

    private ApiCall(String method, String target, byte[] body, String description) {
        this.method = method;
        this.target = target;
        this.body = body;
        this.description = description;
    }

    static ApiCall post(String path, String instanceId, String json, String description) {
        return new ApiCall("POST", target(path, "instanceId", instanceId), json.getBytes(StandardCharsets.UTF_8),
            description);
    }

    /** @param query names and values by turns; a null value leaves the parameter out */
    static ApiCall get(String path, String description, String... query) {
        return new ApiCall("GET", target(path, query), NO_BODY, description);
    }

    private static String target(String path, String... query) {
        StringBuilder target = new StringBuilder("/webapi/sync/").append(path);
        char separator = '?';
        for (int index = 0; index < query.length; index += 2) {
            if (query[index + 1] == null) continue;
            target.append(separator).append(query[index]).append('=').append(encoded(query[index + 1]));
            separator = '&';
        }
        return target.toString();
    }

    private static String encoded(String text) {
        try {
            return URLEncoder.encode(text, "UTF-8").replace("+", "%20");
        } catch (UnsupportedEncodingException error) {
            throw new IllegalStateException("every Java platform has UTF-8", error);
        }
    }
}
