package org.mobilesync.backend;

/** The result of one push. */
public final class PushResult {
    private final String code;
    private final long oplogId;
    private final String detail;
    private final BackendException error;

    PushResult(ApiAnswer answer) {
        code = answer.code();
        oplogId = answer.number("oplogId");
        detail = answer.text("detail");
        error = null;
    }

    PushResult(BackendException error) {
        code = error.apiCode();
        oplogId = 0;
        detail = error.getMessage();
        this.error = error;
    }

    /** Returns whether the service accepted the push, now or at an earlier call with the same thirdMsgId. */
    public boolean isAccepted() {
        return error == null;
    }

    /**
     * Returns the API's code: {@code SUCCESS}, {@code NOT_ONLINE} (no device can take it now) or
     * {@code DUPLICATED_BIZ_ID} (accepted at an earlier call or attempt); null when there was no answer.
     */
    public String code() {
        return code;
    }

    /** Returns the id of the stored oplog, for a repeat that of the first call; 0 when nothing is stored. */
    public long oplogId() {
        return oplogId;
    }

    /** Returns a sentence for people, for example that the validity was shortened; null for none. */
    public String detail() {
        return detail;
    }

    /** Returns the error of a push of a batch that was not accepted; null for an accepted push. */
    public BackendException error() {
        return error;
    }
}
