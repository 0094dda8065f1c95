package org.mobilesync.backend;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.mobilesync.internal.json.JsonText;

/** The answer to one attempt of a call, or the reason why there was none. Also the result of one item of a batch. */
final class ApiAnswer {
    private static final int OK = 200;
    private static final int UNAUTHORIZED = 401;
    private static final int FIRST_SERVER_ERROR = 500;

    private final int status;
    /** The members of the JSON object, each as JSON text; empty when the body is no such object. */
    private final Map<String, String> members;
    private final long retryAfterSeconds;
    private final IOException failure;
    /** The server whose certificate is refused; null for none. */
    private final String refusedServer;

    private ApiAnswer(
        int status, Map<String, String> members, long retryAfterSeconds, IOException failure, String refusedServer) {
        this.status = status;
        this.members = members == null ? Collections.<String, String>emptyMap() : members;
        this.retryAfterSeconds = retryAfterSeconds;
        this.failure = failure;
        this.refusedServer = refusedServer;
    }

    /** An answer with this body. */
    static ApiAnswer of(int status, String body, long retryAfterSeconds) {
        return new ApiAnswer(status, JsonText.members(body), retryAfterSeconds, null, null);
    }

    /** No answer arrived. */
    static ApiAnswer none(IOException failure) {
        return new ApiAnswer(0, null, 0, failure, null);
    }

    /** Nothing was sent, because the server's certificate is refused. */
    static ApiAnswer refusedCertificate(IOException failure, String server) {
        return new ApiAnswer(0, null, 0, failure, server);
    }

    /** Returns the results of a batch; null when the answer has none. */
    List<ApiAnswer> results() {
        List<ApiAnswer> results = new ArrayList<>();
        List<String> texts = elements("results");
        if (texts == null) return null;
        for (String text : texts) results.add(of(status, text, retryAfterSeconds));
        return results;
    }

    /** Returns the texts of the elements of an array; null when there is no such array. */
    List<String> elements(String name) {
        String json = members.get(name);
        return json == null ? null : JsonText.elements(json);
    }

    /** Returns whether the answer is from the API, and not from another server. */
    boolean isFromApi() {
        return code() != null && (isSuccess() || "false".equals(members.get("success")));
    }

    boolean isSuccess() {
        return "true".equals(members.get("success"));
    }

    /** Returns the API's code. */
    String code() {
        return text("msg");
    }

    /** Returns a text; null when it is absent. */
    String text(String name) {
        return JsonText.string(members.get(name));
    }

    /** Returns a whole number; 0 when it is absent. */
    long number(String name) {
        String json = members.get(name);
        return json != null && json.matches("\\d{1,18}") ? Long.parseLong(json) : 0;
    }

    boolean flag(String name) {
        return "true".equals(members.get(name));
    }

    /** Returns the reason why no answer arrived; null when one arrived. */
    IOException failure() {
        return failure;
    }

    /** Returns whether nothing was sent, because the server's certificate is refused. */
    boolean isCertificateRefused() {
        return refusedServer != null;
    }

    int status() {
        return status;
    }

    long retryAfterSeconds() {
        return retryAfterSeconds;
    }

    /**
     * Returns whether the next attempt can have another answer.
     *
     * <p>A server between client and API answers 502 or 504 when it lost the API's answer. A nonce is random, so
     * REPLAY says that the platform's HTTP client or a proxy has sent the request twice: the outcome is unknown.
     */
    boolean isRetryable() {
        if (failure != null) return !isCertificateRefused();
        if (!isFromApi()) return status >= FIRST_SERVER_ERROR;
        return flag("retryable") || isReplay();
    }

    /** Returns whether the call may have had its effect although this answer is no success. */
    boolean isOutcomeUnknown() {
        return isRetryable() && (failure != null || !isFromApi() || isReplay() || !hasNotBeenAttempted());
    }

    private boolean isReplay() {
        String detail = text("detail");
        return status == UNAUTHORIZED && detail != null && detail.contains("REPLAY");
    }

    private boolean hasNotBeenAttempted() {
        return status != OK || "false".equals(members.get("attempted"));
    }

    /** Returns the answer in words, for an error. */
    String description() {
        if (isCertificateRefused()) {
            return "the certificate of " + refusedServer + " is refused (" + failure.getMessage() + ")";
        }
        if (failure != null) return "no answer (" + failure + ")";
        if (!isFromApi()) return "HTTP status " + status + " without an answer of the API";
        String detail = text("detail");
        return code() + (detail == null ? "" : ": " + detail);
    }
}
