package org.mobilesync.backend;

/** A call of the API that had no success. Its message names the call, the reason and the remedy. */
public final class BackendException extends RuntimeException {
    private static final long serialVersionUID = 1;

    /** The kinds of errors. Later versions can add some. */
    public enum Code {
        /** A setting or an argument is invalid. Nothing was sent. */
        INVALID_ARGUMENT("correct the call"),
        /** The API refuses the content of the call. Nothing was stored. */
        REFUSED("correct the call; the same call has the same answer again"),
        /** The instance or the Sync ID is unknown, disabled or offline (BIZ_NOT_ONLINE). Nothing was stored. */
        UNKNOWN_SYNC_ID("check instanceId and bizType, or have the operator create the Sync ID or put it online"),
        /** The configuration is for the other kind of push, single or global. Nothing was stored. */
        WRONG_SCOPE("use Push.to for a configuration of appointed scope, and Push.toAll for one of global scope"),
        /** The signature is missing or wrong, its key is unknown, or the clock is wrong. Nothing was attempted. */
        UNAUTHORIZED("check the key's id, its secret and this machine's clock, or ask the operator for a backend key"),
        /** The key is of another instance. Nothing was attempted. */
        FORBIDDEN("use a key of this instance"),
        /** The body has too many bytes, or the batch more pushes than the caller has in a day. */
        TOO_LARGE("send less at a time"),
        /** The caller is over its limit, for longer than the client waits. Nothing was attempted. */
        OVER_LIMIT("repeat the call after retryAfterSeconds()"),
        /** The service was busy, starting or stopping at every attempt. Nothing was attempted. */
        UNAVAILABLE("repeat the call later"),
        /** No attempt had a final answer: the call may or may not have had its effect. */
        UNKNOWN_OUTCOME("repeat the call with the same thirdMsgId: it has its effect once"),
        /** The server's certificate is refused. Nothing was sent. */
        CERTIFICATE("check the host of the address, or give the authority with Builder.sslContext"),
        /** The address answers, but not as the API does. */
        UNEXPECTED_ANSWER("check the address: it is that of the API, for example https://push.example.com"),
        /** The thread was interrupted while it waited for the next attempt. The outcome is unknown. */
        INTERRUPTED("repeat the call with the same thirdMsgId: it has its effect once");

        private final String action;

        Code(String action) {
            this.action = action;
        }

        /** Returns whether every attempt of the same call is refused, so that none had an effect. */
        boolean isAboutContent() {
            return this == REFUSED || this == WRONG_SCOPE || this == TOO_LARGE;
        }
    }

    private final Code code;
    private final String apiCode;
    private final String requestId;
    private final long retryAfterSeconds;
    private final boolean isRetryable;

    BackendException(Code code, String what) {
        this(code, what, null, null);
    }

    BackendException(Code code, String what, ApiAnswer answer, Throwable cause) {
        super(code + ": " + what + "; " + code.action, cause);
        this.code = code;
        apiCode = answer == null ? null : answer.code();
        requestId = answer == null ? null : answer.text("requestId");
        retryAfterSeconds = answer == null ? 0 : answer.retryAfterSeconds();
        isRetryable = code == Code.INTERRUPTED || answer != null && answer.isRetryable();
    }

    /**
     * Returns the error for the last answer to a call.
     *
     * @param wasOutcomeUnknown whether an attempt may have had its effect
     */
    static BackendException of(String what, ApiAnswer answer, int attempts, boolean wasOutcomeUnknown) {
        String requestId = answer.text("requestId");
        Code code = code(answer);
        if (wasOutcomeUnknown && !code.isAboutContent()) code = Code.UNKNOWN_OUTCOME;
        return new BackendException(code,
            what + " had no success in " + attempts + (attempts == 1 ? " attempt: " : " attempts: ")
                + answer.description() + (requestId == null ? "" : " (request " + requestId + ")"),
            answer, answer.failure());
    }

    private static Code code(ApiAnswer answer) {
        if (answer.isCertificateRefused()) return Code.CERTIFICATE;
        if (answer.isOutcomeUnknown()) return Code.UNKNOWN_OUTCOME;
        if (!answer.isFromApi() || answer.isSuccess()) return Code.UNEXPECTED_ANSWER;
        switch (answer.code()) {
            case "BIZ_NOT_ONLINE":
                return Code.UNKNOWN_SYNC_ID;
            case "NOT_SUPPORT_GLOBAL":
                return Code.WRONG_SCOPE;
            case "UNAUTHORIZED":
                return Code.UNAUTHORIZED;
            case "FORBIDDEN":
                return Code.FORBIDDEN;
            case "TOO_LARGE":
                return Code.TOO_LARGE;
            case "RATE_LIMITED":
                return Code.OVER_LIMIT;
            default:
                return answer.isRetryable() ? Code.UNAVAILABLE : Code.REFUSED;
        }
    }

    /** Returns the kind of the error. */
    public Code code() {
        return code;
    }

    /** Returns the API's own code, for example {@code PAYLOAD_LONG}; null when there was no answer of the API. */
    public String apiCode() {
        return apiCode;
    }

    /** Returns the name of the request in the service's logs; null when there was no answer of the API. */
    public String requestId() {
        return requestId;
    }

    /** Returns the seconds to wait before the next attempt; 0 when the API named none. */
    public long retryAfterSeconds() {
        return retryAfterSeconds;
    }

    /** Returns whether the same call, with the same thirdMsgId, can have success later without any change. */
    public boolean isRetryable() {
        return isRetryable;
    }
}
